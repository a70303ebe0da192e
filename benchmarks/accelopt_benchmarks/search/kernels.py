"""Reads the kernels that the study searches: NKIBench's tasks at smaller shapes, and the Triton examples."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from accelopt_benchmarks.search.world import StudyKernel
from nkibench.task import Task, chosen

#: The Triton examples, by the names of their files below the folder of examples.
TRITON = (
    "triton_add",
    "triton_softmax",
    "tutorials/vector_add",
    "tutorials/fused_softmax",
    "tutorials/matmul",
    "tutorials/layer_norm",
    "tutorials/attention",
)

#: Tasks whose further shapes leave their rules nothing to gain, and the shape that they have instead.
SHAPES: Mapping[str, Mapping[str, int]] = {
    "bmm": {"B": 1, "M": 4096, "K": 64, "N": 4096},
    "rope_single_freq_apply": {"B": 1, "H": 8, "N": 4096, "D": 128},
    "transpose_matmul": {"M": 1024, "N": 10944, "K": 2048},
}


def study_kernels(folder: Path, examples: Path, names: Sequence[str]) -> list[StudyKernel]:
    """Return the tasks of NKIBench, written to ``folder`` at the sizes of ``shape_of``, and the Triton
    examples; only those in ``names``, if there are any.

    Raises:
        ValueError: there is no task or example of that name.
    """
    triton = [n for n in TRITON if not names or n in names]
    tasks = [n for n in names if n not in TRITON]
    kernels = [_smaller(task, folder) for task in (chosen(tasks) if tasks or not names else [])]
    for name in triton:
        path = examples / f"{name}.py"
        kernels.append(StudyKernel(name.replace("/", "_"), path, path.read_text("utf-8"), "h100"))
    return kernels


def shape_of(task: Task) -> dict[str, int]:
    """Return the sizes that the study gives a task: its largest further shape, which the emulator runs in a
    second or so, unless that leaves nothing to find."""
    if task.name in SHAPES:
        return dict(SHAPES[task.name])
    match = re.search(r"^shapes = (\[.*?^\])", task.reference.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    shapes: list[dict[str, int]] = json.loads(re.sub(r",\s*\]", "]", match[1])) if match else [{}]
    return max(shapes, key=lambda s: math.prod(s.values()))


def _smaller(task: Task, folder: Path) -> StudyKernel:
    place = folder / task.name
    place.mkdir(parents=True, exist_ok=True)
    reference = task.reference.read_text("utf-8")
    sizes = shape_of(task)
    for name, value in sizes.items():
        reference = re.sub(rf"^{name} = \d+$", f"{name} = {value}", reference, flags=re.MULTILINE)
    (place / "reference.py").write_text(reference, "utf-8")
    kernel = task.kernel("beta1").read_text("utf-8")
    path = place / "kernel_beta1.py"
    path.write_text(kernel, "utf-8")
    case = "_".join(f"{name}{value}" for name, value in sorted(sizes.items()))
    return StudyKernel(task.name, path, kernel, "trn1", case)
