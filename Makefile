# Everything sets itself up: a Python 3.11+ and make are all that a new machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.run-ready
DEV    := $(VENV)/.dev-ready
BENCH  := $(VENV)/.bench-ready
JOBS   ?= auto
EVERY  := --extra demo --extra rest --extra mcp --extra auth --extra otel
LOCK   := $(BIN)/uv pip compile pyproject.toml requirements/build.in --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header --no-annotate -q

export PYTHONDONTWRITEBYTECODE =

.PHONY: run demo test agents check fix bench lock clean help

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(RUN): requirements/run.txt pyproject.toml scripts/setup
	@scripts/setup "$(PYTHON)" $(VENV) requirements/run.txt
	@touch $@

$(DEV): requirements/dev.txt pyproject.toml scripts/setup
	@scripts/setup "$(PYTHON)" $(VENV) requirements/dev.txt
	@touch $@ $(RUN)

$(BENCH): requirements/bench.txt pyproject.toml scripts/setup
	@scripts/setup "$(PYTHON)" $(VENV) requirements/bench.txt
	@touch $@ $(DEV) $(RUN)

run: $(RUN) ## Start interpose for this folder (the gateway on 127.0.0.1:4747)
	@$(BIN)/interpose up

demo: $(RUN) ## See it work: no key, no network
	@$(BIN)/interpose demo

test: $(DEV) ## Run the tests
	@$(BIN)/python -m pytest -n $(JOBS) -q

agents: $(DEV) ## Run real agents through the gateway (installs them once, from npm)
	@$(BIN)/python scripts/agents.py
	@$(BIN)/python -m pytest tests/agents -m agents -n $(JOBS) -o timeout=200 -q

check: $(DEV) ## Format, lint, types, import contracts, shape
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/shape.py

fix: $(DEV) ## Format and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(BENCH) ## Run the benchmarks (ratios against peers, never asserted)
	@$(BIN)/python -m pytest benchmarks -q -o addopts="--import-mode=importlib" -o pythonpath="benchmarks" -o python_files="*.py" -o timeout=0

lock: $(DEV) ## Write the locked requirements anew
	@$(LOCK) --extra demo --upgrade -o requirements/run.txt
	@$(LOCK) $(EVERY) --group dev -c requirements/run.txt -o requirements/dev.txt
	@$(LOCK) $(EVERY) --group dev --group bench -c requirements/dev.txt -o requirements/bench.txt

clean: ## Remove what was set up and built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
