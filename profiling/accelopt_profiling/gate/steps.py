"""The gate's steps by name, each with the type of its parameters, for ``worker.steps``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelopt_profiling.gate.draw import DrawParams, draw
from accelopt_profiling.gate.judge import judge
from accelopt_profiling.gate.judged import JudgeParams
from accelopt_profiling.gate.original import OriginalParams, original
from accelopt_profiling.gate.ran import RunParams
from accelopt_profiling.gate.reference import ReferenceParams, reference
from accelopt_profiling.gate.run import run

STEPS: dict[str, tuple[Callable[..., Any], type[Any]]] = {
    "gate.draw": (draw, DrawParams),
    "gate.run": (run, RunParams),
    "gate.original": (original, OriginalParams),
    "gate.reference": (reference, ReferenceParams),
    "gate.judge": (judge, JudgeParams),
}
