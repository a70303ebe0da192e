"""Targets: named hardware figures with their sources, loaded from the JSON files beside this module.

The files are read through ``importlib.resources``, so that they are found inside a zip archive too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
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

    @property
    def is_validated(self) -> bool:
        """Whether estimates for it were ever held against times of a device: ``compared`` in its file says which."""
        return bool(self.data.get("compared"))

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
        from accelopt_profiling.triton_adapter.compiler import GPUTarget

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


class UnknownTargetError(ValueError):
    """No target has that name. The message lists the known names."""


@cache
def _targets() -> dict[str, Target]:
    targets = {}
    for entry in resources.files(__package__).iterdir():
        if entry.name.endswith(".json"):
            data = json.loads(entry.read_text(encoding="utf-8"))
            targets[data["name"]] = _build(data)
    return dict(sorted(targets.items()))


def _build(data: Mapping[str, Any]) -> Target:
    figures = {
        name: Figure(float(entry["value"]), entry["unit"], entry["source"])
        for name, entry in data.get("figures", {}).items()
    }
    aliases = tuple(data.get("aliases", ()))
    if data["kind"] == "gpu":
        triple = data["triton"]
        return GpuTarget(
            name=data["name"],
            kind="gpu",
            title=data["title"],
            aliases=aliases,
            figures=figures,
            data=data,
            backend=triple["backend"],
            arch=triple["arch"],
            warp_size=triple["warp_size"],
        )
    return Target(
        data["name"], data["kind"], title=data["title"], aliases=aliases, figures=figures, data=data
    )


def default_neuron_target(*, beta1: bool, microscaling: bool = False) -> str:
    """Return the NeuronCore that NKI kernels are meant for where nothing else is said: trn1 for Beta 1
    (``neuronxcc.nki``), whose published times are of it; trn2 for today's ``nki``, whose FAQ (2.33.1) names only
    Trainium2 and Trainium3; trn3 where they use microscaling instructions, which no other has."""
    return "trn3" if microscaling else "trn1" if beta1 else "trn2"


def target_names(kind: str | None = None) -> list[str]:
    """Return the names of all targets, or of those of one kind ("gpu", "neuron"), sorted."""
    return [name for name, target in _targets().items() if kind in (None, target.kind)]


def load_target(name: str) -> Target:
    """Return the target called ``name``.

    Also by alias, compiler architecture ("sm_90", "gfx942") or "cuda:90".

    Upper and lower case, "-" and "_" are the same.

    Raises:
        UnknownTargetError: there is none; the message lists the names.
    """
    spelling = _spelling(name)
    for target in _targets().values():
        if spelling in map(_spelling, (target.name, *target.aliases)):
            return target
    raise UnknownTargetError(f"there is no target {name!r}; choose one of: {', '.join(_targets())}")


def load_gpu(name: str) -> GpuTarget:
    """Load as ``load_target`` does, for a GPU.

    Raises:
        UnknownTargetError: there is no such target, or it is not a GPU.
    """
    target = load_target(name)
    if not isinstance(target, GpuTarget):
        raise UnknownTargetError(
            f"{target.title} is not a GPU; choose one of: {', '.join(target_names('gpu'))}"
        )
    return target


def _spelling(name: str) -> str:
    return name.strip().lower().replace("-", "_")
