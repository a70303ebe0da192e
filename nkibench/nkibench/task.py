"""Reads the 14 tasks: the data of ``task.json``, the reference and the kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

TASKS = Path(__file__).parent / "tasks"

#: The two dialects of NKI: ``neuronxcc.nki`` with masks and returned tiles, and today's ``nki``.
NkiDialect = Literal["beta1", "nki"]


@dataclass(frozen=True)
class Published:
    """What others measured on a target: the latency of AccelOpt's baseline and the best fraction of peak (0..1)."""

    baseline_ms: float | None = None
    best_fraction: float | None = None


@dataclass(frozen=True)
class Tensor:
    """An input or output: its shape as formulas of the task's values; a scalar has a value and no shape."""

    name: str
    dtype: str
    shape: tuple[str, ...] = ()
    value: float | None = None


@dataclass(frozen=True)
class Task:
    """One task.

    ``values`` are the published sizes; ``multiples`` say which sizes the kernels take.

    ``relative_tolerance`` is the published one; ``gate_tolerance`` is what our gate allows where that is stricter.
    The formulas of the least time (see ``peaks``) count operations and elements.
    """

    name: str
    about: str
    folder: Path
    values: dict[str, int]
    multiples: dict[str, int]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    relative_tolerance: float
    gate_tolerance: float
    vector_flops: str
    matmul_flops: str
    elements: str
    published: dict[str, Published]

    @property
    def reference(self) -> Path:
        return self.folder / "reference.py"

    def kernel(self, dialect: NkiDialect) -> Path:
        return self.folder / f"kernel_{dialect}.py"

    @property
    def dialects(self) -> list[NkiDialect]:
        dialects: tuple[NkiDialect, ...] = ("beta1", "nki")
        return [d for d in dialects if self.kernel(d).is_file()]


@cache
def tasks() -> dict[str, Task]:
    """Return all tasks by name, in alphabetical order."""
    every = (_read(path) for path in sorted(TASKS.glob("*/task.json")))
    return {task.name: task for task in every}


def chosen(names: Sequence[str]) -> list[Task]:
    """Return the named tasks, or all.

    Raises:
        ValueError: there is no task of that name.
    """
    by_name = tasks()
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ValueError(f"there is no task {unknown[0]!r}; there are {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(by_name.values())


def _read(path: Path) -> Task:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tolerance = float(data["relative_tolerance"])
    return Task(
        name=data["name"],
        about=data["about"],
        folder=path.parent,
        values=data["values"],
        multiples=data["multiples"],
        inputs=tuple(_tensor(t) for t in data["inputs"]),
        outputs=tuple(_tensor(t) for t in data["outputs"]),
        relative_tolerance=tolerance,
        gate_tolerance=float(data.get("gate_tolerance", {}).get("value", tolerance)),
        vector_flops=data["peak"]["vector_flops"],
        matmul_flops=data["peak"]["matmul_flops"],
        elements=data["peak"]["elements"],
        published={
            target: Published(figures.get("baseline_ms"), figures.get("best_fraction"))
            for target, figures in data["published"].items()
        },
    )


def _tensor(data: dict[str, Any]) -> Tensor:
    return Tensor(data.get("name", ""), data["dtype"], tuple(data.get("shape", ())), data.get("value"))
