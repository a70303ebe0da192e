"""Watch the launches of Triton kernels in this process and record the calls that made them: of the calls under way,
the outermost function of the kernel's file.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from accelopt_profiling.recording.call_log import CallLog, key_of
from accelopt_profiling.recording.open_calls import OpenCall, OpenCalls
from accelopt_profiling.recording.recorded_call import RecordedCall
from accelopt_profiling.recording.value_encoding import EncodedArguments, UnrecordableValueError, encode

#: Bytes of saved values that one kernel file's recording may hold.
VALUE_BYTES = 4 << 20


@dataclass(frozen=True)
class RecordOptions:
    """What to record: launches of kernels below ``folders``, or those of ``files`` alone, at most ``max_shapes`` calls
    of different shapes for each kernel."""

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    max_shapes: int = 8


@dataclass
class _KernelFile:
    """What is known of one kernel file: calls by signature, and how many each kernel has."""

    numbers: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)
    more: int = 0
    spent: int = 0


class LaunchObserver:
    """Records the call behind each launch it is told of.

    ``enough`` is called when nothing is left to be recorded.
    """

    def __init__(self, options: RecordOptions, calls: OpenCalls, log: CallLog) -> None:
        self._options, self._calls, self._log = options, calls, log
        self._files: dict[str, _KernelFile] = {}
        self._elsewhere: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._case: set[str] = set()
        self.launches = 0
        self.enough: Callable[[], None] | None = None

    def launched(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record the launch ``kernel[grid](*args, **kwargs)`` of a ``JITFunction``."""
        file = kernel.fn.__code__.co_filename
        if not self._wanted(file):
            self._elsewhere[file] = self._elsewhere.get(file, 0) + 1
            self._log.note(elsewhere=self._elsewhere)
            return
        self.launches += 1
        name = kernel.fn.__qualname__.replace("<locals>.", "")
        self._case.add(name)
        state = self._files.setdefault(file, _KernelFile())
        try:
            if not any(self._through(call, name, state) for call in candidates(self._calls.stack(), file)):
                self._directly(kernel, name, grid=grid, args=args, kwargs=kwargs, state=state)
        except UnrecordableValueError as error:
            self._refused[name] = str(error)
        self._log.note(
            elsewhere=self._elsewhere, refused=self._refused, launches=self.launches,
            further={f: s.more for f, s in self._files.items() if s.more},
        )  # fmt: skip
        if self.enough is not None and self.complete():
            self._log.flush()
            self.enough()

    def begin_case(self, kernels: set[str]) -> None:
        """Add the names of the kernels launched from now on to ``kernels``."""
        self._case = kernels

    def passed_over(self, cases: int) -> None:
        """Take note of test cases that were not run because they would have added nothing."""
        self._log.note(passed_over=cases)
        self._log.flush()

    def full(self, kernels: set[str]) -> bool:
        """Tell whether each of these kernels has all the shapes that are kept."""
        counts = {k: n for state in self._files.values() for k, n in state.shapes.items()}
        return all(counts.get(kernel, 0) >= self._options.max_shapes for kernel in kernels)

    def complete(self) -> bool:
        """Tell whether every kernel of the files that were asked for has all its shapes."""
        shapes = {file: self._files.get(file, _KernelFile()).shapes for file in self._options.files}
        return bool(shapes) and all(
            bool(kernels := _kernels_of(file))
            and all(counts.get(kernel, 0) >= self._options.max_shapes for kernel in kernels)
            for file, counts in shapes.items()
        )

    def _wanted(self, file: str) -> bool:
        real = os.path.realpath(file)
        if self._options.files:
            return real in self._options.files
        outside = "site-packages" in Path(real).parts
        return not outside and any(real.startswith(f"{f}{os.sep}") for f in self._options.folders)

    def _through(self, call: OpenCall, kernel: str, state: _KernelFile) -> bool:
        """Record the launch as one of an open call. False where that cannot be repeated."""
        if not call.seen:
            call.seen, call.entry = True, entry_of(call)
            try:
                call.encoded = encode(call.entry.arguments) if call.entry else None
            except UnrecordableValueError as error:
                self._refused[f"{kernel} through {call.name}"] = str(error)
        if call.entry is None or call.encoded is None:
            return False
        if call.number is None:
            call.number = self._record(call.entry, call.encoded, grid=None, kernel=kernel, state=state)
        else:
            self._add_launch(call.number, kernel, state)
        return True

    def _directly(
        self, kernel: Any, name: str, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], state: _KernelFile
    ) -> None:  # fmt: skip
        """Record the launch itself, with the arguments that the jitted function got."""
        file = kernel.fn.__code__.co_filename
        path = kernel_entry(kernel, file)
        if path is None:
            raise UnrecordableValueError(
                f"no function of {Path(file).name} leads to it, and it is made at run time"
            )
        arguments = [*zip(kernel.arg_names, args, strict=False), *kwargs.items()]
        if callable(grid):
            grid = grid(dict(arguments))
        sizes = [int(n) for n in (grid if isinstance(grid, (tuple, list)) else (grid,))]
        self._record(
            OpenCall(file, path, arguments, list(kwargs)),
            encode(arguments),
            grid=sizes,
            kernel=name,
            state=state,
        )

    def _record(
        self, entry: OpenCall, encoded: EncodedArguments, grid: list[int] | None, kernel: str, state: _KernelFile
    ) -> int | None:  # fmt: skip
        """Return the number of the recorded call, new or known. None where its shape is one too many."""
        key = key_of(entry.name, encoded.values, grid, encoded.dtypes)
        number = state.numbers.get(key)
        if number is not None:
            self._log.calls[number].count += 1
        elif state.shapes.get(kernel, 0) >= self._options.max_shapes:
            state.more += 1
            return None
        else:
            storages, approximated = encoded.storages(max(0, VALUE_BYTES - state.spent))
            state.spent += sum(len(s.get("values", "")) for s in storages)
            call = RecordedCall(
                entry.name, encoded.values, keywords=entry.keywords, grid=grid, storages=storages, bytes=encoded.bytes,
                approximated=approximated,
            )  # fmt: skip
            number = state.numbers[key] = self._log.add(entry.file, call)
        self._add_launch(number, kernel, state)
        return number

    def _add_launch(self, number: int, kernel: str, state: _KernelFile) -> None:
        call = self._log.calls[number]
        first = kernel not in call.kernels
        if first:
            call.kernels[kernel] = 0
            state.shapes[kernel] = state.shapes.get(kernel, 0) + 1
        if call.count == 1:
            call.kernels[kernel] += 1
        self._log.change(number, first)


