"""The three special symbols and their ids, the same in every vocabulary.

The ids are SentencePiece's defaults. Padding has no id, because it exists only inside attention.
"""

SPECIAL_WORDS = ("<unk>", "<s>", "</s>")
"""Their names, by id."""

UNK_ID = 0
BOS_ID = 1
EOS_ID = 2
