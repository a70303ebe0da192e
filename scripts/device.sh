#!/usr/bin/env bash
# The measurements on a GPU, each step within ten minutes on a machine without a network. docs/how-to/gpu.md says what they are.
#   scripts/device.sh first|second|gate       results go below $OUT, or device-results/
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-device-results}
python=${PYTHON:-python3}
export PYTHONUNBUFFERED=1
rooms=$(printf "$PWD/%s:" accelopt_lsp agent memory_db profiling nkibench benchmarks)
export PYTHONPATH="${rooms%:}${PYTHONPATH:+:$PYTHONPATH}"

measure() { # seconds, then options; exit code 1 means that a goal is missed: the page says which
    local seconds=$1
    shift
    "$python" -m accelopt_lsp.cli.main bench device --out "$out" --seconds "$seconds" "$@" || [ $? -eq 1 ]
}

case "${1:-}" in
first) measure 540 --part worker --part timing --part estimates ;;
second) measure 540 --part tricks ;;
gate)
    mkdir -p "$out"
    timeout 560 "$python" -m accelopt_lsp.cli.main bench gate --corpus benchmarks/gate_corpus --only triton \
        | tee "$out/gate.txt" || true
    ;;
*)
    sed -n '2,3p' "$0"
    exit 2
    ;;
esac
