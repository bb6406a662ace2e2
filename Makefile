# `make` prints what there is. Everything is installed into .venv and built in target; nothing else is written to.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := $(shell git ls-files --cached --others --exclude-standard -- \
	pyproject.toml README.md LICENSE Cargo.toml Cargo.lock build_backend catalog engramsql)

.DEFAULT_GOAL := help
.PHONY: help demo develop test lint format typing rust python docs bench clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## Install into .venv and run a small demonstration in engramsql-demo
	$(BIN)/engramsql demo engramsql-demo

develop: $(VENV)/created ## Install into .venv in place: Python changes show at once, Rust changes after another `make develop`
	$(PIP) install --quiet --editable '.[test]'
	@touch $(VENV)/test-tools

test: lint typing rust python docs ## Everything that CI runs

lint: $(VENV)/test-tools ## Format and lint checks, Python and Rust
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

format: $(VENV)/test-tools ## Format everything
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all

typing: $(VENV)/test-tools ## Type checks
	$(BIN)/mypy

rust: ## Tests of the crates
	cargo test --locked --workspace

python: $(VENV)/test-tools ## Tests of the installed package, in random order, warnings as errors
	$(BIN)/pytest
	$(BIN)/pytest --doctest-modules --pyargs engramsql

docs: ## Build the Rust documentation, warnings as errors
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps

clean: ## Remove what was built
	cargo clean
	rm -rf $(VENV) dist build engramsql-demo engramsql/catalog engramsql/engine/_native*.so \
		engramsql/udf/engramsql.duckdb_extension .mypy_cache .ruff_cache .pytest_cache

$(VENV)/created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# One wheel for everything: the tests run on what users would install.
$(VENV)/installed: $(VENV)/created $(SOURCES)
	rm -rf dist
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	$(PIP) install --quiet --force-reinstall --no-deps dist/engramsql-*.whl
	$(PIP) install --quiet dist/engramsql-*.whl
	@touch $@

$(VENV)/test-tools: $(VENV)/installed
	$(PIP) install --quiet "$$(echo dist/engramsql-*.whl)[test]"
	@touch $@
