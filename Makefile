# People, hooks and CI call the same targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/python -m pip install -qq
# What builds the native code is installed first: in an environment of its own pip would build all of it anew each time.
# The old file goes: where the build fails, NumPy's kernel serves, and not what was built before.
TOOLS := scikit-build-core nanobind $(shell command -v cmake > /dev/null || echo cmake) $(shell command -v ninja > /dev/null || echo ninja)
EDITABLE = $(PIP) $(TOOLS) && rm -f src/pimeter/_native* && $(subst PIP_BUILD_CONSTRAINT=constraints.txt,,$(PIP)) --no-build-isolation -e
NATIVE := CMakeLists.txt $(wildcard src/native/*) src/pimeter/bandwidth.py $(addprefix src/pimeter/_kernels/,reference.py stream.py)
TYPED := src $(wildcard experiments)
BENCHMARKS := $(filter-out %_peers.py %/width_transfer.py,$(sort $(wildcard benchmarks/*_*.py)))
PUNCC := puncc==0.9.3 numpy==1.26.4 pandas==3.0.6  # puncc wants an old numpy, so it is in no extra
RIVER := river==0.26.1  # wants a newer numpy than puncc
TABLES := quantile-forest ngboost==0.5.11 catboost==1.2.10  # these bring plotting and survival packages
FORECASTERS := statsforecast==2.1.1 sktime==1.2.0  # want an older pandas than constraints.txt
SKETCHES := datasketches==5.2.0 ddsketch==3.0.1
MODELS := catboost==1.2.10 keras==3.15.1 lightgbm onnx==1.23.2 onnxruntime==1.31.1 statsmodels xgboost-cpu  # with torch 2 GB
ADAPTERS := mlflow==3.17.2 skpro==2.16.0 sktime==1.2.0  # large, and they want older pandas, pyarrow and importlib_metadata
EXPERIMENTS := fig1 table1 fig2 fig3 table2 table3 fig4 table4 theory

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
# What opens a browser, reads the docs or runs scripts tells nothing about other packages.
QUICK := -m 'not slow' $(addprefix --ignore=tests/test_,docs.py experiments.py gallery.py notebook.py page.py simulate.py)

.PHONY: help demo test test-slow test-lowest test-pure test-models test-adapters coverage mutants simulate fuzz wheel check format docs site bench bench-peers bench-forecasters paper results-status clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.demo $(VENV)/.native ## Train a model on real data, measure it and write a report: pimeter-demo.html
	@$(BIN)/pimeter demo

test: $(VENV)/.dev $(VENV)/.native $(TORCH) ## Run the test suite with all docstrings' examples (ARGS="-k errors" for some; PIMETER_TORCH=1 with torch)
	@$(if $(TORCH),,echo "torch is not asked for: what needs it is skipped. PIMETER_TORCH=1 make test runs it, too.")
	@$(BIN)/python -m pytest -n 2 -rs -m 'not slow' $(ARGS)

test-slow: $(VENV)/.dev $(VENV)/.native $(TORCH) ## Run the other tests: long simulations, experiments, benchmarks, examples and the wheel
	@$(BIN)/python -m pytest -n 2 -rs -m slow tests $(ARGS)

test-lowest: .venv-lowest/.dev ## Run what is quick of the tests with the lowest versions of other packages
	@.venv-lowest/bin/python -m pytest -n 2 -W default --disable-warnings $(QUICK) $(ARGS)

test-pure: .venv-pure/.dev ## Run what is quick of the tests, and the demo, where pimeter was installed without a compiler
	@CXX=/bin/false $(subst $(BIN),.venv-pure/bin,$(PIP)) --force-reinstall --no-deps .
	@cd .venv-pure && bin/pimeter --version | grep 'NumPy kernel' && bin/pimeter demo
	@PYTHONWARNINGS="ignore:pimeter was built without" .venv-pure/bin/python -m pytest -n 2 tests $(QUICK) $(ARGS)

test-models: ## Wrap a model of each library, and run the gallery, in an environment that has them all
	@$(MAKE) --no-print-directory VENV=.venv-models .venv-models/.models
	@KERAS_BACKEND=torch .venv-models/bin/python -m pytest -n 2 -rs tests/test_prediction.py tests/test_gallery.py $(ARGS)

test-adapters: ## Run the tests of MLflow, skpro and sktime, with their own checks, in an environment of their own
	@$(MAKE) --no-print-directory VENV=.venv-adapters .venv-adapters/.adapters
	@MLFLOW_DISABLE_TELEMETRY=true .venv-adapters/bin/python -m pytest -n 2 -rs tests/test_mlflow.py tests/test_skpro.py tests/test_sktime.py $(ARGS)
	@MLFLOW_DISABLE_TELEMETRY=true .venv-adapters/bin/python -m pytest -n 0 -q -W default --disable-warnings tests/test_gallery.py -k 'mlflow or sktime'

coverage: $(VENV)/.dev $(VENV)/.native $(VENV)/.torch ## Lines and branches that tests reach, native code left out
	@$(BIN)/python -m pytest -n 2 -q --cov --cov-report=term:skip-covered --cov-fail-under=95 $(QUICK) $(ARGS)

# mutmut leaves functions with a decorator alone, so that in its copy none remembers its answers.
mutants: .venv-mutants/.mutmut ## Change formulas one by one and see whether tests notice (long)
	@mkdir -p mutants && cp -ru src tests pyproject.toml mutants && rm -f mutants/src/pimeter/_native*
	@grep -l '^@lru_cache' mutants/src/pimeter/conformal/guarantee.py mutants/src/pimeter/coverage.py mutants/src/pimeter/bandwidth.py | xargs -r sed -i '/^@lru_cache/d'
	@cd mutants && ../.venv-mutants/bin/mutmut run --max-children 2 $(ARGS)
	@.venv-mutants/bin/python benchmarks/mutants.py

simulate: $(VENV)/.dev ## Simulate every guarantee for an hour, then make fuzz; goes on where it stopped (ARGS="--minutes 10")
	@$(BIN)/python benchmarks/simulate.py $(ARGS)
	@$(MAKE) --no-print-directory fuzz

wheel: ## Build wheel and sdist, install the wheel into an empty environment and run the README there
	@rm -rf dist .venv-wheel && $(PYTHON) -m venv .venv-wheel
	@$(subst $(BIN),.venv-wheel/bin,$(PIP)) scikit-build-core
	@.venv-wheel/bin/python -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")'
	@PIP_BUILD_CONSTRAINT=constraints.txt .venv-wheel/bin/python -m pip wheel -q --no-deps -w dist dist/*.tar.gz
	@rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	@$(subst $(BIN),.venv-wheel/bin,$(PIP)) dist/*.whl
	@.venv-wheel/bin/python -c 'from pimeter._kernels import native'
	@cd dist && ../.venv-wheel/bin/python -c 'import pimeter as pm; print(pm.quantile([1.0, 2.0, 4.0], 0.5))'
	@$(subst $(BIN),.venv-wheel/bin,$(PIP)) "$$(echo dist/*.whl)[app]" pandas
	@sed -n '/^```python/,/^```/{/^```/!p}' README.md > dist/readme.py && cd dist && ../.venv-wheel/bin/python readme.py

check: $(VENV)/.dev $(TORCH) ## Check format, lint, types, the import contract and the workflows; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows $(wildcard .github/workflows/*.yml)

format: $(VENV)/.dev ## Format the code and fix what the linter can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# With PIMETER_TORCH=1 all examples of the gallery run, else those whose library is installed.
docs: $(VENV)/.docs $(if $(TORCH),$(VENV)/.models) ## Build the documentation into docs/_build; a warning or a link that leads nowhere is an error
	@KERAS_BACKEND=torch OMP_NUM_THREADS=2 $(BIN)/python -m sphinx -q -W --keep-going -b html -c docs . docs/_build
	@$(BIN)/python docs/check_site.py docs/_build
	@echo "Open docs/_build/docs/index.html"

site: $(VENV)/.docs ## Build the docs of this state and of each tagged version into site, with a list to switch between them
	@$(BIN)/python docs/versions.py site

bench: $(VENV)/.dev $(VENV)/.torch ## Run the benchmarks (long)
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; PYTHONPATH=. $(BIN)/python "$$script"; done

bench-peers: ## Compare with MAPIE, crepes, puncc, river, NGBoost and others, in environments of their own (ARGS=--quick)
	@$(MAKE) --no-print-directory VENV=.venv-peers .venv-peers/.peers
	@.venv-peers/bin/python benchmarks/regression_peers.py --save regression_peers_puncc $(ARGS)
	@$(MAKE) --no-print-directory VENV=.venv-river .venv-river/.river
	@.venv-river/bin/python benchmarks/regression_peers.py --save regression_peers $(ARGS)
	@.venv-river/bin/python benchmarks/forecast_peers.py --save $(ARGS)
	@.venv-river/bin/python benchmarks/classification_coverage.py $(ARGS)
	@.venv-river/bin/python benchmarks/classification_sets.py $(ARGS)
	@.venv-river/bin/python benchmarks/sketch_accuracy.py $(ARGS)
	@$(MAKE) --no-print-directory VENV=.venv-tables .venv-tables/.tables
	@.venv-tables/bin/python benchmarks/width_peers.py $(ARGS)
	@.venv-tables/bin/python benchmarks/adaptive_peers.py $(ARGS)
	@.venv-tables/bin/python benchmarks/width_transfer.py $(ARGS)

bench-forecasters: ## Compare with statsforecast's intervals on M4 and read sktime's frames, in an environment of their own (ARGS=--quick)
	@$(MAKE) --no-print-directory VENV=.venv-forecasters .venv-forecasters/.forecasters
	@.venv-forecasters/bin/python benchmarks/m4_peers.py --save $(ARGS)
	@.venv-forecasters/bin/python -m pytest -q -rs -n 0 tests/test_forecasters.py

fuzz: $(VENV)/.dev ## Try all public names and the command line on hostile input, 1e5 examples (long; goes on where it stopped)
	@PIMETER_FUZZ=$${PIMETER_FUZZ:-6200} $(BIN)/python -m pytest -n 0 -q -rs tests/test_fuzz.py tests/test_fuzz_files.py

paper: $(VENV)/.paper ## Repeat the paper's experiments and write their pages (long; goes on where it stopped, ARGS=--fresh computes all anew)
	@set -e; for name in $(EXPERIMENTS) 'theory --columns steps'; do $(BIN)/python -m experiments run $$name $(ARGS); done
	@$(BIN)/python -m experiments report

results-status: $(VENV)/.dev ## List all stored results: current, stale and why, or unknown
	@$(BIN)/python -m experiments status

clean: ## Remove the environment and all caches
	rm -rf $(VENV) .venv-adapters .venv-forecasters .venv-lowest .venv-models .venv-mutants .venv-peers .venv-pure .venv-river .venv-tables .venv-wheel build dist src/pimeter/_native* pimeter-demo.html docs/_build docs/api docs/gallery site .coverage* mutants .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks experiments -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pimeter needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing pimeter and its command line into $(VENV) (once, a minute or so) ..."
	@$(EDITABLE) '.[app]'
	@touch $@ $(VENV)/.native

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing pimeter and its test tools into $(VENV) (once, a minute or so) ..."
	@$(EDITABLE) '.[dev,plot]'
	@touch $@ $(VENV)/.demo $(VENV)/.native

# After the native code or a number in it changed; without a compiler NumPy's kernel goes on.
$(VENV)/.native: $(NATIVE) | $(VENV)/.demo
	@echo "Building the native code ..."
	@$(EDITABLE) . --no-deps
	@touch $@

.venv-pure/.dev: pyproject.toml constraints.txt
	@echo "Installing pimeter without a compiler into .venv-pure (once, a minute or so) ..."
	@$(PYTHON) -m venv .venv-pure
	@CXX=/bin/false $(subst $(BIN),.venv-pure/bin,$(PIP)) '.[dev,plot]'
	@touch $@

.venv-lowest/.dev: pyproject.toml constraints-lowest.txt
	@echo "Installing the lowest versions into .venv-lowest (once, a minute or so) ..."
	@$(PYTHON) -m venv .venv-lowest
	@PIP_CONSTRAINT=constraints-lowest.txt .venv-lowest/bin/python -m pip install -qq -e '.[dev,plot]'
	@touch $@

# mutmut does not know newer versions of pytest. There is no native code here: a compiler cannot read mutants.
.venv-mutants/.mutmut: pyproject.toml constraints.txt
	@$(PYTHON) -m venv .venv-mutants
	@grep -v '^pytest==' constraints.txt > .venv-mutants/constraints.txt
	@PIP_CONSTRAINT=.venv-mutants/constraints.txt .venv-mutants/bin/python -m pip install -qq \
		numpy scipy scikit-learn narwhals hypothesis 'pytest<9' pytest-xdist mutmut==3.8.0
	@CXX=/bin/false .venv-mutants/bin/python -m pip install -qq --no-deps -e .
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what builds the documentation into $(VENV) (once) ..."
	@$(EDITABLE) '.[docs]'
	@touch $@

$(VENV)/.peers: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, a minute or so) ..."
	@grep -v '^numpy==\|^pandas==' constraints.txt > $(VENV)/constraints.txt
	@$(subst PIP_CONSTRAINT=c,PIP_CONSTRAINT=$(VENV)/c,$(PIP)) -e . mapie crepes $(PUNCC)
	@touch $@

$(VENV)/.river: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, a minute or so) ..."
	@$(PIP) -e . mapie crepes confidenceinterval==1.0.5 $(RIVER) $(SKETCHES)
	@touch $@

$(VENV)/.tables: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, a minute or so) ..."
	@$(PIP) -e . mapie crepes $(TABLES)
	@touch $@

$(VENV)/.models: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, some minutes) ..."
	@$(EDITABLE) '.[app,plot,torch]' hypothesis pytest pytest-xdist $(MODELS)
	@touch $@

$(VENV)/.adapters: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and other libraries into $(VENV) (once, some minutes) ..."
	@grep -v '^pandas==\|^pyarrow==\|^importlib_metadata==' constraints.txt > $(VENV)/constraints.txt
	@$(subst PIP_CONSTRAINT=c,PIP_CONSTRAINT=$(VENV)/c,$(PIP)) -e '.[app,plot]' skops hypothesis pytest pytest-xdist $(ADAPTERS)
	@touch $@

$(VENV)/.forecasters: pyproject.toml constraints.txt Makefile | $(BIN)/python
	@echo "Installing pimeter and forecasters into $(VENV) (once, a minute or so) ..."
	@grep -v '^pandas==' constraints.txt > $(VENV)/constraints.txt
	@$(subst PIP_CONSTRAINT=c,PIP_CONSTRAINT=$(VENV)/c,$(PIP)) -e . polars pytest pytest-xdist hypothesis $(FORECASTERS)
	@touch $@

$(VENV)/.paper: $(VENV)/.dev
	@echo "Installing what the paper's experiments need into $(VENV) (once, a minute or so) ..."
	@$(EDITABLE) '.[experiments]'
	@touch $@ $(VENV)/.torch

$(VENV)/.torch: $(VENV)/.dev
	@echo "Installing torch into $(VENV) (once) ..."
	@$(EDITABLE) '.[torch]'
	@touch $@
