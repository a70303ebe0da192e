"""A program of its own: compile and run one NKI kernel on the device. ``python run_kernel.py JOB.json``

It runs in the Python that has the Neuron SDK and imports nothing of ours but the copy of ``array_files.py`` beside it.
The job is an object::

    {"generation": "beta1" | "current", "kernel": FILE, "function": NAME, "folder": FOLDER,
     "arguments": [{"array": FILE.npy, "dtype": NAME} | {"value": NUMBER}, ...],
     "runs": N, "warmups": N, "compile_options": TEXT}

Outputs are saved as ``output_<n>.npy``, as arguments are; the answer, ``answer.json``, names them and the NEFF and NTFF
files, or says what failed: in the kernel ("kernel") or around it ("device").
"""

import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Kernel = Callable[..., Any]
Executions = list[dict[str, str]]


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    folder = Path(job["folder"])
    try:
        answer = run(job, folder)
    except BaseException as error:  # whatever a kernel or an SDK raises is an answer
        text = traceback.format_exc()
        inside = job["kernel"] in text
        answer = {
            "error": {
                "where": "kernel" if inside else "device",
                "message": f"{type(error).__name__}: {error}",
                "traceback": text,
            }
        }
    (folder / "answer.json").write_text(json.dumps(answer))


def run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import numpy

    files = importlib.import_module("array_files")
    arguments = [files.load_array(item) if "array" in item else item["value"] for item in job["arguments"]]
    function = load_function(job["kernel"], job["function"])
    if job["generation"] == "beta1":
        result, executions = run_beta1(function, arguments, job, folder)
    else:
        result, executions = run_current(function, arguments, folder)
    outputs: list[dict[str, str]] = []
    for number, value in enumerate(result if isinstance(result, (tuple, list)) else [result]):
        outputs.append(files.save_array(numpy.asarray(value), folder / f"output_{number}.npy"))
    return {"outputs": outputs, "executions": executions, "names": argument_names(function)}


def load_function(path: str, name: str) -> Kernel:
    spec = importlib.util.spec_from_file_location("candidate", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).parent))
    spec.loader.exec_module(module)
    function: Kernel = getattr(module, name)
    return function


def argument_names(function: Kernel) -> list[str]:
    """Return the names of the kernel's parameters, which are the NEFF's input names."""
    inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None) or function
    try:
        return list(inspect.signature(inner).parameters)
    except (TypeError, ValueError):
        return []


def run_beta1(
    function: Kernel, arguments: list[Any], job: dict[str, Any], folder: Path
) -> tuple[Any, Executions]:
    """Run a Beta 1 kernel. One execution of a run keeps its profile, the warm-ups keep none."""
    import neuronxcc.nki as nki

    options = {"additional_compile_opt": job["compile_options"]}
    for _ in range(job["warmups"]):
        nki.baremetal(function, **options)(*arguments)
    executions = []
    result = None
    for number in range(job["runs"]):
        place = folder / f"run_{number}"
        place.mkdir()
        neff, ntff = place / "file.neff", place / "file.ntff"
        result = nki.baremetal(function, save_neff_name=str(neff), save_trace_name=str(ntff), **options)(
            *arguments
        )
        executions.append({"neff": str(neff), "ntff": str(ntff)})
    return result, executions


def run_current(function: Kernel, arguments: list[Any], folder: Path) -> tuple[Any, Executions]:
    """Run the kernel with today's ``nki``.

    NKI_ARTIFACTS_DIR, set before that is imported, keeps the NEFF; profiles are captured from it later.
    """
    result = function(*arguments)
    neffs = sorted(folder.rglob("*.neff"))
    if len(neffs) != 1:
        raise RuntimeError(f"expected one NEFF in NKI_ARTIFACTS_DIR, found {len(neffs)}")
    return result, [{"neff": str(neffs[0]), "ntff": ""}]


if __name__ == "__main__":
    main(sys.argv[1])
