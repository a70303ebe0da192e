"""Launch kernels that ``torch.compile`` wrote: Inductor's decorators tune and compile for a device of their own."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from triton.runtime.autotuner import Autotuner

_HEURISTICS = "torch._inductor.runtime.triton_heuristics"
_HELPERS = "torch._inductor.runtime.triton_helpers"


class InductorKernel(Autotuner):  # type: ignore[misc]
    """A kernel with Inductor's configurations, tuned as any autotuned kernel is.

    ``grid`` computes the launch grid from the launch's arguments and the configuration: Inductor's callers leave it
    out, and give the stream.
    """

    def __init__(
        self, fn: Any, configs: list[Any], grid: Callable[[dict[str, Any]], tuple[int, ...]]
    ) -> None:
        super().__init__(fn, fn.arg_names, configs, [], None, None)
        self._grid = grid

    def run(self, *args: Any, grid: Any = None, stream: Any = None, **options: Any) -> Any:
        options.pop("benchmark_run", None)
        options.setdefault("warmup", False)
        return super().run(*args, grid=self._grid, **options)


def _cached_autotune(
    size_hints: Any,
    configs: Sequence[Any],
    triton_meta: dict[str, Any],
    heuristic_type: Any,
    *_: Any,
    **named: Any,
) -> Callable[[Any], InductorKernel]:
    """Stand in for the function of that name: it takes the same arguments."""
    inductor_meta = named.get("inductor_meta") or {}

    def decorate(fn: Any) -> InductorKernel:
        for config in configs:
            for name in [n for n in config.kwargs if n not in fn.arg_names]:
                del config.kwargs[name]  # a block that the kernel states itself
        return InductorKernel(fn, list(configs), lambda meta: _grid(inductor_meta, meta))

    return decorate


def _grid(inductor_meta: dict[str, Any], meta: dict[str, Any]) -> tuple[int, ...]:
    """Return the grid of a launch; ``meta`` holds its arguments and the configuration."""
    heuristics = sys.modules[_HEURISTICS]
    axes = sum(f"{axis}numel" in meta for axis in "xyz")
    stated = {"grid_type": f"Grid{max(1, axes)}D", **inductor_meta}
    made = heuristics.GridExpr.from_meta(stated, meta)
    return tuple(int(n) for n in made.eval_slow(meta))


def _stand_in(module: ModuleType) -> None:
    if module.__name__ == _HEURISTICS:
        module.cached_autotune = _cached_autotune  # type: ignore[attr-defined]
    else:
        module.set_driver_to_gpu = lambda: None  # type: ignore[attr-defined]


class _AfterImport(importlib.abc.MetaPathFinder):
    """Puts the stand-ins into Inductor's modules when a file imports them: an import takes seconds."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in (_HEURISTICS, _HELPERS):
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _stand_in(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


@contextmanager
def inductor_kernels() -> Iterator[None]:
    """Let files that Inductor wrote run in an emulation until the block ends."""
    loaded = [sys.modules[name] for name in (_HEURISTICS, _HELPERS) if name in sys.modules]
    kept = [
        (m, n, getattr(m, n))
        for m in loaded
        for n in ("cached_autotune", "set_driver_to_gpu")
        if hasattr(m, n)
    ]
    finder = _AfterImport()
    for module in loaded:
        _stand_in(module)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for module, name, value in kept:
            setattr(module, name, value)
