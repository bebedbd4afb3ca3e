# Development tasks; `make` lists them. All run in the environment $(VENV), which is created when it
# is first needed, and updated when pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV ?= .venv
SEED ?= 1
COUNT ?= 60
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Where it is set, as in many containers, each process of the tests compiles all modules again.
test test-fast: export PYTHONDONTWRITEBYTECODE =

.PHONY: help install demo test test-fast test-system test-faults mutants check format docs golden messages bench bench-gpu dist clean

help:  ## list the tasks
	@sed -n 's/^\([a-z0-9%-]*\):.*##  *\(.*\)/\1\t\2/p' Makefile | expand -t 14

install: $(INSTALLED)  ## create the environment and install nmtkit in it
	@echo "nmtkit is installed: $(VENV)/bin/nmtkit --help"

demo: $(INSTALLED)  ## a small example from text to score: preprocess, train, average, translate, score
	PATH="$$(cd "$(BIN)" && pwd):$$PATH" examples/demo/run.sh

test: $(INSTALLED)  ## a sample of all cases, in seven minutes on two cores
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile

test-fast: $(INSTALLED)  ## the unit tests, in about a minute on two cores
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/unit -n auto --dist loadfile

test-system: $(INSTALLED)  ## all cases of what is sampled, and the slow tests: tasks learnt, whole recipes
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/system -n auto --dist loadfile
	OMP_NUM_THREADS=1 NMTKIT_THOROUGH=1 $(BIN)/pytest -n auto --dist loadfile \
	  -m "sampled or thorough or hypothesis"

test-faults: $(INSTALLED)  ## kill training at random moments: 200 times, and 60 times on three ranks
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.storm --rounds 200
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.storm --rounds 60 --ranks 3

mutants: $(INSTALLED)  ## change the code in COUNT drawn places, and count the changes that tests notice
	OMP_NUM_THREADS=1 nice $(BIN)/python -m tests.mutation.run --seed $(SEED) --count $(COUNT)

check: $(INSTALLED)  ## formatting, lint, types, architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest tests/architecture

format: $(INSTALLED)  ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(INSTALLED)  ## write docs/cli.md and docs/migrating.md from the code
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/make_migrating.py

golden: $(INSTALLED)  ## compare results and files with the frozen examples
	$(BIN)/pytest tests/golden

messages: $(INSTALLED)  ## write tests/golden/messages.txt, all messages that tests provoke, for review
	OMP_NUM_THREADS=1 NMTKIT_THOROUGH=1 $(BIN)/pytest -n auto --dist loadfile --write-messages replace \
	  $$(grep -rl --include='test_*.py' 'tests\.messages' tests)

bench: $(INSTALLED)  ## the benchmarks that need no other corpus or toolkit
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m examples.demo.corpus build/corpus
	$(BIN)/python -m benchmarks.preprocess --train build/corpus/train --valid build/corpus/valid \
	  -s en -t de --vocab-size 4000 --sample-lines 20000 --times 3 60
	$(BIN)/python -m benchmarks.train --rounds 1
	$(BIN)/python -m benchmarks.memory

bench-gpu: $(INSTALLED)  ## the GPU benchmarks: half an hour on an H100 or H200
	$(BIN)/python -m benchmarks.gpu

dist: $(INSTALLED)  ## build the source distribution and its wheel, in dist/
	rm -rf dist
	mkdir dist
	$(BIN)/python -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' > /dev/null
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
	  --wheel-dir dist dist/*.tar.gz
	@ls dist/*

wmt14-%: $(INSTALLED)  ## WMT14 from download to score: wmt14-en-de-base, -en-de-big, -en-fr-base, -en-fr-big, -en-de-hour
	PATH="$$(cd "$(BIN)" && pwd):$$PATH" $(MAKE) -C examples/wmt14 $*

table%: $(INSTALLED)  ## table 3 of the paper, or a row: table3-A1; SCALE=tiny CORPUS=/folder on a CPU
	PATH="$$(cd "$(BIN)" && pwd):$$PATH" $(MAKE) -C examples/wmt14 $@

wsj-%: $(INSTALLED)  ## parsers: wsj-only, wsj-semi-supervised, wsj-craft; each with -cell or -grid
	PATH="$$(cd "$(BIN)" && pwd):$$PATH" $(MAKE) -C examples/wsj $(if $(filter only%,$*),$@,$*)

clean:  ## remove everything that these tasks made, except wmt14 and wsj
	rm -rf $(VENV) demo build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@command -v $(PYTHON) > /dev/null || { \
	    echo "make: no $(PYTHON); Python 3.11 or newer is needed: sudo apt install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "make: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
	    echo "make: $(PYTHON) cannot make environments: sudo apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
