"""A program of its own: time a NEFF with ``nrtpy``. ``python run_nrtpy.py JOB.json``

``nrtpy`` cannot be installed beside ``nki``, so this runs in its own Python and imports nothing of ours. The job is an
object::

    {"neff": FILE, "arrays": {NAME: {"array": FILE.npy, "dtype": NAME}}, "warmups": N, "runs": N, "core": N,
     "answer": FILE}

with ``dtype`` as in ``run_kernel.py``; the answer holds ``mean_ms``, ``min_ms``, ``max_ms`` and ``iterations``, or what
failed.
"""

import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    try:
        answer = run(job)
    except BaseException as error:
        answer = {
            "error": {"message": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        }
    Path(job["answer"]).write_text(json.dumps(answer))


def run(job: dict[str, Any]) -> dict[str, Any]:
    numpy, nrtpy = importlib.import_module("numpy"), importlib.import_module("nrtpy")
    model = nrtpy.NrtpyModel.load_from_neff(job["neff"], core_id=job["core"])
    expected = set(model.input_tensors_info)
    if expected != set(job["arrays"]):
        given = ", ".join(sorted(job["arrays"]))
        raise ValueError(f"the NEFF takes {', '.join(sorted(expected))}, the kernel has {given}")
    inputs = {
        name: nrtpy.NrtpyTensor.from_numpy(load(numpy, saved), name=name)
        for name, saved in job["arrays"].items()
    }
    result = model.benchmark(
        inputs=inputs, warmup_iter=job["warmups"], benchmark_iter=job["runs"], mode="device"
    )
    names = ("mean_ms", "min_ms", "max_ms", "iterations")
    return {name: getattr(result, name) for name in names}


def load(numpy: Any, saved: dict[str, str]) -> Any:
    array = numpy.load(saved["array"])
    return (
        array.view(getattr(importlib.import_module("ml_dtypes"), saved["dtype"]))
        if "dtype" in saved
        else array
    )


if __name__ == "__main__":
    main(sys.argv[1])