@cache
def _kernels_of(file: str) -> frozenset[str]:
    """Return the names of the kernels of a file that host code launches."""
    from accelopt_profiling.kernels import find_kernels
    from accelopt_profiling.source_text import UnreadableFileError, read_text

    try:
        text = read_text(Path(file))
    except UnreadableFileError:
        return frozenset()
    return frozenset(k.name for k in find_kernels(text).launched)


#: Functions that drive a kernel rather than offer it.
_DRIVERS = ("test_", "bench", "main", "reference", "get_inputs")


def candidates(stack: list[OpenCall], file: str) -> list[OpenCall]:
    """Order the open calls of ``file``: public functions from the outermost inwards, then private ones."""
    own = [call for call in stack if call.file == file and "__" not in call.name.split(".")[-1][:2]]
    own = [call for call in own if not call.name.split(".")[-1].startswith(_DRIVERS)]
    return sorted(own, key=lambda call: call.name.split(".")[-1].startswith("_"))


def entry_of(call: OpenCall) -> OpenCall | None:
    """Return the call as it is made from outside.

    None where it needs an object with a state, as most methods do.

    ``forward`` of an autograd function is called through ``apply``, without its context.
    """
    module = module_of(call.file)
    if module is None:
        return None
    arguments, name = call.arguments, call.name
    owner, _, method = name.rpartition(".")
    if owner:
        cls = _attribute(module, owner)
        if not isinstance(cls, type):
            return None
        torch = sys.modules.get("torch")
        if torch is not None and issubclass(cls, torch.autograd.Function):
            if method != "forward":
                return None
            name = f"{owner}.apply"
            if "setup_context" not in vars(cls):
                arguments = arguments[1:]
            if call.keywords:
                return None
        elif not isinstance(inspect.getattr_static(cls, method, None), staticmethod):
            return None
    function = _attribute(module, name)
    if not callable(function) or not _accepts(function, len(arguments), call.keywords):
        return None
    return OpenCall(call.file, name, arguments, call.keywords)


def kernel_entry(kernel: Any, file: str) -> str | None:
    """Return the name under which the kernel file's module has the jitted function ``kernel``: ``softmax_kernel.fn``
    where it is wrapped by an autotuner; None where it has none.
    """
    module = module_of(file)
    name = kernel.fn.__qualname__
    holder = _attribute(module, name) if module is not None else None
    for _ in range(8):
        if holder is kernel:
            return str(name)
        holder, name = getattr(holder, "fn", None), f"{name}.fn"
        if holder is None:
            return None
    return None


def module_of(file: str) -> Any:
    """Return the imported module of a file, or None."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return module
    return None


def _attribute(module: Any, name: str) -> Any:
    value = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _accepts(function: Any, count: int, keywords: list[str]) -> bool:
    """Check that what the module has under the function's name today takes these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    positional = count - len(keywords)
    try:
        signature.bind(*([None] * positional), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True
