"""The ids of the three special symbols, the same in every vocabulary.

They are SentencePiece's own defaults. There is no id for padding: padding does not exist outside
attention.
"""

UNK_ID = 0
BOS_ID = 1
EOS_ID = 2
