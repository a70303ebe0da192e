"""Launch kernels that ``torch.compile`` wrote: Inductor's decorators tune and compile for a device of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from triton.runtime.autotuner import Autotuner

from accelopt_profiling.after_import import after_import

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


#: What is replaced in which of Inductor's modules, once a file imports them: that takes seconds.
_REPLACED: dict[str, tuple[str, Any]] = {
    _HEURISTICS: ("cached_autotune", _cached_autotune),
    "torch._inductor.runtime.triton_helpers": ("set_driver_to_gpu", lambda: None),
}


@contextmanager
def inductor_kernels() -> Iterator[None]:
    """Let files that Inductor wrote run in an emulation until the block ends."""
    with ExitStack() as stack:
        for name, (attribute, value) in _REPLACED.items():

            def replace(module: ModuleType, attribute: str = attribute, value: Any = value) -> None:
                stack.callback(setattr, module, attribute, getattr(module, attribute))
                setattr(module, attribute, value)

            if name in sys.modules:
                replace(sys.modules[name])
            else:
                stack.callback(after_import(name, replace))
        yield
