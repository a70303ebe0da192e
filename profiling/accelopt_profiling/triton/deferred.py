"""A compiled kernel that is compiled only when somebody looks: launching it needs no binary here."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import triton


class DeferredKernel:
    """Stands in for Triton's ``CompiledKernel``. ``n_regs``, ``asm`` and so on compile it.

    A launch goes to the driver that is active then: the JIT keeps this object longer than an emulation lasts.
    """

    function = None
    packed_metadata = None

    def __init__(self, source: Any, options: dict[str, Any], compile_now: Callable[[], Any]) -> None:
        self.src = source
        self.options = options
        self._compile_now = compile_now
        self._compiled: Any = None

    def _kernel(self) -> Any:
        if self._compiled is None:
            self._compiled = self._compile_now()
            self._compiled._init_handles()
        return self._compiled

    def _init_handles(self) -> None:
        self._kernel()

    def result(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._kernel(), name)

    def launch_metadata(self, grid: Any, stream: Any, *arguments: Any) -> None:
        """Launch hooks belong to profilers of real devices; they see nothing here."""

    def run(
        self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any, data: Any, enter: Any, leave: Any,
        *arguments: Any,
    ) -> None:  # fmt: skip
        metadata = SimpleNamespace(**self.options)
        triton.runtime.driver.active.record(self.src.fn, self.src, metadata, (x, y, z), arguments)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        x, y, z = (*grid, 1, 1, 1)[:3]

        def launch(*arguments: Any, stream: Any = None) -> None:
            self.run(x, y, z, stream, None, None, None, None, None, *arguments)

        return launch
