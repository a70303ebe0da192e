"""Triton's compiler: targets, sources, the stages between them, and the assembler that it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from accelopt_profiling.triton_adapter.runtime import VERSION

__all__ = ["ASTSource", "GPUTarget"]

Stage = Callable[[Any, Any], Any]


@contextmanager
def after_own_passes(wrap: Callable[[Stage, Any], Stage]) -> Iterator[None]:
    """Let ``wrap(stage, options)`` replace the stage after Triton's own passes until the block ends."""
    classes = [backend.compiler for backend in backends.values()]
    before = [kind.add_stages for kind in classes]

    def replacement(add_stages: Callable[..., None]) -> Callable[..., None]:
        def add(self: Any, stages: dict[str, Stage], options: Any, *language: Any) -> None:
            add_stages(self, stages, options, *language)  # a language is given since 3.4
            if "llir" in stages:
                stages["llir"] = wrap(stages["llir"], options)

        return add

    for kind, add_stages in zip(classes, before, strict=True):
        kind.add_stages = replacement(add_stages)
    try:
        yield
    finally:
        for kind, add_stages in zip(classes, before, strict=True):
            kind.add_stages = add_stages


def ptxas(arch: int) -> tuple[str, str]:
    """Return path and version of the ptxas that Triton calls for the compute capability ``arch`` (90)."""
    from triton.backends.nvidia.compiler import get_ptxas

    if VERSION < (3, 4):
        path, version = get_ptxas(arch)
        return str(path), str(version)
    tool = get_ptxas() if VERSION < (3, 6) else get_ptxas(arch)  # 3.4 and 3.5 have one for all
    return str(tool.path), str(tool.version)
