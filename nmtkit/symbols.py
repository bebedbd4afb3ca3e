"""The ids of the three special symbols, the same in every vocabulary.

They are SentencePiece's defaults. Padding has no id, because it exists only inside attention.
"""

UNK_ID = 0
BOS_ID = 1
EOS_ID = 2
