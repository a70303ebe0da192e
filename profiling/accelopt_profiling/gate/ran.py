"""What is asked of the candidate's step, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.gate.emulation import GateDialect


@dataclass(frozen=True)
class RunParams:
    """``cases`` is the number of cases that may have been drawn. ``hidden`` are module names that the candidate may
    not import (the problem's), ``neutralised`` names of its own that must not help it (a reference in its file).
    ``repeats`` and ``repeat_seconds`` bound the further calls on data seen before, ``case_seconds`` each case.
    """

    dialect: GateDialect
    target: str
    cases: int
    interpret_seconds: float
    hidden: list[str] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)
    repeats: int = 24
    repeat_seconds: float = 0.3
    case_seconds: float = 60.0


@dataclass(frozen=True)
class RunCase:
    """``inputs_changed`` and ``aliases`` tell what the candidate did to its inputs, ``reused`` that it gave the same
    memory out twice. ``launched`` names the kernels in the order of their launches, ``again`` those of a second call
    on the same data, ``later`` those of a call after a week and a million calls (see ``later``); None where nothing
    tells. ``complete`` is False when only a sample of some launch's programs was
    run. ``raised`` is how a call failed at a shape, or on values, that the gate chose itself.
    """

    index: int
    seconds: float
    inputs_changed: list[int] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    reused: bool = False
    launched: list[str] | None = None
    again: list[str] | None = None
    later: list[str] | None = None
    complete: bool = True
    raised: str = ""


@dataclass(frozen=True)
class RunResult:
    """``patched`` names shared functions that were replaced, ``threads`` and ``processes`` count what still ran at the
    end, ``calls`` all calls. ``host_work`` is what host code computed around kernels that did nothing, in elements by
    kind; ``moved_only`` tells that no kernel left a value that it had not been given; ``late`` that outputs changed
    after they had been returned; ``attributes`` that outputs carried methods of their own; ``races`` names tensors of
    which programs of one launch read what others wrote. ``untried`` tells of autotuned kernels how many configurations
    did not run, of how many.
    """

    cases: list[RunCase] = field(default_factory=list)
    patched: list[str] = field(default_factory=list)
    threads: int = 0
    processes: int = 0
    calls: int = 0
    host_work: dict[str, int] = field(default_factory=dict)
    moved_only: bool = False
    late: bool = False
    attributes: list[str] = field(default_factory=list)
    races: list[str] = field(default_factory=list)
    untried: dict[str, list[int]] = field(default_factory=dict)
