"""The two dialects of NKI: where their functions are imported from, and the parameters of the known ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class NkiSpelling:
    """One dialect. ``packages`` gives the module behind "nl" and "nisa", ``parameters`` the positional parameters of
    each known function ("nisa.activation"). ``mutates`` says that instructions write a destination, their first
    argument, instead of returning a tile; those in ``accumulating`` may add to what is there."""

    name: str
    packages: Mapping[str, str]
    parameters: Mapping[str, tuple[str, ...]]
    mutates: bool
    accumulating: frozenset[str]

    def canonical(self, path: str) -> str:
        """Return ``nl.load`` for ``neuronxcc.nki.language.load``; other paths as they are."""
        for short, package in self.packages.items():
            if path.startswith(f"{package}."):
                return f"{short}.{path[len(package) + 1 :]}"
        return path

    def full(self, path: str) -> str:
        """Return the path to import ``nl.load`` from; other paths as they are."""
        short, _, name = path.partition(".")
        return f"{self.packages[short]}.{name}" if short in self.packages else path


@cache
def spelling(name: str) -> NkiSpelling:
    """Return the dialect "beta1" (``neuronxcc.nki``) or "current" (``nki``)."""
    data = json.loads(resources.files(__package__).joinpath("dialects.json").read_text("utf-8"))
    parameters = {path: tuple(names) for path, names in data[name].items()}
    return NkiSpelling(
        name, data["packages"][name], parameters, name == "current", frozenset(data["accumulating"])
    )
