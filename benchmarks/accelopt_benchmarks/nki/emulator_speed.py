"""Times the NKI emulator on kernels at full shape, next to each kernel's NumPy reference.

``python -m accelopt_benchmarks.nki.emulator_speed NKIBENCH_DIR [TASK...]`` prints a row per task of an NKIBench
checkout (a folder with ``kernels/`` and ``reference/``). Each task runs in a process of its own, one after the other.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.comparison.elements import compare
from accelopt_profiling.comparison.leaves import leaves_of
from accelopt_profiling.comparison.tolerance import allowed
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.problems.problem import Tolerance

_LIMIT = 600  # seconds for one task


@dataclass(frozen=True)
class Speed:
    """One task. Times are seconds: wall-clock, and of the processor; ``peak_bytes`` is that of the whole process.

    ``trace`` is a run for the instructions alone, ``emulator`` one for the values, ``reference`` the task's NumPy code
    on the same inputs; ``error`` is the largest relative L2 error of an output.
    """

    task: str
    instructions: int
    error: float
    trace: float
    emulator: float
    reference: float
    emulator_cpu: float
    reference_cpu: float
    peak_bytes: int

    @property
    def ratio(self) -> float:
        """Wall-clock time of the emulator over that of the reference."""
        return self.emulator / self.reference

    @property
    def cpu_ratio(self) -> float:
        """The same in processor time: what the ratio is where the other cores are busy."""
        return self.emulator_cpu / self.reference_cpu


def tasks(folder: Path) -> list[tuple[str, Path, Path]]:
    """Return the tasks of an NKIBench folder: name, kernel file, reference file."""
    found = []
    for kernel in sorted((folder / "kernels").glob("*.py")):
        stem = kernel.stem.rpartition("_")[0]
        references = sorted((folder / "reference").glob(f"{stem}_numpy_*.py"))
        if references:
            found.append((stem, kernel, references[0]))
    return found


def measure_all(folder: Path, only: Sequence[str] = ()) -> Iterator[Speed]:
    """Measure the tasks of an NKIBench folder one by one, each in a child process; ``only`` names some, by their start.

    Raises:
        RuntimeError: a task did not run; the message ends with what it printed.
    """
    for name, kernel, reference in tasks(folder):
        if only and not any(name.startswith(start) for start in only):
            continue
        command = [sys.executable, "-m", __spec__.name, "--one", name, str(kernel), str(reference)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
        yield Speed(**json.loads(done.stdout.splitlines()[-1]))


def measure(task: str, kernel: Path, reference: Path) -> Speed:
    """Measure one task in this process: trace, values, reference."""
    numpy_task = _load(reference)
    np.random.seed(0)
    inputs = numpy_task.get_inputs()
    arguments = numpy_task.transform_to_nki_inputs(inputs)
    with emulated("trace", sdk=False) as traced:
        _, trace, _ = _timed(_kernel(kernel), arguments)
        instructions = len(traced.machines[-1].trace.instructions)
    del traced
    with emulated("full", record=False, sdk=False):
        result, emulator, emulator_cpu = _timed(_kernel(kernel), arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    expected, seconds, cpu = _timed(numpy_task.forward, inputs)
    outputs = numpy_task.transform_nki_outputs(result, expected)
    return Speed(
        task, instructions, _error(outputs, expected), trace, emulator, seconds, emulator_cpu, cpu, peak
    )


def _timed(function: Any, arguments: Sequence[Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return result, time.perf_counter() - wall, time.process_time() - cpu


def _load(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _kernel(path: Path) -> Any:
    module = _load(path)
    return getattr(module, "kernel", None) or module.optimized_kernel


def _error(outputs: Any, expected: Any) -> float:
    """Return the largest relative L2 error of an output."""
    ours, theirs = (leaves_of(list(v) if isinstance(v, (tuple, list)) else [v]) for v in (outputs, expected))
    limit = allowed(["float32"], Tolerance())
    return max(
        compare(got.values, want.values, None, limit).relative for got, want in zip(ours, theirs, strict=True)
    )


def row(speed: Speed) -> str:
    """Return one line of the printed table."""
    return (
        f"| {speed.task} | {speed.instructions:,} | {speed.error:.0e} | {speed.trace:.2f} | {speed.emulator:.2f} | "
        f"{speed.reference:.2f} | {speed.ratio:.1f} | {speed.cpu_ratio:.1f} | {speed.peak_bytes / 1e9:.2f} |"
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    if len(arguments) == 4 and arguments[0] == "--one":
        _say(json.dumps(asdict(measure(arguments[1], Path(arguments[2]), Path(arguments[3])))))
        return 0
    if not arguments or not tasks(Path(arguments[0])):
        sys.stderr.write(__doc__ or "")
        return 2
    _say("| task | instructions | error | trace s | emulator s | reference s | ratio | CPU ratio | peak GB |")
    _say("|---|---|---|---|---|---|---|---|---|")
    total = 0.0
    for speed in measure_all(Path(arguments[0]), arguments[1:]):
        total += speed.emulator
        _say(row(speed))
    _say(f"{total:.1f} s of emulation in all")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
