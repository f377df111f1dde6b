# make demo and make test work from nothing: they make .venv from the pinned constraints.txt.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two more than there are cores: tests of the crawler mostly wait.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 2)")

# The many processes of the tests share compiled modules, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

# Of make fuzz: for all targets together, and what decides the inputs.
MINUTES ?= 5
SEED ?= 0

.PHONY: demo test test-more test-all check bench fuzz check-deps docs clean constraints

demo: $(READY)  ## the whole story on a made-up web
	$(BIN)/recrawl demo

test: check  ## everything that must hold: style, types, import rule, doctests, tests
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow and not more"

test-more: $(READY)  ## what CI runs besides: the same facts over more seeds, settings and files
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "more and not slow" $$(grep -rl pytest.mark.more tests --include=*.py)

test-all: check  ## all tests, also those that take minutes
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

check: $(READY)  ## the fast part: style, types, import rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## speed, as ratios measured side by side
	$(BIN)/python -m benchmarks

fuzz: $(READY)  ## damaged input for every reader, parser and loader; what breaks is saved in build/fuzz
	$(BIN)/python -m fuzz --minutes $(MINUTES) --seed $(SEED)

AUDIT := build/audit

check-deps: $(READY)  ## licences of all dependencies, and known vulnerabilities (says so if the service cannot be reached)
	$(BIN)/python -m checks.licences
	@test -x $(AUDIT)/bin/pip-audit || ($(PYTHON) -m venv $(AUDIT) && $(AUDIT)/bin/pip install --quiet pip-audit) || true
	$(BIN)/python -m checks.advisories $(AUDIT)/bin/pip-audit

docs: $(READY)  ## the documentation site in build/site, with its generated pages
	$(BIN)/python -m docs.make
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

constraints: $(READY)  ## pin every dependency anew
	$(BIN)/pip-compile --quiet --extra dev --extra crawl --extra docs --extra engine --extra store --strip-extras --no-header --no-annotate --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host --allow-unsafe --output-file constraints.txt pyproject.toml

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,crawl,docs,engine,store]"
	touch $(READY)

clean:
	rm -rf $(VENV) demo build .pytest_cache .mypy_cache .ruff_cache
