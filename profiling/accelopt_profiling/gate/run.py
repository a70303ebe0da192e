"""The second step: run the candidate on the drawn inputs. No seed, no reference and no expected value exists
here.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.gate.emulation import GateDialect, emulation
from accelopt_profiling.gate.files import case_folder
from accelopt_profiling.gate.memory import fill_in_place, overlapping, same_layout
from accelopt_profiling.gate.values import NotCarried, load_values, save_values
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.call import Call, perform
from accelopt_profiling.worker.step import StepContext, StepFailed
from accelopt_profiling.worker.usercode import load_module, user_errors


@dataclass(frozen=True)
class RunParams:
    """``calls`` has the number of cases that may have been drawn. ``hidden`` are module names that the
    candidate may not import (the problem's), ``neutralised`` names of its own that must not help it (a
    reference in its file).
    """

    dialect: GateDialect
    target: str
    cases: int
    twice: list[int] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RunCase:
    """``inputs_changed`` and ``aliases`` tell what the candidate did to its inputs, ``reused`` that it gave
    the same memory out twice. ``written`` is the share of output elements it wrote, where only some programs
    were run.
    """

    index: int
    seconds: float
    inputs_changed: list[int] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    reused: bool = False


def run(context: StepContext, params: RunParams) -> list[RunCase]:
    """Load the candidate, call it once per case with poisoned fresh outputs, and save what it returns."""
    for name in params.hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it now raises ModuleNotFoundError
    with emulation(params.dialect, params.target), poisoned_memory():
        module = load_module(context)
        for name in params.neutralised:
            if hasattr(module, name):
                setattr(module, name, _refuse(name))
        return _run_all(context, params, module)


def _run_all(context: StepContext, params: RunParams, module: ModuleType) -> list[RunCase]:
    results: list[RunCase] = []
    earlier: list[Any] | None = None
    for index in range(params.cases):
        folder = case_folder(context, index)
        if not (folder / "arguments").is_dir():
            continue
        context.emit({"running": index})
        call = from_plain(Call, load_values(folder / "call")[0])
        arguments = load_values(folder / "arguments")
        if earlier is not None and same_layout(earlier, arguments):
            fill_in_place(earlier, arguments)  # new data at addresses that were seen before
            arguments = earlier
        earlier = arguments
        outputs, result = _run_one(context, module, call, arguments, index)
        _save(folder / "outputs", outputs)
        if index in params.twice:
            again, second = _run_one(context, module, call, load_values(folder / "arguments"), index)
            _save(folder / "again", again)
            changed = sorted({*result.inputs_changed, *second.inputs_changed})
            reused = bool(overlapping(outputs, again))
            result = RunCase(index, result.seconds, changed, result.aliases or second.aliases, reused)
        results.append(result)
    return results


def _run_one(
    context: StepContext, module: ModuleType, call: Call, arguments: list[Any], index: int
) -> tuple[list[Any], RunCase]:
    before = [fingerprint(a) for a in arguments]
    started = time.perf_counter()
    with user_errors(context):
        outputs = perform(module, call, arguments, context.source.kernel)
    seconds = time.perf_counter() - started
    changed = [n for n, (a, old) in enumerate(zip(arguments, before, strict=True)) if fingerprint(a) != old]
    return outputs, RunCase(index, seconds, changed, overlapping(arguments, outputs))


def _save(folder: Any, outputs: list[Any]) -> None:
    try:
        save_values(folder, outputs)
    except NotCarried as error:
        raise StepFailed(StepError("wrong-output", f"An output cannot be compared: {error}.")) from error


def fingerprint(value: Any) -> bytes:
    """A hash of an argument's type, shape and bits."""
    state = hashlib.blake2b(digest_size=16)
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

    torch = sys.modules.get("torch")
    numpy: Any = np
    numpy.empty, numpy.empty_like = poisoned_empty, poisoned_empty_like
    if torch is not None:
        filled = torch.utils.deterministic.fill_uninitialized_memory
        mode, warn = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        numpy.empty, numpy.empty_like = empty, empty_like
        if torch is not None:
            torch.utils.deterministic.fill_uninitialized_memory = filled
            torch.use_deterministic_algorithms(mode, warn_only=warn)


def _poison(array: Any) -> Any:
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    return array
