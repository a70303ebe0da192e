"""A program of its own: time a NEFF with ``nrtpy``. ``python run_nrtpy.py JOB.json``

``nrtpy`` cannot be installed beside ``nki``, so this runs in its own Python and imports nothing of ours but the copy of
``array_files.py`` beside it. The job is an object::

    {"neff": FILE, "arrays": {NAME: {"array": FILE.npy, "dtype": NAME}}, "warmups": N, "runs": N, "core": N,
     "answer": FILE}

The answer holds ``mean_ms``, ``min_ms``, ``max_ms`` and ``iterations``, or what failed.
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
    nrtpy, files = importlib.import_module("nrtpy"), importlib.import_module("array_files")
    model = nrtpy.NrtpyModel.load_from_neff(job["neff"], core_id=job["core"])
    expected = set(model.input_tensors_info)
    if expected != set(job["arrays"]):
        arrays = ", ".join(sorted(job["arrays"]))
        raise ValueError(f"the NEFF takes {', '.join(sorted(expected))}, the kernel has {arrays}")
    inputs = {
        name: nrtpy.NrtpyTensor.from_numpy(files.load_array(saved), name=name)
        for name, saved in job["arrays"].items()
    }
    result = model.benchmark(
        inputs=inputs, warmup_iter=job["warmups"], benchmark_iter=job["runs"], mode="device"
    )
    names = ("mean_ms", "min_ms", "max_ms", "iterations")
    return {name: getattr(result, name) for name in names}


if __name__ == "__main__":
    main(sys.argv[1])
