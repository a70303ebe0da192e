"""Compute in float32 where the kernel converts to float64 and nothing outside of it is float64."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TL, KernelLaunch, TritonKernel


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    single = kernel.spell("float32")
    if single is None or any(_is_double(kernel, launch) for launch in kernel.launches):
        return
    places = [
        node
        for kind in (cst.Attribute, cst.Name)
        for node in kernel.source.walk(kernel.subject.function.body, kind)
        if kernel.names.path(node) == f"{TL}.float64"
    ]
    if not places or any(isinstance(p, cst.Comparison) for n in places for p in kernel.source.parents(n)):
        return
    edits = tuple(kernel.source.replace(node, single) for node in places)
    yield Rewrite(edits, "Compute in float32 instead of float64, which no tensor at the launch has.")


def _is_double(kernel: TritonKernel, launch: KernelLaunch) -> bool:
    """Return whether the function that launches names float64, so that a tensor may be of it."""
    names = kernel.source.walk(launch.function or kernel.source.module, cst.Name)
    return any(n.value in ("float64", "double", "complex128") for n in names)
