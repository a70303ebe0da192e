"""Targets: named hardware figures with their sources, and for a GPU what the compiler needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["gpu", "neuron"]


@dataclass(frozen=True)
class Figure:
    """One hardware number: ``source`` names the document it comes from, or states that it is our assumption."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class Target:
    """The hardware a cost is stated for.

    ``figures`` maps dotted names ("clock", "peak.fp16") to numbers; ``data`` is the whole JSON document, for
    what a kind of target describes in its own shape.
    """

    name: str
    kind: Kind
    title: str
    aliases: tuple[str, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, figure: str) -> float:
        """Return the value of one figure.

        Raises:
            KeyError: the target's file does not give that figure.
        """
        try:
            return self.figures[figure].value
        except KeyError:
            raise KeyError(f"target {self.name} has no figure {figure!r}") from None

    def get(self, figure: str, default: float) -> float:
        """Return the value of one figure, or ``default`` where the target's file does not give it."""
        return self[figure] if figure in self.figures else default


@dataclass(frozen=True)
class GpuTarget(Target):
    """A GPU. Triton compiles for ``backend`` ("cuda" or "hip"), ``arch`` (90, "gfx942") and ``warp_size``."""

    backend: Literal["cuda", "hip"] = "cuda"
    arch: int | str = 90
    warp_size: int = 32

    @property
    def architecture(self) -> str:
        """The compiler's name of the architecture: "sm_90" or "gfx942"."""
        return f"sm_{self.arch}" if self.backend == "cuda" else str(self.arch)

    def triton_target(self) -> Any:
        """Return Triton's ``GPUTarget`` for this GPU (imports triton)."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget(self.backend, self.arch, self.warp_size)

    def device_properties(self) -> dict[str, int]:
        """Return what Triton's driver would report for this device (``driver.active.utils.get_device_properties``).

        Clock rates are in kHz. ``mem_clock_rate`` and ``mem_bus_width`` (bits) are only given as a pair whose
        product, at two transfers per clock, is the datasheet's bandwidth.
        """
        bus_width = 4096
        return {
            "max_shared_mem": int(self["shared_memory_per_program"]),
            "max_num_regs": int(self["registers_per_multiprocessor"]),
            "multiprocessor_count": int(self["multiprocessors"]),
            "warpSize": self.warp_size,
            "sm_clock_rate": int(self["clock"] / 1e3),
            "mem_clock_rate": int(self["dram_bandwidth"] * 8 / bus_width / 2 / 1e3),
            "mem_bus_width": bus_width,
        }
