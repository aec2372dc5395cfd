# People, hooks and CI call the same targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/python -m pip install -qq
TYPED := src $(wildcard experiments)
BENCHMARKS := $(filter-out %_peers.py,$(sort $(wildcard benchmarks/*_*.py)))
PUNCC := puncc==0.9.3 numpy==1.26.4 pandas==3.0.6  # puncc wants an old numpy, so it is in no extra
RIVER := river==0.26.1  # wants a newer numpy than puncc
EXPERIMENTS := 'fig1' 'table1' 'fig2' 'fig3' 'table2' 'table3' 'table3 --columns coverage' 'fig4' 'table4'

# Real data beside the checkout is used unless PIMETER_DATA says otherwise (PIMETER_DATA= for none).
ifeq ($(origin PIMETER_DATA),undefined)
ifneq ($(wildcard ../shared/data),)
export PIMETER_DATA := $(abspath ../shared/data)
endif
endif

# scikit-learn tests estimators with other kinds of arrays only where SciPy is told to support them.
export SCIPY_ARRAY_API := 1

# torch is large, so only CI and those who ask for it get it.
ifneq ($(filter 1,$(PIMETER_TORCH) $(PIMETER_CI)),)
TORCH := $(VENV)/.torch
endif

.DELETE_ON_ERROR:
.PHONY: help demo test check format docs bench bench-peers paper clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.demo ## Train a model on real data, measure it and write a report: pimeter-demo.html
	@$(BIN)/pimeter demo

test: $(VENV)/.dev $(TORCH) ## Run the whole test suite with all examples (ARGS="-k errors" for some; PIMETER_TORCH=1 with torch)
	@$(if $(TORCH),,echo "torch is not asked for: what needs it is skipped. PIMETER_TORCH=1 make test runs it, too.")
	@$(BIN)/python -m pytest -n 2 -rs $(ARGS)

check: $(VENV)/.dev $(TORCH) ## Check format, lint, types and the import contract; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports

format: $(VENV)/.dev ## Format the code and mend what the linter can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/.docs ## Build the documentation into docs/_build; a warning is an error
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs . docs/_build
	@echo "Open docs/_build/docs/index.html"

bench: $(VENV)/.dev ## Run the benchmarks (long)
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; PYTHONPATH=. $(BIN)/python "$$script"; done

bench-peers: ## Compare with MAPIE, crepes, puncc, river and confidenceinterval, in environments of their own (ARGS=--quick)
	@$(MAKE) --no-print-directory VENV=.venv-peers .venv-peers/.peers
	@.venv-peers/bin/python benchmarks/regression_peers.py --save regression_peers_puncc $(ARGS)
	@$(MAKE) --no-print-directory VENV=.venv-river .venv-river/.river
	@.venv-river/bin/python benchmarks/forecast_peers.py --save $(ARGS)
	@.venv-river/bin/python benchmarks/classification_coverage.py $(ARGS)
	@.venv-river/bin/python benchmarks/classification_sets.py $(ARGS)

paper: $(VENV)/.paper ## Repeat the paper's experiments (long)
	@set -e; for name in $(EXPERIMENTS); do $(BIN)/python -m experiments run $$name; done

clean: ## Remove the environment and all caches
	rm -rf $(VENV) .venv-peers .venv-river build dist pimeter-demo.html docs/_build .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks experiments -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pimeter needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing pimeter and its command line into $(VENV) (once, a minute or so) ..."
	@$(PIP) -e '.[app]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing pimeter and its test tools into $(VENV) (once, a minute or so) ..."
	@$(PIP) -e '.[dev,plot]'
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what builds the documentation into $(VENV) (once) ..."
	@$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/.peers: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, a minute or so) ..."
	@grep -v '^numpy==\|^pandas==' constraints.txt > $(VENV)/constraints.txt
	@$(subst PIP_CONSTRAINT=c,PIP_CONSTRAINT=$(VENV)/c,$(PIP)) -e . mapie crepes $(PUNCC)
	@touch $@

$(VENV)/.river: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, a minute or so) ..."
	@$(PIP) -e . mapie confidenceinterval==1.0.5 $(RIVER)
	@touch $@

$(VENV)/.paper: $(VENV)/.dev
	@echo "Installing what the paper's experiments need into $(VENV) (once, a minute or so) ..."
	@$(PIP) -e '.[experiments]'
	@touch $@ $(VENV)/.torch

$(VENV)/.torch: $(VENV)/.dev
	@echo "Installing torch into $(VENV) (once) ..."
	@$(PIP) -e '.[torch]'
	@touch $@
