# Every target does its own set-up in .venv, from the locked files in requirements/.
# Needed: make, a POSIX system, Python 3.11 or newer with venv, a package registry.

# The first of these that runs, is new enough and can make a venv: a name on the PATH may
# be a shim with nothing behind it. `make PYTHON=/some/python3 test` decides by hand.
CANDIDATES := python3.13 python3.12 python3.11 python3.14 python3 python
SUITABLE   := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON     ?= $(shell for p in $(CANDIDATES); do \
                "$$p" -c '$(SUITABLE)' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV   ?= uv
LOCK  = $(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench crash interop docs lock clean

help:           ## this list
	@sed -n 's/^\([a-z]*\): .*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

demo: $(VENV)/run.stamp         ## a whole story in a few seconds, offline
	@$(BIN)/playhead demo

lint: $(VENV)/dev.stamp         ## ruff (rules and layout) and mypy
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

test: lint                      ## lint and the whole suite: what CI runs
	@$(BIN)/pytest -q

crash: $(VENV)/dev.stamp        ## the crash tests with 300 kills instead of 3
	@PLAYHEAD_KILLS=$${PLAYHEAD_KILLS:-300} $(BIN)/pytest -q -m crash --timeout 1800

bench: $(VENV)/dev.stamp        ## medians and ratios of the hot paths
	@$(BIN)/python tools/bench/run.py

interop: $(VENV)/dev.stamp      ## both ways with the reference package (by hand, not in CI)
	@$(BIN)/python tools/interop/run.py

docs: $(VENV)/dev.stamp         ## write the CLI reference from the help texts
	@$(BIN)/python tools/docs/cli_reference.py

lock:           ## pin the dependencies anew (needs uv)
	$(LOCK) --upgrade --extra dev pyproject.toml requirements/build.in -o requirements/dev.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml requirements/build.in -o requirements/run.txt

clean:          ## remove the venv and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One venv; the stamps say which of the two locked files is in it, so that a second call
# costs nothing. A set-up that fails leaves no stamp and starts over.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "playhead needs Python 3.11 or newer with venv, and found" \
	  "none ($(CANDIDATES)); install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c '$(SUITABLE)' || { echo "$(PYTHON) does not run, is older than Python 3.11" \
	  "or has no venv; name another one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv --clear $(VENV)

$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@ $(VENV)/run.stamp
