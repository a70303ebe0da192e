"""The second step: run the candidate on the drawn inputs. No seed, no reference and no expected value exists
here.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.gate.emulation import GateDialect, emulation
from accelopt_profiling.gate.files import case_folder, forget_requests
from accelopt_profiling.gate.memory import fill_in_place, overlapping, same_layout
from accelopt_profiling.gate.values import NotCarried, load_values, save_values
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.call import Call, perform
from accelopt_profiling.worker.step import StepContext, StepFailed
from accelopt_profiling.worker.usercode import load_module, user_errors


@dataclass(frozen=True)
class RunParams:
    """``cases`` is the number of cases that may have been drawn. ``hidden`` are module names that the candidate may
    not import (the problem's), ``neutralised`` names of its own that must not help it (a reference in its file).
    """

    dialect: GateDialect
    target: str
    cases: int
    interpret_seconds: float
    hidden: list[str] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RunCase:
    """``inputs_changed`` and ``aliases`` tell what the candidate did to its inputs, ``reused`` that it gave the same
    memory out twice. ``launched`` names the kernels that ran; None where nothing tells. ``complete`` is False when
    only a sample of some launch's programs was run.
    """

    index: int
    seconds: float
    inputs_changed: list[int] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    reused: bool = False
    launched: list[str] | None = None
    complete: bool = True


def run(context: StepContext, params: RunParams) -> list[RunCase]:
    """Load the candidate, call it once per case with poisoned fresh outputs, and save what it returns."""
    forget_requests(context)
    for name in set(params.hidden) - set(sys.modules) - set(sys.stdlib_module_names):
        sys.modules[name] = None  # type: ignore[assignment]  # importing it now raises ModuleNotFoundError
    with emulation(params.dialect, params.target):
        module = load_module(context)
    for name in params.neutralised:
        if hasattr(module, name):
            setattr(module, name, _refuse(name))
    return _Run(context, params, module).all()


class _Run:
    def __init__(self, context: StepContext, params: RunParams, module: ModuleType) -> None:
        self.context, self.params, self.module = context, params, module
        self.earlier: list[Any] | None = None

    def all(self) -> list[RunCase]:
        return [
            self._case(n)
            for n in range(self.params.cases)
            if (case_folder(self.context, n) / "call").is_dir()
        ]

    def _case(self, index: int) -> RunCase:
        folder = case_folder(self.context, index)
        self.context.emit({"running": index})
        plain_call, twice = load_values(folder / "call")
        call = from_plain(Call, plain_call)
        arguments = self._reused_memory(self._arguments(folder))
        outputs, result = self._call(call, arguments, folder / "outputs", index)
        if twice:
            again, second = self._call(call, self._arguments(folder), folder / "again", index)
            result = replace(
                result,
                inputs_changed=sorted({*result.inputs_changed, *second.inputs_changed}),
                aliases=result.aliases or second.aliases,
                reused=bool(overlapping(outputs, again)),
            )
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

    def _call(self, call: Call, arguments: list[Any], folder: Path, index: int) -> tuple[list[Any], RunCase]:
        before = [fingerprint(a) for a in arguments]
        params = self.params
        with emulation(params.dialect, params.target, params.interpret_seconds) as seen, poisoned_memory():
            started = time.perf_counter()
            with user_errors(self.context):
                outputs = perform(self.module, call, arguments, self.context.source.kernel)
                seen.raise_faults()
            seconds = time.perf_counter() - started
            _save(folder, outputs)
            _save_known(folder, seen.known(outputs))
        changed = [
            n for n, (a, old) in enumerate(zip(arguments, before, strict=True)) if fingerprint(a) != old
        ]
        aliases = overlapping(arguments, outputs)
        return outputs, RunCase(
            index, seconds, changed, aliases, launched=seen.launched(), complete=seen.complete()
        )


def _save(folder: Path, outputs: list[Any]) -> None:
    try:
        save_values(folder, outputs)
    except NotCarried as error:
        raise StepFailed(StepError("wrong-output", f"An output cannot be compared: {error}.")) from error


def _save_known(folder: Path, known: dict[int, Any]) -> None:
    """Which elements of which output are known, where only a sample of the programs was run."""
    for output, mask in known.items():
        np.save(folder / f"known-{output}.npy", mask, allow_pickle=False)


def fingerprint(value: Any) -> bytes:
    """A hash of an argument's type, shape and bits."""
    state = hashlib.sha256()
    _feed(value, state.update)
    return state.digest()


def _feed(value: Any, update: Callable[[Any], None]) -> None:
    torch = sys.modules.get("torch")
    if type(value) in (list, tuple):
        for item in value:
            _feed(item, update)
    elif torch is not None and isinstance(value, torch.Tensor):
        update(f"{value.dtype}{tuple(value.shape)}".encode())
        flat = value.detach().cpu().contiguous().reshape(-1)
        update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    elif isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode())
        update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data if value.size else b"")
    else:
        update(repr(value).encode())


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"the kernel called the problem's own `{name}`; a candidate has to compute the result itself"
        )

    return refused


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill memory that is handed out uninitialised with NaN (floats) or a large number, so that reading it
    shows.
    """
    empty, empty_like = np.empty, np.empty_like

    def poisoned_empty(*args: Any, **kwargs: Any) -> Any:
        return _poison(empty(*args, **kwargs))

    def poisoned_empty_like(*args: Any, **kwargs: Any) -> Any:
        return _poison(empty_like(*args, **kwargs))

    numpy: Any = np
    numpy.empty, numpy.empty_like = poisoned_empty, poisoned_empty_like
    try:
        yield
    finally:
        numpy.empty, numpy.empty_like = empty, empty_like


def _poison(array: Any) -> Any:
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    return array
