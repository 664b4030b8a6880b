# Every target sets up what it needs by itself, into .venv and .build; nothing outside this folder is changed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?=
N ?= 300
ROUNDS ?= 20
TESTS ?= tests
later = @echo 'make $@: arrives with a later version of Hostler; see CHANGELOG.md' >&2; exit 2

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup:  ## set up .venv with the pinned packages
	@PYTHON='$(PYTHON)' .ci/setup

.PHONY: demo
demo: setup  ## the main job on this machine: a rolling reboot campaign with faults
	@.venv/bin/hostler demo

.PHONY: test
test: setup  ## all tests (TESTS=tests/unit for some of them)
	@.venv/bin/python -m pytest $(TESTS)

.PHONY: check
check: setup  ## lint, types, import directions, API, generated code, tidiness
	@.ci/check

.PHONY: fmt
fmt: setup  ## put the code into the house format
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format --quiet .

.PHONY: generate
generate: setup  ## renew the generated code from the .proto files
	@.venv/bin/python protos/generate.py

.PHONY: lock
lock:  ## renew .ci/constraints.txt from pyproject.toml (LOCK=--upgrade for the newest versions)
	@.ci/lock $(LOCK)

.PHONY: wheel
wheel: setup  ## the wheel of all programs, into dist/
	@.venv/bin/python -m hatchling build --target wheel

.PHONY: bench
bench: setup  ## figures, one JSON object a line (BENCH=p1 for one, SMALL=1 to see that it works, RUNS=5)
	@PYTHONPATH=tests .venv/bin/python -m bench $(BENCH) $(if $(SMALL),--small) $(if $(RUNS),--runs $(RUNS))

.PHONY: seeds
seeds:  ## simulator seeds (later version)
	$(later)

.PHONY: chaos
chaos:  ## real processes under faults (later version)
	$(later)

.PHONY: demo-cluster
demo-cluster:  ## clusters of GPUs kept alive (later version)
	$(later)

.PHONY: fleet
fleet:  ## the multi-VM fleet (later version)
	$(later)

.PHONY: clean
clean:  ## remove what the targets above made (not .venv)
	@rm -rf .build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist .ci/node_modules
	@find agent coordinator protos tests -name __pycache__ -type d -prune -exec rm -rf {} +
