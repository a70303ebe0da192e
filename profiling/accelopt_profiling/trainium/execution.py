"""Run the kernel once, in a child process of the Python that has the Neuron SDK."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np

from accelopt_profiling.trainium.failure import DeviceFailure, explained
from accelopt_profiling.trainium.request import DeviceRequest
from accelopt_profiling.trainium.tool import run_tool

#: As AccelOpt compiles NKIBench's kernels.
COMPILE_OPTIONS = "--disable-dge --logical-nc-config=1"


@dataclass(frozen=True)
class Execution:
    """What one start of ``run_kernel.py`` left: outputs, a NEFF per run, and its NTFF where one was kept."""

    outputs: list[Any]
    files: list[tuple[Path, Path | None]]
    names: list[str]


def execute(
    request: DeviceRequest,
    generation: Literal["beta1", "current"],
    folder: Path,
    environment: Mapping[str, str],
    python: str = sys.executable,
) -> Execution:
    """Compile and run the kernel in ``folder``.

    Raises:
        DeviceFailure: the kernel or the device failed, or it took too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    job = {
        "generation": generation,
        "kernel": str(request.kernel),
        "function": request.function,
        "folder": str(folder),
        "arguments": save_arguments(request, folder),
        "runs": request.runs if generation == "beta1" else 1,
        "warmups": request.warmups if generation == "beta1" else 0,
        "compile_options": COMPILE_OPTIONS,
    }
    job_file = folder / "job.json"
    job_file.write_text(json.dumps(job), encoding="utf-8")
    command = [python, str(program_file("run_kernel.py", folder)), str(job_file)]
    said = run_tool(command, seconds=request.seconds, environment=environment, folder=folder)
    answer = read_answer(folder / "answer.json", "run_kernel.py", said)
    try:
        outputs = [load_array(saved) for saved in answer["outputs"]]
        files = [(Path(f["neff"]), Path(f["ntff"]) if f["ntff"] else None) for f in answer["executions"]]
        names = [str(name) for name in answer["names"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeviceFailure("kernel-failed", f"The kernel's outputs cannot be read: {error}") from None
    return Execution(outputs, files, names)


def program_file(name: str, folder: Path) -> Path:
    """A program of this package as a file in ``folder``: the package itself may lie in an archive."""
    path = folder / name
    path.write_bytes(resources.files(__package__).joinpath(name).read_bytes())
    return path


def save_arguments(request: DeviceRequest, folder: Path) -> list[dict[str, Any]]:
    """The arguments as files and numbers, in order."""
    saved: list[dict[str, Any]] = []
    for number, value in enumerate(request.arguments):
        if isinstance(value, np.ndarray):
            saved.append(save_array(value, folder / f"argument_{number}.npy"))
        else:
            saved.append({"value": value})
    return saved


def save_array(value: np.ndarray[Any, Any], path: Path) -> dict[str, str]:
    """Save an array and say where. NumPy's files do not know the types of ``ml_dtypes``: those are saved as the
    integers of their size, and named.
    """
    extended = value.dtype.kind == "V" and value.dtype.fields is None
    plain = value.view(f"u{value.dtype.itemsize}") if extended else value
    np.save(path, plain, allow_pickle=False)
    return {"array": str(path), **({"dtype": value.dtype.name} if extended else {})}


def load_array(saved: Mapping[str, str]) -> np.ndarray[Any, Any]:
    """What ``save_array`` saved. Raises OSError, ValueError, KeyError: it is not what it says."""
    array: np.ndarray[Any, Any] = np.load(saved["array"], allow_pickle=False)
    if "dtype" not in saved:
        return array
    import ml_dtypes

    kind = getattr(ml_dtypes, saved["dtype"], None)
    if kind is None:
        raise ValueError(f"ml_dtypes has no {saved['dtype']!r}")
    return array.view(kind)


def read_answer(path: Path, program: str, said: str) -> dict[str, Any]:
    """The answer that a child program wrote.

    Raises:
        DeviceFailure: it wrote none, or it says what failed.
    """
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise explained(
            said, DeviceFailure("tool-failed", f"{program} left no answer: {error}", detail=said[-2000:])
        ) from None
    if not isinstance(answer, dict):
        raise DeviceFailure("tool-failed", f"{program} left an answer that is no object")
    if "error" in answer:
        told = answer["error"] if isinstance(answer["error"], dict) else {}
        text = f"{told.get('message', '')}\n{told.get('traceback', '')}"
        whose = "The kernel" if told.get("where") == "kernel" else "The Neuron SDK"
        failure = DeviceFailure(
            "kernel-failed" if told.get("where") == "kernel" else "tool-failed",
            f"{whose} failed: {told.get('message', 'without a message')}", detail=text[-2000:],
        )  # fmt: skip
        raise explained(text, failure)
    return answer
