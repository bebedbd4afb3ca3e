# From trees to F1: preprocess, train, average, parse, score. Finished steps are not repeated, and
# interrupted training resumes.
#
#   make -f parser.mk test      one cell: one dropout, attention dropout and learning rate
#   make -f parser.mk cell      the same, on the validation set
#   make -f parser.mk grid      all cells on the validation set, and their table
#
# The Makefile passes the inputs (train.words, train.trees and so on) and the output folder.

# Prefixes of training texts, with optional weights (PREFIX=2), and of validation and test set.
TRAIN ?=
VALID ?=
TEST ?=
# The same text in the form for the model, if different: training validates on SEEN_VALID, and the
# words of both are parsed.
SEEN_VALID ?= $(VALID)
SEEN_TEST ?= $(TEST)
WORK ?=

PREPROCESS_FLAGS ?=
RECIPE ?= --preset wsj
TRAIN_FLAGS ?=
AVERAGE_FLAGS ?= --last 5
TRANSLATE_FLAGS ?= --beam 21 --length-penalty 0.3 --max-length-offset 300 --stop-when proved

DROPOUT ?= 0.2
ATTENTION_DROPOUT ?= 0.2
LEARNING_RATE ?= 0.5
# The cells of the grid: all combinations.
DROPOUTS ?= 0.1 0.2 0.3
ATTENTION_DROPOUTS ?= 0.0 0.1 0.2
LEARNING_RATES ?= 0.5

NMTKIT ?= nmtkit
PYTHON ?= python3
CELL := $(WORK)/$(DROPOUT)-$(ATTENTION_DROPOUT)-$(LEARNING_RATE)
CELLS := $(foreach rate,$(LEARNING_RATES),$(foreach weights,$(ATTENTION_DROPOUTS),$(DROPOUTS:%=$(WORK)/%-$(weights)-$(rate))))

.PHONY: test cell grid
.SECONDARY:
.DELETE_ON_ERROR:

test: $(CELL)/test.score
	@cat $<

cell: $(CELL)/valid.json
	@cat $<

grid: $(CELLS:%=%/valid.json)
	@mkdir -p $(WORK)
	PYTHONPATH=../.. $(PYTHON) -m examples.wsj.grid $(WORK) > $(WORK)/grid.md
	@cat $(WORK)/grid.md

$(WORK)/data:
	$(NMTKIT) preprocess -s words -t trees $(addprefix --train ,$(TRAIN)) --valid $(SEEN_VALID) $(PREPROCESS_FLAGS) --out $@

# Made only when training has finished; until then, make resumes it.
$(WORK)/%/trained: | $(WORK)/data
	$(NMTKIT) train $(WORK)/data $(RECIPE) --dropout $(word 1,$(subst -, ,$*)) \
	  --attention-dropout $(word 2,$(subst -, ,$*)) --learning-rate-scale $(word 3,$(subst -, ,$*)) \
	  $(TRAIN_FLAGS) --out $(@D)/run
	touch $@

$(WORK)/%/model: $(WORK)/%/trained
	$(NMTKIT) average-checkpoints $(@D)/run $(AVERAGE_FLAGS) --out $@ --overwrite

$(WORK)/%/valid.parsed: $(WORK)/%/model
	$(NMTKIT) translate $< $(TRANSLATE_FLAGS) < $(SEEN_VALID).words > $@

$(WORK)/%/test.parsed: $(WORK)/%/model
	$(NMTKIT) translate $< $(TRANSLATE_FLAGS) < $(SEEN_TEST).words > $@

# Without words and tags: the model's words may differ, and EVALB takes punctuation with a wrong tag
# for another word.
%.tokens: %.parsed
	$(NMTKIT) trees linearize < $< > $@

$(WORK)/%/valid.trees: $(WORK)/%/valid.tokens
	$(NMTKIT) trees restore --words $(VALID).words < $< > $@

$(WORK)/%/test.trees: $(WORK)/%/test.tokens
	$(NMTKIT) trees restore --words $(TEST).words < $< > $@

$(WORK)/%/valid.json: $(WORK)/%/valid.trees
	$(NMTKIT) score --metric brackets --reference $(VALID).trees --json < $< > $@

$(WORK)/%/test.score: $(WORK)/%/test.trees
	$(NMTKIT) score --metric brackets --reference $(TEST).trees < $< > $@
