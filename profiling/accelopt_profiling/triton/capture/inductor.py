"""Launch kernels that ``torch.compile`` wrote: Inductor's decorators tune and compile for a device of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from accelopt_profiling.after_import import after_import
from accelopt_profiling.triton_adapter.runtime import Autotuner

_HEURISTICS = "torch._inductor.runtime.triton_heuristics"


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
    **keywords: Any,
) -> Callable[[Any], InductorKernel]:
    """Stand in for the function of that name: it takes the same arguments."""
    inductor_meta = keywords.get("inductor_meta") or {}

    def decorate(fn: Any) -> InductorKernel:
        for config in configs:
            for name in [n for n in config.kwargs if n not in fn.arg_names]:
                del config.kwargs[name]  # a block that the kernel states itself
        return InductorKernel(fn, list(configs), lambda meta: _grid(inductor_meta, meta))

    return decorate


def _grid(inductor_meta: dict[str, Any], meta: dict[str, Any]) -> tuple[int, ...]:
    """Return the grid of a launch. ``meta`` holds its arguments and the configuration."""
    heuristics = sys.modules[_HEURISTICS]
    axes = sum(f"{axis}numel" in meta for axis in "xyz")
    stated = {"grid_type": f"Grid{max(1, axes)}D", **inductor_meta}
    grid = heuristics.GridExpr.from_meta(stated, meta)
    return tuple(int(n) for n in grid.eval_slow(meta))


def _older_grid(*numels: int) -> Callable[[dict[str, Any]], tuple[int, ...]]:
    """Stand in for ``grid``, which older versions launch with: the sizes of the axes, x last."""
    sizes = tuple(zip("xyz", reversed(numels), strict=False))
    return lambda meta: tuple(-(-n // meta.get(f"{axis.upper()}BLOCK", 1)) for axis, n in sizes)


#: What is replaced in which of Inductor's modules, once a file imports them: that takes seconds.
_REPLACED: dict[str, dict[str, Any]] = {
    _HEURISTICS: {"cached_autotune": _cached_autotune},
    "torch._inductor.runtime.triton_helpers": {"set_driver_to_gpu": lambda: None},
}
#: What files of older versions import, where it is there no more.
_OLDER: dict[str, dict[str, Any]] = {_HEURISTICS: {"grid": _older_grid}}


@contextmanager
def inductor_kernels() -> Iterator[None]:
    """Let files that Inductor wrote run in an emulation until the block ends."""
    with ExitStack() as stack:

        def replace(module: ModuleType) -> None:
            for name, value in _OLDER.get(module.__name__, {}).items():
                if not hasattr(module, name):
                    stack.callback(delattr, module, name)
                    setattr(module, name, value)
            for name, value in _REPLACED[module.__name__].items():
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)

        for name in _REPLACED:
            if name in sys.modules:
                replace(sys.modules[name])
            else:
                stack.callback(after_import(name, replace))
        yield
