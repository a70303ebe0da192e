"""The layouts of problems, in the order in which they are looked for."""

from __future__ import annotations

from accelopt_profiling.problems.layout import ProblemLayout
from accelopt_profiling.problems.layouts import (
    flashinfer,
    gpumode,
    kernelbench,
    leetgpu,
    module,
    nkibench,
    recording,
    selfrun,
    tritonbench,
)
from accelopt_profiling.problems.ref import ProblemRef

LAYOUTS: list[ProblemLayout] = [
    module.LAYOUT,
    recording.LAYOUT,
    nkibench.LAYOUT,
    kernelbench.LAYOUT,
    flashinfer.LAYOUT,
    gpumode.LAYOUT,
    leetgpu.LAYOUT,
    tritonbench.LAYOUT,
    selfrun.LAYOUT,
    module.INFERRED,
]
_BY_KIND = {layout.kind: layout for layout in LAYOUTS}


def layout_of(ref: ProblemRef) -> ProblemLayout:
    """Return the layout of a problem. Raises ValueError: this version does not know its kind."""
    if ref.kind not in _BY_KIND:
        raise ValueError(f"{ref.kind!r} is no kind of problem; those are {', '.join(_BY_KIND)}")
    return _BY_KIND[ref.kind]


def is_unreferenced(ref: ProblemRef) -> bool:
    """Tell whether only the original kernel's own results can be compared with."""
    return not layout_of(ref).referenced or bool(ref.options.get("unreferenced"))
