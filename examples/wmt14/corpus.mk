# From parallel text to a score: preprocess, train, average, translate, score. Finished steps are not
# repeated, and interrupted training resumes.
#
# For your own corpus, copy this file and a recipe, change the four lines below, and run
# `make -f corpus.mk`. Values on the command line override these.

# train.en, train.de, valid.en, valid.de, which may be gzipped (.gz), and test.en, test.de.
CORPUS ?= /path/to/corpus
SOURCE ?= en
TARGET ?= de
RECIPE ?= base.toml

# At most the number of checkpoints that the recipe keeps.
AVERAGE ?= 5
TRAIN ?= $(CORPUS)/train
VALID ?= $(CORPUS)/valid
TEST ?= $(CORPUS)/test
# Further settings, as options.
PREPROCESS_FLAGS ?= --vocab-size 32000
TRAIN_FLAGS ?=
TRANSLATE_FLAGS ?= --beam 4 --length-penalty 0.6 --max-length-offset 50 --stop-when proved
SCORE_FLAGS ?= --metric bleu,chrf
# Output: the dataset in WORK, the rest in a folder of WORK named like the recipe.
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

# Made only when training has finished; until then, make resumes it.
$(OUT)/trained: $(WORK)/data
	$(NMTKIT) train $< --config $(RECIPE) $(TRAIN_FLAGS) --out $(OUT)/run
	touch $@

$(OUT)/model: $(OUT)/trained
	$(NMTKIT) average-checkpoints $(OUT)/run --last $(AVERAGE) --out $@ --overwrite

$(OUT)/test.$(TARGET): $(OUT)/model
	$(NMTKIT) translate $< $(TRANSLATE_FLAGS) < $(TEST).$(SOURCE) > $@

$(OUT)/score: $(OUT)/test.$(TARGET)
	$(NMTKIT) score --reference $(TEST).$(TARGET) $(SCORE_FLAGS) < $< > $@
