#!/usr/bin/env bash
# The measurements on a GPU, each step within ten minutes on a machine without a network. docs/how-to/gpu.md says what they are.
#   scripts/device.sh prepare                       here, with a network: fills .device/
#   scripts/device.sh first|second|third|gate       there; results go below $OUT, or device-results/
set -euo pipefail
cd "$(dirname "$0")/.."
carried=.device
out=${OUT:-device-results}
python=${PYTHON:-python3}
export PYTHONUNBUFFERED=1
rooms=$(printf "$PWD/%s:" accelopt_lsp agent memory_db profiling nkibench benchmarks)
export PYTHONPATH="${rooms%:}${PYTHONPATH:+:$PYTHONPATH}"

site() { # wheels of the evaluators that lie in .device/, in a folder of their own
    ls $carried/wheels/*.whl >/dev/null 2>&1 || return 0
    "$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
        --target /tmp/accelopt-evaluators $carried/wheels/*.whl || {
        echo "The wheels do not fit this Python: evaluators that need them are left out." >&2
        return 0
    }
    export PYTHONPATH="$PYTHONPATH:/tmp/accelopt-evaluators"
}

measure() { # seconds, then options; exit code 1 means that a goal is missed: the page says which
    local seconds=$1
    shift
    "$python" -m accelopt_lsp.cli.main bench device --out "$out" --seconds "$seconds" "$@" || [ $? -eq 1 ]
}

case "${1:-}" in
prepare)
    mkdir -p $carried/wheels $carried/KernelBench
    "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_24_x86_64 --platform manylinux_2_17_x86_64 \
        --platform manylinux2014_x86_64 -d $carried/wheels \
        flashinfer-bench==0.1.2 apache-tvm-ffi docstring-parser safetensors pydantic==2.14.3 pydantic-core==2.50.4 \
        annotated-types typing-inspection
    git -C "${KERNELBENCH:?a clone of ScalingIntelligence/KernelBench}" archive HEAD src | tar -x -C $carried/KernelBench
    du -sh $carried
    ;;
first) measure 540 --part worker --part timing --part estimates ;;
second) measure 540 --part tricks --part facts ;;
third)
    site
    if [ -d $carried/KernelBench/src ]; then
        measure 540 --part evaluators --kernelbench $carried/KernelBench
    else
        measure 540 --part evaluators
    fi
    ;;
gate)
    mkdir -p "$out"
    timeout 560 "$python" -m accelopt_lsp.cli.main bench gate --corpus benchmarks/gate_corpus --only triton \
        | tee "$out/gate.txt" || true
    ;;
*)
    sed -n '2,4p' "$0"
    exit 2
    ;;
esac
