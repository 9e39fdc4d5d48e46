# Every command of the project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := build/run
JOBS ?= $(shell nproc)
TARGETS := sm_80 sm_90a sm_100a
MATMUL := tilec/examples/matmul.py:matmul $(foreach x,a b c,--arg '$(x):bf16[?,?:8;?:8,1]')

.DEFAULT_GOAL := help
.PHONY: help install run test test-unit test-mutants test-torch test-jax fuzz sweep-rings test-lit golden test-gpu soak bench tools check types

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(BIN)/python -m compileall -q tilec dialects passes runtime
	touch $@

install: $(VENV)/.installed ## make the virtual environment and install tilec into it

run: install ## compile the matmul for three targets, run it, show where the PTX is and what was decided
	@mkdir -p $(OUT)
	@for target in $(TARGETS); do \
	  $(BIN)/tilec compile $(MATMUL) --target $$target -o $(OUT)/matmul.$$target.ptx && \
	  echo "PTX for $$target: $(OUT)/matmul.$$target.ptx"; \
	done
	@$(BIN)/tilec compile $(MATMUL) --target sm_90a --emit report
	@$(BIN)/python tilec/examples/matmul.py

test: install ## everything that needs no GPU: pytest's and lit's, whatever the first says
	@$(MAKE) --no-print-directory test-unit; unit=$$?; \
	$(MAKE) --no-print-directory test-lit; lit=$$?; \
	echo "pytest: $$([ $$unit = 0 ] && echo passed || echo FAILED), lit: $$([ $$lit = 0 ] && echo passed || echo FAILED)"; \
	[ $$unit = 0 ] && exit $$lit; exit $$unit

# Python keeps what it has compiled, whatever the environment says: tests start it many times.
test-unit test-mutants test-lit: export PYTHONDONTWRITEBYTECODE =
# glibc overwrites what is freed: an op that MLIR is asked about after it was erased ends the process
# in every run, not in some.
test-unit test-mutants test-lit: export MALLOC_PERTURB_ = 165

test-unit: install ## the part of them that is pytest's
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-mutants: install ## the whole of what `make test` takes a share of: broken programs, modes, random sources
	$(BIN)/python -m pytest -n 2 --dist worksteal --every-mutant

test-torch: install ## kernels in PyTorch programs, and Triton's where torch brings it; installs torch into the virtual environment
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch
	$(BIN)/python -m pytest -n 2 --dist worksteal $$(grep -rlE --include='test_*.py' 'importorskip."(torch|triton)' test)

test-jax: install ## kernels inside jax.jit; installs JAX, half a gigabyte, into the virtual environment
	$(BIN)/python -m pip install --quiet --disable-pip-version-check jax
	$(BIN)/python -m pytest -n 2 --dist worksteal $$(grep -rl --include='test_*.py' 'importorskip."jax' test)

sweep-rings: install ## every ring at full length, all targets, check and late mode: a line a kernel (WORDS="attention ops")
	$(BIN)/python -W ignore test/long_rings/ring_sweep.py --jobs $(JOBS) $(WORDS)

fuzz: install ## break inputs at random, and run random programs, for an hour and more (test/robustness/fuzz.py)
	$(BIN)/python test/robustness/fuzz.py texts --count 20000 --jobs $(JOBS)
	$(BIN)/python test/robustness/fuzz.py kernels --count 5000 --jobs $(JOBS)
	$(BIN)/python test/robustness/fuzz.py programs --count 2000 --jobs $(JOBS)
	$(BIN)/python test/robustness/choices.py --count 1000
	$(BIN)/python test/random_functions/run_kernels.py --count 2000

test-lit: install ## the part of them that is lit's
	$(BIN)/lit -sv test

golden: install ## write the golden PTX files anew; read the diff before committing it
	$(BIN)/python -m pytest test/golden --update-golden

test-gpu: install ## the tests that need an NVIDIA GPU
	$(BIN)/python test/gpu/build.py
	$(BIN)/python test/gpu/run_all.py
	$(BIN)/python test/gpu/test_runtime.py
	$(BIN)/python test/gpu/test_tuned_products.py
	$(BIN)/python test/gpu/test_compiled_products.py
	$(BIN)/python test/gpu/test_blackwell_device.py

soak: install ## minutes of kernels that overlap, beside torch's, on this machine's GPU
	$(BIN)/python test/gpu/soak.py --build
	$(BIN)/python test/gpu/soak.py

bench: install ## compile the benches here, then time tilec, Triton and torch on this machine's GPU
	$(BIN)/python test/bench/build.py
	$(BIN)/python test/bench/run.py

$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/ruff --version
	$(BIN)/pyright --version
	touch $@

tools: $(VENV)/.tools ## install ruff and pyright, with its node, into the virtual environment

check: tools ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: tools ## pyright over the packages
	$(BIN)/python test/types/typecheck.py
