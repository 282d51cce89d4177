# make install · make run [OUT=DIR] · make test · make check · make golden     each makes its environment itself
PYTHON ?= python3
OUT ?= out
VENV := .venv
PY := $(VENV)/bin/python
INSTALL := src/eagle_bench/builtin/installing.py
CACHE ?= $(or $(EAGLE_BENCH_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/eagle-bench)
VLLM := $(shell sed -n 's/^ *"vllm==\([0-9.]*\)".*/\1/p' pyproject.toml)
PYTEST := $(PY) -m pytest
CORE := tests/unit
FAULTS := tests/e2e/test_fault_matrix.py

# Byte code is kept, whatever the machine says: without it each process compiles Google's clients anew, 12 s of CPU.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install run test test-faults test-browser test-container check golden docs lock coverage-table clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

install: $(VENV)/installed  ## .venv with the eagle-bench command in it

run: install  ## the built-in example on this machine: OUT=DIR for its results
	$(VENV)/bin/eagle-bench run --out $(OUT)

test: $(VENV)/tested check  ## every tier but faults, browser and containers; the end-to-end tier takes some minutes
	$(PYTEST) -n auto --dist worksteal tests/simulation tests/contract tests/pipeline tests/docs tests/packaging
	$(PYTEST) -n auto --dist loadfile tests/e2e --ignore $(FAULTS)

test-faults: $(VENV)/tested  ## the whole pipeline under each fault of docs/fault-matrix.md
	$(PYTEST) $(FAULTS)

test-browser: $(VENV)/tested tests/browser/node_modules docs  ## report and site in headless Chromium (needs chromium and npm)
	$(PYTEST) tests/browser

test-container: $(VENV)/tested  ## cloudbuild.yaml and the pipeline in its images (needs Docker; some minutes)
	$(PYTEST) tests/container

check: $(VENV)/tested  ## lint, types and the core's tests, in under a minute
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(PYTEST) -q -n auto --dist worksteal $(CORE)

golden: $(VENV)/tested  ## write the golden files and docs/reference afresh; the run fails, so that nobody takes it for a test
	UPDATE_GOLDEN=1 $(PYTEST) -q -m golden tests --ignore $(FAULTS)

docs: $(VENV)-docs/installed  ## the documentation as a site in site/; a broken link fails the build
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --clean

coverage-table: $(VENV)/tested  ## the table of docs/method.md: how often intervals hold the truth; some minutes
	$(PY) tests/coverage_table.py --write docs/method.md

lock:  ## the pinned and hashed package lists, from their .in files (needs uv)
	uv pip compile -q --no-deps --generate-hashes --python-version 3.11 containers/bench/requirements.in -o containers/bench/requirements.txt
	uv pip compile -q --no-deps --generate-hashes --python-version 3.11 -c containers/bench/requirements.txt containers/bench/slim-requirements.in -o containers/bench/slim-requirements.txt
	uv pip compile -q --generate-hashes --python-version 3.11 containers/bench/build-requirements.in -o containers/bench/build-requirements.txt
	uv pip compile -q --no-deps --generate-hashes --python-version 3.11 src/eagle_bench/builtin/engine-requirements.in -o src/eagle_bench/builtin/engine-requirements.txt
	uv pip compile -q --no-deps --generate-hashes --python-version 3.11 tests/requirements.in -o tests/requirements.txt
	uv pip compile -q --generate-hashes --python-version 3.11 docs/requirements.in -o docs/requirements.txt

clean:  ## the environment and what tools left
	rm -rf $(VENV) $(VENV)-docs site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The accessibility checker, pinned and hashed.
tests/browser/node_modules: tests/browser/package-lock.json
	npm ci --silent --no-audit --no-fund --prefix tests/browser
	@touch $@

# MkDocs lives by itself: it shares nothing with what is measured.
$(VENV)-docs/installed: docs/requirements.txt
	@$(PYTHON) -m venv $(VENV)-docs
	@$(PYTHON) $(INSTALL) $(VENV)-docs/bin/python --no-deps --require-hashes -r docs/requirements.txt
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The list is whole (--no-deps): it leaves out what vLLM only needs for images, video and GPUs.
$(VENV)/packages: containers/bench/requirements.txt containers/bench/build-requirements.txt containers/bench/build_vllm.sh | $(VENV)/bin/python
	@echo "making $(VENV): 1.7 GB on disk, a few minutes"
	@echo "1/4 PyTorch for the CPU, 0.8 GB"
	@$(PY) $(INSTALL) $(PY) torch
	@echo "2/4 vLLM $(VLLM), the client without kernels, 0.1 GB; built from source once, kept in $(CACHE)/wheels"
	@$(PY) $(INSTALL) -- containers/bench/build_vllm.sh $(PY) $(VLLM) $(CACHE)/wheels
	@$(PY) $(INSTALL) $(PY) --no-compile --no-deps $(CACHE)/wheels/vllm-$(VLLM)-*.whl
	@echo "3/4 $$(grep -c '^[a-zA-Z].*==' containers/bench/requirements.txt) packages, pinned by hash, 0.8 GB"
	@$(PY) $(INSTALL) $(PY) --no-compile --no-deps --require-hashes -r containers/bench/requirements.txt
	@touch $@

$(VENV)/installed: $(VENV)/packages pyproject.toml
	@echo "4/4 eagle-bench"
	@$(PY) $(INSTALL) $(PY) --no-compile --no-deps -e .
	@touch $@

$(VENV)/tested: $(VENV)/installed tests/requirements.txt
	@echo "$$(grep -c '^[a-zA-Z].*==' tests/requirements.txt) packages for the tests, pinned by hash, 0.4 GB"
	@$(PY) $(INSTALL) $(PY) --no-compile --no-deps --require-hashes -r tests/requirements.txt
	@touch $@
