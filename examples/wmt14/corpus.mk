# From parallel text to a score: preprocess, train, average, translate, score. What is finished is
# not done again; what was stopped goes on.
#
# For your own corpus, copy this file and a recipe to where you like, change the four lines, and
# `make -f corpus.mk`. What is given on the command line wins over what stands here.

# train.en, train.de, valid.en, valid.de, which may be gzipped (.gz), and test.en, test.de.
CORPUS ?= /path/to/corpus
SOURCE ?= en
TARGET ?= de
RECIPE ?= base.toml

# As many checkpoints as the recipe keeps can be averaged.
AVERAGE ?= 5
TRAIN ?= $(CORPUS)/train
VALID ?= $(CORPUS)/valid
TEST ?= $(CORPUS)/test
# Settings beside the recipes', as flags.
PREPROCESS_FLAGS ?= --vocab-size 32000
TRAIN_FLAGS ?=
TRANSLATE_FLAGS ?= --beam 4 --length-penalty 0.6 --extra-length 50
SCORE_FLAGS ?= --metric bleu,chrf
# Written to: a dataset in WORK, all else in a folder of the recipe's name within it.
WORK ?= $(CORPUS)/work
NMTKIT ?= nmtkit

OUT := $(WORK)/$(basename $(notdir $(RECIPE)))

.PHONY: score
.DELETE_ON_ERROR:

score: $(OUT)/score
	@cat $<

$(WORK)/data:
	$(NMTKIT) preprocess -s $(SOURCE) -t $(TARGET) $(addprefix --train ,$(TRAIN)) --valid $(VALID) \
	  $(PREPROCESS_FLAGS) --out $@

# Made only when training has ended by itself; until then, make goes on with it.
$(OUT)/trained: $(WORK)/data
	$(NMTKIT) train $< --config $(RECIPE) $(TRAIN_FLAGS) --out $(OUT)/run
	touch $@

$(OUT)/model: $(OUT)/trained
	$(NMTKIT) average-checkpoints $(OUT)/run --last $(AVERAGE) --out $@ --overwrite

$(OUT)/test.$(TARGET): $(OUT)/model
	$(NMTKIT) translate $< $(TRANSLATE_FLAGS) < $(TEST).$(SOURCE) > $@

$(OUT)/score: $(OUT)/test.$(TARGET)
	$(NMTKIT) score --reference $(TEST).$(TARGET) $(SCORE_FLAGS) < $< > $@
