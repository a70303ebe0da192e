"""Makes ``import neuronxcc.nki`` and ``import nki`` find the emulated dialects, unless the real SDK is there."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.nki.beta1.modules import modules as beta1_modules
from accelopt_profiling.nki.current.modules import modules as current_modules
from accelopt_profiling.nki.current.versions import emulated_version
from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.emulator.machine import Machine, Mode, emulating
from accelopt_profiling.nki.frontend.stand_ins import StandInFinder
from accelopt_profiling.nki.sdk import real_packages, simulating


@dataclass
class Emulation:
    """The launches of one emulated run, in order. ``real`` tells that the SDK itself ran and nothing was emulated;
    ``order`` draws another order of the iterations of loops that promise to take any. ``replaying``: loops may be
    replayed from one iteration. ``results``: each machine keeps copies of what its launch returned or wrote.
    ``turned_flags`` are arguments, True or False, that each launch gets the other way round. With ``answers`` a launch
    on such arguments as an earlier one returns new arrays like those of it, without values. A launch ends with
    LoopsTooLongError at its instruction number ``most``, if that is not 0.
    """

    mode: Mode = "full"
    record: bool = True
    limits: CoreLimits = field(default_factory=CoreLimits)
    real: bool = False
    order: int | None = None
    replaying: bool = True
    results: bool = False
    most: int = 0
    turned_flags: frozenset[str] = frozenset()
    answers: dict[Any, Any] | None = None
    machines: list[Machine] = field(default_factory=list)

    def launch(self, kernel: str) -> Machine:
        machine = Machine(self.mode, self.record, self.limits, self.order, self.most)
        if not self.replaying:
            machine.begin(replaying=False)
        if self.results:
            machine.results = []
        machine.turned_flags, machine.answers = self.turned_flags, self.answers
        machine.trace.kernel = kernel
        self.machines.append(machine)
        return machine


_active: list[Emulation] = []


def _launch(kernel: str) -> Machine:
    if _active:
        return _active[-1].launch(kernel)
    return Machine()


def sdk_present() -> bool:
    """Return True if a real SDK with a simulator is importable; stand-ins do not count."""
    return bool(real_packages())


@contextmanager
def emulated(
    mode: Mode = "full",
    record: bool = True,
    limits: CoreLimits | None = None,
    sdk: bool = True,
    version: str = "",
    **options: Any,
) -> Iterator[Emulation]:
    """Run kernels of the body on the emulator, or with ``sdk`` on the real SDK's simulator where that is importable.

    ``version`` is of today's dialect, where not the one that ``ACCELOPT_NKI_VERSION`` names; ``options`` are further
    fields of ``Emulation``.

    The stand-in modules stay for as long as the context lasts; kernels loaded inside must be run inside.

    Raises:
        UnknownVersionError: ``ACCELOPT_NKI_VERSION`` names a version that there is not.
    """
    emulation = Emulation(mode, record, limits or CoreLimits(), **options)
    real = real_packages() if sdk else {}
    emulation.real = bool(real)
    modules = {
        n: m
        for n, m in _modules(version).items()
        if n.partition(".")[0] not in {d.partition(".")[0] for d in real}
    }
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    level = getattr(logging, "OFF", None)
    logging.OFF = level or logging.CRITICAL + 10  # type: ignore[attr-defined]  # the SDK's own level
    finder = StandInFinder({name.partition(".")[0] for name in modules}, frameworks=not real)
    sys.meta_path.append(finder)
    _active.append(emulation)
    try:
        with (
            emulating(emulation.limits),
            simulating(real, emulation.limits.generation) if real else nullcontext(),
        ):
            yield emulation
    finally:
        _active.pop()
        sys.meta_path.remove(finder)
        if level is None:
            del logging.OFF  # type: ignore[attr-defined]
        for name in finder.made:
            sys.modules.pop(name, None)
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


_built: dict[str, dict[str, Any]] = {}


def _modules(version: str) -> dict[str, Any]:
    """Return the stand-in modules of both dialects, built once per version of the current one."""
    version = version or emulated_version()
    if version not in _built:
        _built[version] = {**beta1_modules(_launch), **current_modules(_launch, version)}
    return _built[version]
