# Table 3 of the paper: each row is a model, trained, translated and scored separately.
#
#   make table3                                  all rows, and the table
#   make table3 ROWS='base A1 C3'                some rows, and the table of all finished rows
#   make table3-A1                               one row, such as a job of a scheduler
#   make table3 ROWS=                            only the table
#   make -j 2 table3 SCALE=tiny CORPUS=/folder   all rows, tiny, to check on a CPU that they work
#
# The Makefile includes this file. SCALE=paper is WMT14 English-German. For SCALE=tiny, CORPUS is an
# absolute path with train.en train.de valid.en valid.de; train may be gzipped (.gz).

ALL_ROWS := base A1 A2 A3 A4 B1 B2 C1 C2 C3 C4 C5 C6 C7 D1 D2 D3 D4 E big
ROWS ?= $(ALL_ROWS)
SCALE ?= paper
NMTKIT ?= nmtkit
TABLE3 = PYTHONPATH=../.. $(PYTHON) -m examples.wmt14.table3

ifeq ($(filter paper tiny,$(SCALE)),)
$(error SCALE is $(SCALE); set it to paper or tiny)
endif
ifeq ($(SCALE) $(TOKENIZER),tiny moses)
$(error TOKENIZER has no effect with SCALE=tiny; leave it out)
endif
ifeq ($(SCALE),tiny)
TABLE3_FOLDER = $(WORK)/table3-tiny
TABLE3_DATA = $(TABLE3_FOLDER)/data
DEVELOPMENT = $(CORPUS)/valid
# Threads gain nothing in such a small model; `make -j` runs rows in parallel instead.
export OMP_NUM_THREADS := 1
else
TABLE3_FOLDER = $(WORK)/en-de-$(VARIANT)/table3
TABLE3_DATA = $(WORK)/en-de-$(VARIANT)/data
DEVELOPMENT = $(WORK)/en-de-$(NEWS_COMMENTARY)/text/newstest2013
endif
ROW = $(TABLE3_FOLDER)/%

.PHONY: table3 $(ALL_ROWS:%=table3-%)
.SECONDARY:
.DELETE_ON_ERROR:

table3: $(ROWS:%=table3-%)
	@mkdir -p $(TABLE3_FOLDER)
	$(TABLE3) table $(TABLE3_FOLDER) --scale $(SCALE) > $(TABLE3_FOLDER)/table3.md
	@cat $(TABLE3_FOLDER)/table3.md

$(ALL_ROWS:%=table3-%): table3-%: $(ROW)/score.json

$(ROW)/recipe.toml:
	@mkdir -p $(@D)
	$(TABLE3) recipe $* --scale $(SCALE) > $@

# Made only when training has finished; until then, make resumes it.
$(ROW)/trained: $(ROW)/recipe.toml | $(TABLE3_DATA)
	$(NMTKIT) train $(TABLE3_DATA) --config $< $(TRAIN_FLAGS) --out $(@D)/run
	touch $@

$(ROW)/development.de: $(ROW)/trained
	$(NMTKIT) translate $(@D)/run/last --beam 4 --length-penalty 0.6 --max-length-offset 50 --stop-when proved \
	  < $(DEVELOPMENT).en > $@

$(ROW)/score.json: $(ROW)/development.de
	$(NMTKIT) score --metric bleu,paper-bleu --language-pair en-de --reference $(DEVELOPMENT).de --json < $< > $@

ifeq ($(SCALE),tiny)
$(TABLE3_DATA): PREPROCESS_FLAGS = --vocab-size 4000
$(TABLE3_DATA):
	@test -n '$(CORPUS)' || { echo 'set CORPUS=/folder with train and valid text' >&2; exit 2; }
	$(MAKE) -f corpus.mk CORPUS=$(CORPUS) WORK=$(TABLE3_FOLDER) PREPROCESS_FLAGS='$(PREPROCESS_FLAGS)' $@
else
$(TABLE3_DATA):
	$(MAKE) en-de-data
endif
