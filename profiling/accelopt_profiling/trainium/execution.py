"""Compile and run a kernel in a child process of the Python that has the Neuron SDK."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np

from accelopt_profiling.trainium.array_files import load_array, save_array
from accelopt_profiling.trainium.device_run import DeviceRequest
from accelopt_profiling.trainium.tools import DeviceError, explain_failure, run_tool

#: As AccelOpt compiles NKIBench's kernels.
COMPILE_OPTIONS = "--disable-dge --logical-nc-config=1"


@dataclass(frozen=True)
class Execution:
    """The result of one start of ``run_kernel.py``: outputs, and per run a NEFF and its NTFF where one was kept."""

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
        DeviceError: the kernel or the device failed, or it took too long.
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
    output = run_tool(command, seconds=request.seconds, environment=environment, folder=folder)
    answer = read_answer(folder / "answer.json", "run_kernel.py", output)
    try:
        outputs = [load_array(saved) for saved in answer["outputs"]]
        files = [(Path(f["neff"]), Path(f["ntff"]) if f["ntff"] else None) for f in answer["executions"]]
        names = [str(name) for name in answer["names"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeviceError("kernel-failed", f"The kernel's outputs cannot be read: {error}") from None
    return Execution(outputs, files, names)


def program_file(name: str, folder: Path) -> Path:
    """Copy a program of this package to ``folder``, with what it imports: the package itself may lie in an archive."""
    for file in ("array_files.py", name):
        (folder / file).write_bytes(resources.files(__package__).joinpath(file).read_bytes())
    return folder / name


def save_arguments(request: DeviceRequest, folder: Path) -> list[dict[str, Any]]:
    """Save the arguments in order: arrays as files, the rest as values."""
    saved: list[dict[str, Any]] = []
    for number, value in enumerate(request.arguments):
        if isinstance(value, np.ndarray):
            saved.append(save_array(value, folder / f"argument_{number}.npy"))
        else:
            saved.append({"value": value})
    return saved


def read_answer(path: Path, program: str, output: str) -> dict[str, Any]:
    """Return the answer that a child program wrote.

    Raises:
        DeviceError: it wrote none, or the answer is an error.
    """
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise explain_failure(
            output, DeviceError("tool-failed", f"{program} left no answer: {error}", detail=output[-2000:])
        ) from None
    if not isinstance(answer, dict):
        raise DeviceError("tool-failed", f"{program} left an answer that is no object")
    if "error" in answer:
        fault = answer["error"] if isinstance(answer["error"], dict) else {}
        text = f"{fault.get('message', '')}\n{fault.get('traceback', '')}"
        whose = "The kernel" if fault.get("where") == "kernel" else "The Neuron SDK"
        failure = DeviceError(
            "kernel-failed" if fault.get("where") == "kernel" else "tool-failed",
            f"{whose} failed: {fault.get('message', 'without a message')}", detail=text[-2000:],
        )  # fmt: skip
        raise explain_failure(text, failure)
    return answer
