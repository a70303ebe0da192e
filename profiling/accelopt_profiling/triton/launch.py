"""One captured launch of a Triton kernel: arguments, grid and options, before anything ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CapturedLaunch:
    """``fn`` is the JITFunction.

    ``signature`` maps argument names to Triton types ("*fp32", "i32", "constexpr"); ``constants`` maps constexpr names
    to values; ``options`` holds num_warps, num_stages and so on; ``attrs`` is what the JIT derived about divisibility.
    ``args`` are the launch's arguments in order (torch tensors on the CPU standing in for device tensors). ``file`` and
    ``line`` say where the kernel is defined (1-based line of ``def``). ``source`` is Triton's ASTSource, ``metadata``
    its launch metadata.
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


def with_constants(jitted: Any, source: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of the jitted function: libraries launch a compiled kernel without its constants, as Triton
    up to 3.2 did. ``source`` is what it was compiled from.
    """
    if len(args) >= len(jitted.arg_names):
        return args
    constants = {place[0]: value for place, value in source.constants.items() if len(place) == 1}
    rest = iter(args)
    numbers = {p.num for p in jitted.params if not p.is_constexpr}
    return tuple(next(rest, None) if n in numbers else constants.get(n) for n in range(len(jitted.arg_names)))


def describe_configuration(launch: CapturedLaunch) -> str:
    """Return what a launch was compiled for as text: "TILE=128, num_warps=4, num_stages=2".

    Strides are left out: they follow from the arguments.
    """
    chosen = {p.name for p in launch.fn.params if p.is_constexpr and "stride" not in p.name.lower()}
    values = {n: v for n, v in launch.constants.items() if n in chosen and isinstance(v, int)}
    parts = [f"{name}={value}" for name, value in values.items() if not isinstance(value, bool)]
    options = [
        f"{name}={launch.options[name]}" for name in ("num_warps", "num_stages") if name in launch.options
    ]
    return ", ".join(parts + options)


def describe_arguments(launch: CapturedLaunch) -> tuple[str, ...]:
    """Return what a launch was given: "grid 32x1", "x fp32 1024x64 (strides 64, 1)", "rows 1024"."""
    parts = [f"grid {'x'.join(map(str, launch.grid))}"]
    for name, value in zip(launch.fn.arg_names, launch.args, strict=False):
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            kind = launch.signature.get(name, "").removeprefix("*") or str(value.dtype).removeprefix("torch.")
            strides = ", ".join(map(str, value.stride())) if hasattr(value, "stride") else ""
            shape = "x".join(map(str, value.shape)) or "scalar"
            parts.append(f"{name} {kind} {shape}" + (f" (strides {strides})" if strides else ""))
        elif isinstance(value, (bool, int, float, str)):
            parts.append(f"{name} {value}")
    return tuple(parts)


def largest_tensor(launch: CapturedLaunch) -> str:
    """Return the largest tensor of a launch as text: "x 4096x1024 fp16"; the grid where it has none."""
    tensors = {
        name: value
        for name, value in zip(launch.fn.arg_names, launch.args, strict=False)
        if hasattr(value, "shape") and hasattr(value, "dtype")
    }
    if not tensors:
        return f"grid {'x'.join(map(str, launch.grid))}"
    name = max(tensors, key=lambda n: tensors[n].numel() if hasattr(tensors[n], "numel") else 0)
    kind = launch.signature.get(name, "").removeprefix("*") or str(tensors[name].dtype).removeprefix("torch.")
    return f"{name} {'x'.join(map(str, tensors[name].shape)) or 'scalar'} {kind}"
