"""Runs FlashInfer-Bench's evaluator, ``Benchmark``, as a program on a data set of one kernel file.

Arguments: the kernel file and the problem file.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from accelopt_benchmarks.device.programs import EvaluatorInput, evaluator_input, tell_judgement


def missing() -> str:
    """Return why it cannot run here; "" when it can be imported."""
    command = [sys.executable, "-c", "import flashinfer_bench"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it cannot be imported"])[-1]


def data_set(asked: EvaluatorInput) -> dict[str, str]:
    """Return the files of a data set with one definition, one solution and one workload, by their paths."""
    axes: dict[str, dict[str, Any]] = {}

    def tensor(value: Any) -> dict[str, Any]:
        shape = [f"n{int(size)}" for size in value.shape]
        axes.update({axis: {"type": "const", "value": int(axis[1:])} for axis in shape})
        return {"shape": shape, "dtype": str(value.dtype).removeprefix("torch.")}

    inputs = {f"x{number}": tensor(value) for number, value in enumerate(asked.given)}
    outputs, listed = {"y": tensor(asked.expected)}, ", ".join(inputs)
    definition = {
        "name": "asked", "op_type": "asked", "axes": axes, "inputs": inputs, "outputs": outputs,
        "reference": f"{asked.problem}\n\ndef run({listed}):\n    return reference({listed})\n",
    }  # fmt: skip
    solution = {
        "name": "candidate", "definition": "asked", "author": "accelopt",
        "spec": {
            "language": "triton", "target_hardware": ["cuda"], "entry_point": f"candidate.py::{asked.entry}",
            "dependencies": [], "destination_passing_style": False,
        },
        "sources": [{"path": "candidate.py", "content": asked.kernel}],
    }  # fmt: skip
    random = {name: {"type": "random"} for name in inputs}
    workload = {"definition": "asked", "workload": {"axes": {}, "uuid": "one", "inputs": random}}
    return {
        "definitions/asked/asked.json": json.dumps(definition),
        "solutions/asked/candidate.json": json.dumps(solution),
        "workloads/asked/asked.jsonl": json.dumps(workload) + "\n",
    }


def write(files: dict[str, str], root: Path) -> None:
    """Write a data set below ``root``, with the folder where the evaluator leaves its traces."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    (root / "traces").mkdir(exist_ok=True)


def verdict(bench: Any, root: Path) -> tuple[bool, float | None, str]:
    """Return whether the candidate passed, its time in microseconds, and the evaluator's words."""
    traces = bench.TraceSet.from_path(str(root))
    benchmark = bench.Benchmark(traces, bench.BenchmarkConfig())
    try:
        found = benchmark.run_all(True)
    finally:
        benchmark.close()
    known = found if found is not None else traces
    trace = next(one for many in known.traces.values() for one in many if one.evaluation is not None)
    status = str(getattr(trace.evaluation.status, "value", trace.evaluation.status))
    measured = trace.evaluation.performance
    passed = status == "PASSED"
    us = 1000.0 * float(measured.latency_ms) if passed and measured is not None else None
    return passed, us, f"{status} {str(trace.evaluation.log or '')[-200:]}"


def main() -> None:
    asked = evaluator_input(*map(Path, sys.argv[1:3]))
    with tempfile.TemporaryDirectory() as folder:
        write(data_set(asked), Path(folder))
        tell_judgement(*verdict(importlib.import_module("flashinfer_bench"), Path(folder)))


if __name__ == "__main__":
    main()
