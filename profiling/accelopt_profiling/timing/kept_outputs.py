"""Keep the outputs of a random sample of timed runs, for another process to compare with the reference."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.timing.inputs import Given, each_tensor, tensors_in

#: Below the job's folder; in it a folder per kept run, "RUN-VALUES" (the number of the run and of its values).
FOLDER = "timed"
#: So many runs are kept, and one after them, as long as their outputs are not larger than this together.
KEPT, KEPT_BYTES = 3, 1 << 30


@dataclass
class KeptOutputs:
    """A random sample of runs, each as likely as any other: which ones it will be, nothing tells ahead."""

    generator: random.Random = field(default_factory=random.SystemRandom)
    runs: list[tuple[int, Given, Any]] = field(default_factory=list)

    def see(self, run: int, pair: Given, outputs: Any) -> None:
        """Look at a run's outputs, right after it. What is kept is copied from the device at once."""
        place = len(self.runs) if len(self.runs) < KEPT else self.generator.randrange(run + 1)
        if place < KEPT:
            self.keep(run, pair, outputs, place)

    def keep(self, run: int, pair: Given, outputs: Any, place: int = KEPT) -> None:
        """Keep this run, unless its outputs are too large."""
        if _size(outputs) <= KEPT_BYTES // (KEPT + 1):
            self.runs[place : place + 1] = [(run, pair, copied(outputs))]

    def save(self, folder: Path) -> int:
        """Write them below ``folder``; how many there were. What cannot be compared is left out."""
        from accelopt_profiling.comparison.saved_values import (
            NotCarriedError,  # brings NumPy
            save_values,
        )

        saved = 0
        for run, pair, outputs in self.runs:
            values = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            try:
                save_values(folder / FOLDER / f"{run}-{pair.values}", values)
                saved += 1
            except NotCarriedError:
                continue
        return saved


def _size(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in(value))


def own_kinds(value: Any, tensor: type) -> list[str]:
    """Return the classes of tensors that are not exactly ``tensor``, or that carry attributes of their own:
    their work may be done when they are looked at, after the timed call."""
    return sorted({
        type(one).__name__ for one in tensors_in(value)
        if type(one).__name__ != "Parameter" and (type(one) is not tensor or vars(one))
    })  # fmt: skip


def copied(value: Any) -> Any:
    """Return the outputs on this side of the bus, in memory of their own."""
    return each_tensor(value, lambda tensor: tensor.detach().clone().cpu())
