"""Autotuned kernels: which configuration a device would choose is not known, so cases take turns with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Configurations:
    """The autotuners of a candidate and which of their configurations have run. ``turn`` numbers the cases."""

    def __init__(self) -> None:
        self.turn = -1
        self._ran: dict[int, tuple[Any, set[int]]] = {}  # by the tuner's identity

    def next_case(self) -> None:
        """From here on another configuration is chosen: what tuners remember of earlier choices goes."""
        self.turn += 1
        for tuner, _ in self._ran.values():
            tuner.cache.clear()
            tuner.cache_results = False

    def chosen(self, tuners: Sequence[Any]) -> None:
        """Tuners have chosen, and the kernel has run so."""
        for tuner in tuners:
            _, ran = self._ran.setdefault(id(tuner), (tuner, set()))
            best = getattr(tuner, "best_config", None)
            ran.update(n for n, configuration in enumerate(tuner.configs) if configuration is best)

    def left(self) -> dict[str, list[int]]:
        """By kernel: how many configurations have not run, of how many; kernels of which all have run are left out."""
        return {
            tuner.base_fn.__name__: [len(tuner.configs) - len(ran), len(tuner.configs)]
            for tuner, ran in self._ran.values()
            if len(ran) < len(tuner.configs)
        }
