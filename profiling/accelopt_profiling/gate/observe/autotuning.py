"""Keep account of the configurations that autotuners could choose on a device, and of those in which kernels ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Tuner:
    """An autotuner: its configurations that it tried (what pruning left of them), those of them in which its kernel
    ran, and the one that it prefers in this case.
    """

    tuner: Any
    possible: dict[str, None] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    preferred: str | None = None

    @property
    def left(self) -> list[str]:
        return [name for name in self.possible if name not in self.ran]


class AutotuneTurns:
    """The autotuners of a candidate. In every case each of them prefers a configuration that has not run yet."""

    def __init__(self) -> None:
        self._tuners: dict[int, _Tuner] = {}  # by the tuner's identity

    def next_case(self) -> None:
        """Have the next configuration chosen from here on: drop what the tuners remember of earlier choices."""
        for known in self._tuners.values():
            known.preferred = None
            known.tuner.cache.clear()
            known.tuner.cache_results = False

    def prefers(self, tuner: Any, configuration: Any) -> bool:
        """Say whether ``tuner`` shall choose the configuration that it tries now."""
        known = self._tuners.setdefault(id(tuner), _Tuner(tuner))
        name = str(configuration)
        known.possible[name] = None
        if known.preferred is None and name not in known.ran:
            known.preferred = name
        return name == known.preferred

    def chosen(self) -> None:
        """Record that a call with the preferred configurations has ended."""
        for known in self._tuners.values():
            best = getattr(known.tuner, "best_config", None)
            if best is not None:
                known.ran.add(str(best))

    def left(self) -> dict[str, list[str]]:
        """By kernel: the configurations that have not run; kernels of which all have run are left out."""
        return {_name(known.tuner): known.left for known in self._tuners.values() if known.left}

    def describe(self) -> str:
        """The preferred configurations in words."""
        chosen = [(k.tuner, k.preferred) for k in self._tuners.values() if k.preferred is not None]
        return "; ".join(f"{_name(tuner)}: {preferred}" for tuner, preferred in chosen)


def _name(tuner: Any) -> str:
    return str(getattr(getattr(tuner, "base_fn", None), "__name__", "a kernel"))
