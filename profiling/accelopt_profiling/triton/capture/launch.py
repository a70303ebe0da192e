"""One captured launch of a Triton kernel: arguments, grid and options, before anything ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CapturedLaunch:
    """``fn`` is the JITFunction; ``signature`` maps argument names to Triton types ("*fp32", "i32", "constexpr");
    ``constants`` maps constexpr names to values; ``options`` holds num_warps, num_stages and so on; ``attrs`` is
    what the JIT derived about divisibility. ``args`` are the launch's arguments in order (torch tensors on the CPU
    standing in for device tensors). ``file`` and ``line`` say where the kernel is defined (1-based line of ``def``).
    ``source`` is Triton's ASTSource, ``metadata`` its launch metadata.
    """

    fn: Any
    name: str
    file: str
    line: int
    grid: tuple[int, int, int]
    args: tuple[Any, ...]
    signature: dict[str, str]
    constants: dict[str, Any]
    options: dict[str, Any]
    attrs: dict[Any, Any] = field(default_factory=dict)
    source: Any = None
    metadata: Any = None

    @property
    def programs(self) -> int:
        x, y, z = self.grid
        return x * y * z
