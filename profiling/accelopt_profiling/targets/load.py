"""Load targets by name, alias or compiler architecture from the JSON files beside this module.

The files are read through ``importlib.resources``, so that they are found inside a zip archive too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from accelopt_profiling.targets.target import Figure, GpuTarget, Target


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
    return Target(data["name"], data["kind"], data["title"], aliases, figures, data)


def target_names(kind: str | None = None) -> list[str]:
    """Return the names of all targets, or of those of one kind ("gpu", "neuron"), sorted."""
    return [name for name, target in _targets().items() if kind in (None, target.kind)]


def load_target(name: str) -> Target:
    """Return the target called ``name``; also by alias, compiler architecture ("sm_90", "gfx942") or "cuda:90".

    Upper and lower case, "-" and "_" are the same.

    Raises:
        UnknownTargetError: there is none; the message lists the names.
    """
    wanted = _spelling(name)
    for target in _targets().values():
        if wanted in map(_spelling, (target.name, *target.aliases)):
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
