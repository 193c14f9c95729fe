# Lane Lab. Every target sets up what it needs in a project-local .venv: a fresh machine needs only Python and make.

PYTHON ?= python3
VENV   ?= .venv
# Where to get a CPU build of torch from, if pip would pull CUDA (an index that PyTorch publishes); empty: PyPI.
TORCH_INDEX ?=
PORT   ?= 8800

BIN  := $(VENV)/bin
PIP  := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c lib/constraints.txt
LAB  := $(BIN)/lanelab
# pip compiles every file of torch and transformers (a minute); this compiles what a run imports, in parallel.
# A file that does not compile is some package's template: no reason to stop.
COMPILE := $(BIN)/python -m compileall -q -j 0 -x '/tests?/|/debugpy/|/transformers/models/(?!auto|mimo|minimax|deepseek|qwen3)|/torch/(_inductor|testing|_dynamo|distributed|onnx|ao)/|/sympy/' \
  $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') lib/lanelab >/dev/null 2>&1 || true
SAY  := @printf '%s\n'

.DEFAULT_GOAL := help
.PHONY: help setup lab lane lane-vllm campaign site serve test check bench lint format clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- environments: core renders and reads, mini also serves the embedded model, dev also tests -----------------

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON): set PYTHON=… to a Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: set PYTHON=… to 3.11 or newer" >&2; exit 1; }
	$(SAY) "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml lib/constraints.txt | $(VENV)/bin/python
	$(SAY) "installing lanelab"
	@$(PIP) -e .
	@$(COMPILE)
	@touch $@

$(VENV)/.mini: $(VENV)/.core
	$(SAY) "installing the embedded lane (torch, transformers)"
	@$(if $(TORCH_INDEX),$(BIN)/pip install --quiet --index-url $(TORCH_INDEX) "torch==$$(sed -n 's/^torch==//p' lib/constraints.txt)")
	@$(PIP) -e '.[mini]'
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(VENV)/.mini
	$(SAY) "installing the tests' tools"
	@$(PIP) -e '.[mini,dev]'
	@touch $@

setup: $(VENV)/.dev ## the whole environment, with hooks when this is a git checkout
	@if [ -d .git ]; then $(BIN)/pre-commit install >/dev/null; fi

# --- using it -------------------------------------------------------------------------------------------------

lab: $(VENV)/.mini ## JupyterLab on the notebooks
	$(BIN)/jupyter lab --notebook-dir=notebooks

lane: $(VENV)/.mini ## bring the embedded lane up and leave it running (lanelab lane down mini)
	$(LAB) lane up mini

lane-vllm: $(VENV)/.core ## set the real vLLM up on the CPU and leave it running (lanelab lane down vllm-cpu)
	@$(BIN)/python -m lanelab.lane.vllm_cpu $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))
	@$(LAB) lane up vllm-cpu --timeout-s 600

campaign: $(VENV)/.mini ## run the campaign `here` on an embedded lane, then build the site (FULL=1: every size)
	@$(LAB) campaign run here --ephemeral $(if $(FULL),--preset full,--preset quick)
	@$(LAB) site build

site: $(VENV)/.core ## build the website into site/_site from the receipts, measuring nothing
	@$(LAB) site build

serve: site ## build the site and serve it on this machine (PORT=8800)
	@echo "http://127.0.0.1:$(PORT)/"; $(BIN)/python -m http.server --bind 127.0.0.1 --directory site/_site $(PORT)

# --- keeping it right -----------------------------------------------------------------------------------------

lint: $(VENV)/.dev ## format, lint and types
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy --no-error-summary
	@$(BIN)/python lib/dev/environment.py --check

format: $(VENV)/.dev ## rewrite the sources as the formatter wants them
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

test: $(VENV)/.dev lint ## what CI runs: format, lint, types and the tests (under 6 minutes on 2 cores)
	@$(BIN)/pytest -n auto --dist loadfile -m "not slow"

check: $(VENV)/.dev lint ## everything: all tests, all receipts, the site and its gate, the benchmarks
	@$(BIN)/pytest -n auto --dist loadfile -m "not slow" && $(BIN)/pytest -m slow
	@$(LAB) verify
	@$(LAB) site build && $(LAB) site check
	@$(MAKE) --no-print-directory bench

bench: $(VENV)/.dev ## the benchmarks, one JSON line each
	@for file in lib/benchmarks/*.py; do $(BIN)/python $$file | tail -n 1 || exit 1; done

clean: ## remove what is built and measured here (not the tracked receipts); running lanes are taken down first
	@if [ -x $(LAB) ]; then $(LAB) lane down --all || true; fi
	rm -rf $(VENV) .venv-vllm site/_site site/notebooks-out site/.quarto .cache data/campaigns/here .pytest_cache .mypy_cache .ruff_cache .hypothesis
