"""Keep account of the configurations that autotuners could choose on a device, and of those in which kernels ran.

One that fails an assertion of its own while it is compiled is as slow as can be to Triton's autotuner: none chooses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.triton.interpreter.compiler_hints import StaticAssertionError


@dataclass
class _Tuner:
    """An autotuner: its configurations that it tried (what pruning left of them), the cases in which its kernel ran in
    each of them, those that do not compile, the first one of each case, and the one that it prefers now.
    """

    tuner: Any
    possible: dict[str, set[int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    first: dict[int, str] = field(default_factory=dict)
    preferred: str | None = None

    @property
    def left(self) -> list[str]:
        return [name for name, cases in self.possible.items() if not cases]

    def next(self, case: int) -> str | None:
        """Return the configuration to prefer in a case: one that has not run at all, or not in this case."""
        elsewhere = [name for name, cases in self.possible.items() if case not in cases]
        return next(iter([*self.left, *elsewhere]), None)


class AutotuneTurns:
    """The autotuners of a candidate.

    In every case each of them prefers a configuration that has not run yet.
    """

    def __init__(self) -> None:
        self._tuners: dict[int, _Tuner] = {}  # by the tuner's identity
        self._case = 0

    def next_case(self, case: int) -> None:
        """Have the next configuration chosen from here on: drop what the tuners remember of earlier choices."""
        self._case = case
        for state in self._tuners.values():
            state.preferred = state.next(case)
            state.tuner.cache.clear()

    def repeat_case(self, case: int) -> None:
        """Have the configuration of a case's first call chosen from here on: another may give other bits."""
        self._case = case
        for state in self._tuners.values():
            state.preferred = state.first.get(case, state.preferred)
            state.tuner.cache.clear()

    def prefers(self, tuner: Any, configuration: Any) -> bool | None:
        """Say whether ``tuner`` shall choose the configuration that it tries now.

        None where it does not compile.
        """
        state = self._tuners.setdefault(id(tuner), _Tuner(tuner))
        name = str(configuration)
        if name in state.refused:
            return None
        state.possible.setdefault(name, set())
        if state.preferred is None:
            state.preferred = name
        return name == state.preferred

    def chosen(self) -> None:
        """Record that a call with the preferred configurations has ended."""
        for state in self._tuners.values():
            best = str(getattr(state.tuner, "best_config", None))
            if best in state.possible:
                state.possible[best].add(self._case)
                state.first.setdefault(self._case, best)

    def refuse(self, failed: BaseException) -> bool:
        """Take what a call failed of: True where it is an assertion at compile time of a configuration beside which
        its tuner has others. That one is not preferred any more.
        """
        cause: BaseException | None = failed
        while cause is not None and not isinstance(cause, StaticAssertionError):
            cause = cause.__cause__
        for state in self._tuners.values():
            if cause is None or getattr(state.tuner, "base_fn", None) is not cause.kernel:
                continue
            name = state.preferred
            if name in state.possible and len(state.possible) > 1:
                del state.possible[name]
                state.refused.append(name)
                return True
        return False

    def tried(self) -> dict[str, list[str]]:
        """Return the configurations that have run, by kernel."""
        return {
            _name(t.tuner): [n for n, cases in t.possible.items() if cases] for t in self._tuners.values()
        }

    def refused(self) -> dict[str, list[str]]:
        """Return the configurations that do not compile, by kernel."""
        return {_name(state.tuner): state.refused for state in self._tuners.values() if state.refused}

    def left(self) -> dict[str, list[str]]:
        """By kernel: the configurations that have not run; kernels of which all have run are left out."""
        return {_name(state.tuner): state.left for state in self._tuners.values() if state.left}

    def left_in(self, case: int) -> int:
        """Return how many configurations have not run in a case, of the tuner with most."""
        counts = [sum(case not in c for c in state.possible.values()) for state in self._tuners.values()]
        return max(counts, default=0)

    def describe(self) -> str:
        """Return the preferred configurations in words."""
        chosen = [(k.tuner, k.preferred) for k in self._tuners.values() if k.preferred is not None]
        return "; ".join(f"{_name(tuner)}: {preferred}" for tuner, preferred in chosen)


def _name(tuner: Any) -> str:
    return str(getattr(getattr(tuner, "base_fn", None), "__name__", "a kernel"))
