# `make` prints what there is. Everything is installed into .venv (and .venv-oldest, for the tests) and built in
# target and dist.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One process per processor; more than four would wait for the few long tests. One that has no tests left takes half of
# what another still has.
PROCESSES := --numprocesses auto --maxprocesses 4 --dist worksteal
tracked = $(shell git ls-files --cached --others --exclude-standard -- $(1))
COMPILED := $(call tracked,pyproject.toml Cargo.toml Cargo.lock build_backend catalog engramsql/engine/native engramsql/udf/native)
PACKAGED := $(COMPILED) $(call tracked,README.md LICENSE engramsql)

.DEFAULT_GOAL := help
.PHONY: help demo install test lint format typing rust python paths docs reference bench clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## Install into .venv and run a small demonstration in engramsql-demo
	$(BIN)/engramsql demo engramsql-demo

install: $(VENV)/test-tools ## Install into .venv in place, with the test tools: Python changes show at once

test: lint typing rust python docs ## Everything that CI runs

# Warnings of the C++ compiler are errors where the project is checked, not where a user builds with a compiler of theirs.
lint rust docs: export ENGRAMSQL_CXX_STRICT := 1

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

python: $(VENV)/test-tools dist/built ## Tests of the package and its wheel, in random order, warnings as errors
	$(BIN)/pytest $(PROCESSES)
	$(BIN)/pytest --doctest-modules --doctest-glob='*.md' engramsql README.md docs
	PYTEST_ADDOPTS='$(PROCESSES)' $(BIN)/python tests/paths.py --quick

paths: $(VENV)/test-tools dist/built ## The whole suite once per reader and once per kernel (half an hour)
	PYTEST_ADDOPTS='$(PROCESSES)' $(BIN)/python tests/paths.py

docs: ## Build the Rust documentation, warnings as errors
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps

reference: $(VENV)/installed ## Write docs/sql.md and docs/functions anew after a change of the SQL functions
	$(BIN)/python docs/reference.py

bench: $(VENV)/installed ## Measure on this machine
	mkdir -p build/benchmarks
	$(BIN)/engramsql bench all --json build/benchmarks/results.json

clean: ## Remove what was built
	cargo clean
	rm -rf $(VENV) .venv-oldest dist build engramsql-demo engramsql/catalog engramsql/engine/_native*.so \
		engramsql/udf/engramsql.duckdb_extension .mypy_cache .ruff_cache .pytest_cache

$(VENV)/created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Release builds, shared by both: the second one only packs.
$(VENV)/installed: $(VENV)/created $(COMPILED)
	@echo 'installing into $(VENV): pip fetches Python packages and cargo its crates over the network, then two release'
	@echo 'libraries are compiled, which the first time takes a few minutes; each crate is named as it is compiled.'
	@echo 'What it warns of on the way, a missing patchelf for the rpath and a build-backend that is not maturin itself, is meant so'
	$(PIP) install --verbose --editable .
	@touch $@

dist/built: $(VENV)/installed $(PACKAGED)
	rm -rf dist
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@touch $@

$(VENV)/test-tools: $(VENV)/installed
	$(PIP) install --quiet --editable '.[test]'
	@touch $@
