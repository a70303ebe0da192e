"""The second step: run the candidate on the drawn inputs. No seed, no reference and no expected value exists here.

What this process says of itself is not trusted: outputs are judged from files whose digests were told when they were
written, and what a candidate may not do ends the process at once (see ``watch``).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.gate.draw import Asked
from accelopt_profiling.gate.emulation import GateDialect, Seen, emulation, neutralised
from accelopt_profiling.gate.files import case_folder, forget_requests
from accelopt_profiling.gate.hostwork import HostWork
from accelopt_profiling.gate.identity import Identity
from accelopt_profiling.gate.memory import (
    arrays_of,
    fill_in_place,
    fingerprint,
    is_plain,
    overlapping,
    poisoned_memory,
    same_layout,
    stirred,
)
from accelopt_profiling.gate.values import NotCarried, digest, load_values, save_values
from accelopt_profiling.gate.watch import Watch
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.call import perform
from accelopt_profiling.worker.step import StepContext, StepFailed
from accelopt_profiling.worker.usercode import load_module, user_errors


@dataclass(frozen=True)
class RunParams:
    """``cases`` is the number of cases that may have been drawn. ``hidden`` are module names that the candidate may
    not import (the problem's), ``neutralised`` names of its own that must not help it (a reference in its file).
    ``repeats`` and ``repeat_seconds`` bound the further calls on data seen before.
    """

    dialect: GateDialect
    target: str
    cases: int
    interpret_seconds: float
    hidden: list[str] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)
    repeats: int = 24
    repeat_seconds: float = 0.3


@dataclass(frozen=True)
class RunCase:
    """``inputs_changed`` and ``aliases`` tell what the candidate did to its inputs, ``reused`` that it gave the same
    memory out twice. ``launched`` names the kernels in the order of their launches, ``again`` those of a second call
    on the same data; None where nothing tells. ``complete`` is False when only a sample of some launch's programs was
    run. ``raised`` is how a call at a derived shape failed.
    """

    index: int
    seconds: float
    inputs_changed: list[int] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    reused: bool = False
    launched: list[str] | None = None
    again: list[str] | None = None
    complete: bool = True
    raised: str = ""


@dataclass(frozen=True)
class RunResult:
    """``patched`` names shared functions that were replaced, ``threads`` and ``processes`` count what still ran at the
    end, ``calls`` all calls. ``host_work`` is what host code computed around kernels that did nothing, in elements by
    kind; ``moved_only`` tells that no kernel left a value that it had not been given; ``late`` that outputs changed
    after they had been returned; ``attributes`` that outputs carried methods of their own.
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


def run(context: StepContext, params: RunParams) -> RunResult:
    """Load the candidate, call it once per case with poisoned fresh outputs, and save what it returns."""
    forget_requests(context)
    for name in set(params.hidden) - set(sys.modules) - set(sys.stdlib_module_names):
        sys.modules[name] = None  # type: ignore[assignment]  # importing it now raises ModuleNotFoundError
    with emulation(params.dialect, params.target), poisoned_memory():
        pass  # imports what it needs: the candidate shall be the only one to import from here on
    Watch(
        context.folder, lambda code, said: context.emit({"violation": {"code": code, "message": said}})
    ).start()
    with emulation(params.dialect, params.target):
        before = Identity()
        module = load_module(context)
        patched = before.changes()
    for name in params.neutralised:
        if hasattr(module, name):
            setattr(module, name, _refuse(name))
    return _Run(context, params, module, patched).all()


class _Run:
    def __init__(
        self, context: StepContext, params: RunParams, module: ModuleType, patched: list[str]
    ) -> None:
        self.context, self.params, self.module = context, params, module
        self.patched = patched
        self.attributes: list[str] = []
        self.earlier: list[Any] | None = None
        self.calls = 0
        self.moved_only = False
        self.kept: list[tuple[list[Any], list[bytes]]] = []

    def all(self) -> RunResult:
        indices = [n for n in range(self.params.cases) if (case_folder(self.context, n) / "call").is_dir()]
        cases = [self._case(n) for n in indices]
        repeated = [n for n in indices if self._asked(n).twice]
        if repeated:
            self._repeat(repeated[0])
        late = any([fingerprint(o) for o in outputs] != prints for outputs, prints in self.kept)
        work = HostWork()
        for n in [
            *repeated,
            *[i for i in indices if i and i not in repeated and not self._asked(i).derived][:1],
        ]:
            self._without_kernels(n, work)
        return RunResult(
            cases, sorted(set(self.patched)), len(sys._current_frames()) - 1, _processes(), self.calls,
            work.elements, self.moved_only, late, sorted(set(self.attributes)),
        )  # fmt: skip

    def _asked(self, index: int) -> Asked:
        return from_plain(Asked, load_values(case_folder(self.context, index) / "call")[0])

    def _case(self, index: int) -> RunCase:
        folder = case_folder(self.context, index)
        self.context.emit({"running": index})
        asked = self._asked(index)
        arguments = self._reused_memory(self._arguments(folder))
        try:
            outputs, result = self._call(asked, arguments, index, "outputs")
        except StepFailed as failed:
            if not asked.derived or failed.error.code not in ("user-error", "wrong-output"):
                raise
            return RunCase(index, 0.0, raised=failed.error.message[:300])
        if asked.twice:
            again, second = self._call(asked, self._arguments(folder), index, "again")
            result = replace(
                result,
                inputs_changed=sorted({*result.inputs_changed, *second.inputs_changed}),
                aliases=result.aliases or second.aliases,
                reused=bool(overlapping(outputs, again)),
                again=second.launched,
            )
            self.kept.append((outputs, [fingerprint(o) for o in outputs]))
        return result

    def _arguments(self, folder: Path) -> list[Any]:
        with emulation(self.params.dialect, self.params.target):
            return load_values(folder / ("arguments" if (folder / "arguments").is_dir() else "inputs"))

    def _reused_memory(self, arguments: list[Any]) -> list[Any]:
        """New data at addresses that the candidate has seen before, where the layout allows."""
        if self.earlier is not None and same_layout(self.earlier, arguments):
            fill_in_place(self.earlier, arguments)
            return self.earlier
        self.earlier = arguments
        return arguments

    def _call(self, asked: Asked, arguments: list[Any], index: int, name: str) -> tuple[list[Any], RunCase]:
        before = [fingerprint(a) for a in arguments]
        params = self.params
        movement = name == "again"
        with (
            emulation(params.dialect, params.target, params.interpret_seconds, movement) as seen,
            poisoned_memory(),
        ):
            shared = Identity()
            started = time.perf_counter()
            outputs = self._perform(asked, arguments, seen)
            seconds = time.perf_counter() - started
            self.patched += shared.changes()
            self._save(index, name, outputs, seen)
            if movement and seen.movement is not None:
                self.moved_only = seen.movement.only
        changed = [
            n for n, (a, old) in enumerate(zip(arguments, before, strict=True)) if fingerprint(a) != old
        ]
        aliases = overlapping(arguments, outputs)
        return outputs, RunCase(
            index, seconds, changed, aliases, launched=seen.launched(), complete=seen.complete()
        )

    def _perform(self, asked: Asked, arguments: list[Any], seen: Seen) -> list[Any]:
        self.calls += 1
        with user_errors(self.context):
            outputs = perform(self.module, asked.call, arguments, self.context.source.kernel)
            seen.raise_faults()
        return outputs

    def _save(self, index: int, name: str, outputs: list[Any], seen: Seen) -> None:
        """Write outputs down and tell their digest before the candidate gets another turn."""
        self.attributes += [
            f"{type(o).__name__}.{key}" for o in outputs for key in getattr(o, "__dict__", {})
        ]
        folder = case_folder(self.context, index) / name
        for place, output in arrays_of(outputs):
            if not is_plain(output):
                said = f"Output {place} is a {type(output).__qualname__}, a kind of array of its own."
                raise StepFailed(StepError("wrong-type", said))
        try:
            save_values(folder, outputs)
        except NotCarried as error:
            raise StepFailed(StepError("wrong-output", f"An output cannot be compared: {error}.")) from error
        for output, mask in seen.known(outputs).items():
            np.save(folder / f"known-{output}.npy", mask, allow_pickle=False)
        self.context.emit({"saved": [index, name, digest(folder)]})

    def _repeat(self, index: int) -> None:
        """Further calls on data seen before; the last one's outputs are judged as well."""
        folder = case_folder(self.context, index)
        asked, params = self._asked(index), self.params
        ends = time.perf_counter() + params.repeat_seconds
        for number in range(params.repeats):
            last = number + 1 == params.repeats or time.perf_counter() > ends
            arguments = self._arguments(folder)
            with (
                emulation(params.dialect, params.target, params.interpret_seconds) as seen,
                poisoned_memory(),
            ):
                outputs = self._perform(asked, arguments, seen)
                if last:
                    self._save(index, "late", outputs, seen)
                    return

    def _without_kernels(self, index: int, work: HostWork) -> None:
        """Call once while kernels do nothing. What it raises does not matter: it then needs its kernels."""
        params = self.params
        if params.dialect == "numpy":
            return
        folder = case_folder(self.context, index)
        arguments = self._arguments(folder)
        other = stirred(self._arguments(folder))  # what a workspace keeps after this is right for other data
        with (
            _quiet(),
            emulation(params.dialect, params.target, params.interpret_seconds) as seen,
            poisoned_memory(),
        ):
            self._perform(self._asked(index), other, seen)
        outputs: list[Any] | None = None
        for marked in (work.marked(arguments), arguments):
            with neutralised(params.dialect, params.target) as seen, poisoned_memory(), work.counting():
                try:
                    outputs = self._perform(self._asked(index), marked, seen)
                    break
                except StepFailed:
                    continue
        if outputs is not None:
            with _quiet(), emulation(params.dialect, params.target):
                self._save(index, "idle", _unmarked(outputs), Seen())


def _quiet() -> AbstractContextManager[None]:
    import contextlib

    return contextlib.suppress(StepFailed)


def _unmarked(values: Any) -> Any:
    if type(values) in (list, tuple):
        return type(values)(_unmarked(v) for v in values)
    return values.view(np.ndarray) if isinstance(values, np.ndarray) else values


def _processes() -> int:
    """Child processes of this one that are alive (Linux; 0 where nothing tells)."""
    try:
        return sum(
            len((task / "children").read_text().split())
            for task in Path(f"/proc/{os.getpid()}/task").iterdir()
        )
    except OSError:
        return 0


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"the kernel called the problem's own `{name}`; a candidate has to compute the result itself"
        )

    return refused
