"""``@nki.jit`` without a compiler: calling the kernel runs it on the emulator."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.compute.process_settings import collection_paused
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.emulator.loop_recorder import ReplayMismatchError
from accelopt_profiling.nki.emulator.machine import LaunchArgument, Machine, running, running_machine
from accelopt_profiling.nki.emulator.peak_usage import overflow
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import handed_out, taken
from accelopt_profiling.nki.frontend.torch_tensors import from_torch, is_torch
from accelopt_profiling.ran import RunRecorder

#: Notes what runs of the kernel that is launched.
RECORDER = RunRecorder()

#: The generation of the core of each platform that a kernel may name.
_GENERATIONS = {"trn1": 2, "inf2": 2, "gen2": 2, "trn2": 3, "gen3": 3, "trn3": 4, "gen4": 4}

#: Makes the machine for a launch and takes it back when the launch is over; set by ``emulated``.
Launcher = Callable[[str], Machine]

#: Gives a new machine what is special to a dialect: what tensors look like, what their operators mean.
Dialect = Callable[[Machine], None]


class UnmeasuredLatency:
    """Stands for the latencies that ``nki.benchmark`` measures on a device: none was."""

    def get_latency_percentile(self, percent: float) -> float:
        """Return NaN, in us."""
        return float("nan")


class BenchmarkResult:
    """What ``nki.benchmark`` leaves at a kernel."""

    nc_latency = UnmeasuredLatency()


class EmulatedKernel:
    """A kernel function. ``kernel(x)`` runs one program, ``kernel[n](x)`` a grid of them one after another.

    ``tiles`` names arguments that are tiles in SBUF. ``writes_arguments`` tells that the kernel's outputs are among its
    arguments, as before kernels returned them. ``read`` is called with the function before each launch.
    """

    __name__: str  # functools.update_wrapper sets them
    __qualname__: str
    benchmark_result = BenchmarkResult()

    def __init__(
        self,
        function: Callable[..., Any],
        launch: Launcher,
        dialect: Dialect,
        grid: tuple[int, ...] = (1,),
        writes_arguments: bool = False,
        tiles: frozenset[str] = frozenset(),
        read: Callable[[Callable[..., Any]], None] | None = None,
        platform: str = "",
    ) -> None:
        functools.update_wrapper(self, function)
        self._read = read
        self.function, self._launch, self.dialect, self.grid = function, launch, dialect, grid
        self.writes_arguments, self.tiles, self._platform = writes_arguments, tiles, platform

    def __getitem__(self, grid: Any) -> EmulatedKernel:
        """A size of 0 counts as 1: AWS's samples launch a single program so."""
        sizes = tuple(int(n) or 1 for n in (grid if isinstance(grid, tuple) else (grid,)))
        return self._with(sizes, self.tiles)

    def with_tiles(self, names: Iterable[str]) -> EmulatedKernel:
        """Return the kernel with arguments that are tiles in SBUF: they are loaded before it begins."""
        return self._with(self.grid, frozenset(names))

    def _with(self, grid: tuple[int, ...], tiles: frozenset[str]) -> EmulatedKernel:
        return EmulatedKernel(
            self.function,
            self._launch,
            dialect=self.dialect,
            grid=grid,
            writes_arguments=self.writes_arguments,
            tiles=tiles,
            read=self._read,
            platform=self._platform,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if running_machine() is not None:  # one kernel calls another: inlined
            return self.function(*args, **kwargs)
        if self._read is not None:
            self._read(self.function)
        machine = self._launch(self.__name__)
        machine.trace.path = self.__qualname__.replace("<locals>.", "")
        with collection_paused():
            try:
                return self._run(machine, args, kwargs)
            except (Exception, ReplayMismatchError) as error:
                # the kernel may have caught what went wrong first, and failed later
                if not machine.recorder.used:  # else without replay: the failure is to be the program's own
                    first = machine.diagnostics.first_fault
                    if first is None or first is error:
                        raise
                    raise first from error
                machine.begin(replaying=False)
                machine.trace.kernel = self.__name__
                machine.trace.path = self.__qualname__.replace("<locals>.", "")
                return self._run(machine, args, kwargs)

    def _run(self, machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if machine.answers is None:
            return self._launched(machine, args, kwargs)
        key = (self.__qualname__, self.grid, *map(described, [*args, *kwargs.values()]))
        if key not in machine.answers:
            machine.answers[key] = self._launched(machine, args, kwargs)
        return _like(machine.answers[key])

    def _launched(self, machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.dialect(machine)
        machine.launched_on_a_grid = self.grid != (1,)
        self._check_platform(machine)
        args, kwargs = self._with_flags(machine, args, kwargs)
        RECORDER.clear()
        names = [p.name for p in inspect.signature(self.function).parameters.values()]
        positional = [
            self._argument(machine, a, names[at] if at < len(names) else "") for at, a in enumerate(args)
        ]
        named = {name: self._argument(machine, a, name) for name, a in kwargs.items()}
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        machine.trace.arguments = tuple(f"{n} {described(v)}" for n, v in arguments.items())
        with running(machine):
            try:
                result = machine.run_programs(self.grid, lambda: self.function(*positional, **named))
            finally:
                machine.trace.ran = RECORDER.taken(_file(self.function))
            if machine.recorder.mismatched:
                raise ReplayMismatchError
            if machine.diagnostics.first_fault is not None:  # the kernel caught what a compiler ends with
                raise machine.diagnostics.first_fault
            finding = overflow(machine.trace.instructions, machine.limits)
            if finding is not None:
                machine.findings.append(finding)
            returned = _result(machine, result)
            written = [a for a in machine.arguments if a.writable]
            _write_back(machine, written)
        results = _arrays_in([returned, [a.array for a in written]])
        machine.judge_unwritten_reads(results)
        if machine.results is not None:
            stored = _stored(machine)
            outputs = _arrays_in([returned, [a.array for a in written if id(a.tile.block.info) in stored]])
            machine.results = [np.array(a) for a in outputs]
        return returned

    def _check_platform(self, machine: Machine) -> None:
        """Tell that the kernel, or the environment, names another core than the one that is emulated."""
        line = inspect.unwrap(self.function).__code__.co_firstlineno
        if self._platform and machine.version:
            raise KernelFaultError(
                "unsupported",
                "nki.jit(platform_target=...) raises an error since NKI 0.3: NEURON_PLATFORM_TARGET_OVERRIDE names the "
                f"target. For {self._platform} profile with --target.",
                line,
            )
        platform = self._platform or os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "")
        generation = _GENERATIONS.get(platform)
        if generation is not None and generation != machine.limits.generation:
            core = f"trn{machine.limits.generation - 1}"
            advice = f"Profile with --target trn{generation - 1}."
            message = f"{platform} is named as target here; this is of {core}. {advice}"
            machine.findings.append(Finding("other-target", line, "warning", message))

    def _with_flags(
        self, machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Note the launch's flags, and return its arguments with those that the run sets."""
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError:  # the call itself will say so
            return args, kwargs
        bound.apply_defaults()
        machine.flags = {name for name, value in bound.arguments.items() if isinstance(value, bool)}
        flags = machine.flags & machine.turned_flags
        if not flags:
            return args, kwargs
        bound.arguments.update({name: not bound.arguments[name] for name in flags})
        return bound.args, bound.kwargs

    @functools.cached_property
    def _returned(self) -> set[str] | None:
        """The names that the kernel returns, with those of what it assigned to them, and "" for anything else that it
        returns; None where its text is not at hand."""
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(self.function)))
        except (OSError, SyntaxError, TypeError):
            return None
        values = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value is not None]
        parts = [e for v in values for e in (v.elts if isinstance(v, (ast.Tuple, ast.List)) else [v])]
        nothing = {id(e) for e in parts if isinstance(e, ast.Constant) and e.value is None}
        names = {e.id if isinstance(e, ast.Name) else "" for e in parts if id(e) not in nothing}
        given = [
            (target.id, n.value.id)
            for n in ast.walk(tree)
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name)
            for target in n.targets
            if isinstance(target, ast.Name)
        ]
        while more := {source for target, source in given if target in names} - names:
            names |= more
        return names

    def _writes(self, name: str, version: str) -> bool:
        """Return whether an argument may be an output in its own place: one of a kernel that returns nothing, and in
        today's dialect one that the kernel returns, maybe by another name."""
        if self._returned is None:
            return False
        return not self._returned or (bool(version) and name in self._returned)

    def _argument(self, machine: Machine, value: Any, name: str) -> Any:
        """Return an argument as the kernel gets it: an array as a tensor in HBM, also inside of a sequence, a
        dictionary or an object of a data class."""
        if _is_array(value):
            array = value if isinstance(value, np.ndarray) else from_torch(value)
            if machine.version and machine.limits.generation < 4 and array.dtype.name == "float8_e4m3fn":
                array = array.astype(
                    as_dtype("float8_e4m3")
                )  # as the compiler does (release notes of NKI 0.2)
            annotation = getattr(self.function, "__annotations__", {}).get(name)
            mutable = "mutable" in getattr(annotation, "__name__", str(annotation))  # also one that is text
            writable = self.writes_arguments or mutable or self._writes(name, machine.version)
            tensor = machine.argument(array, writable)
            if name in self.tiles:
                tensor = machine.transfers.load(tensor, None, None)
                machine.arguments.append(LaunchArgument(tensor, array, False))
            return handed_out(tensor)
        if not _holds_arrays(value):
            return value
        if isinstance(value, dict):
            return {key: self._argument(machine, item, name) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            items = [self._argument(machine, item, name) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        made = copy.copy(value)
        for field, item in _fields(value).items():
            object.__setattr__(made, field, self._argument(machine, item, name))
        return made


def _is_array(value: Any) -> bool:
    """Tell that a launch makes a tensor of ``value``: an array with dimensions, or one of torch."""
    return bool(isinstance(value, np.ndarray) and value.ndim) or is_torch(value)


def described(value: Any) -> str:
    """Return "float32 1024x64", or a plain value."""
    if isinstance(value, type) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return repr(value)[:80]
    return f"{str(value.dtype).rpartition('.')[2]} {'x'.join(map(str, value.shape)) or 'scalar'}"


def _file(function: Callable[..., Any]) -> str:
    return str(getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", ""))


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object of a data class; none of anything else."""
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    return {f.name: getattr(value, f.name) for f in fields(value) if hasattr(value, f.name)}


def _holds_arrays(value: Any) -> bool:
    """Tell that there is an array inside of ``value``."""
    if isinstance(value, dict):
        inner: Iterable[Any] = value.values()
    else:
        inner = value if isinstance(value, (tuple, list)) else _fields(value).values()
    return any(_is_array(item) or _holds_arrays(item) for item in inner)


def _stored(machine: Machine) -> set[int]:
    """Return the ids of the blocks that a launch wrote to."""
    return {id(block) for i in machine.trace.instructions for block, _ in i.writes}


def _write_back(machine: Machine, written: list[LaunchArgument]) -> None:
    """Copy what a kernel wrote to its arguments into the caller's arrays."""
    if not written:
        return
    stored = _stored(machine)
    machine.trace.output_bytes += sum(a.array.nbytes for a in written if id(a.tile.block.info) in stored)
    if machine.mode != "full":
        return
    machine.deferred.run(final=True)
    for argument in written:
        if not argument.tile.block.borrowed and argument.tile.block.storage is not None:
            argument.array[...] = argument.tile.array()


def _arrays_in(value: Any) -> list[Array]:
    """Return the arrays in a nest of sequences, in order."""
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in _arrays_in(item)]
    return [value] if isinstance(value, np.ndarray) else []


def _like(value: Any) -> Any:
    """Return new arrays without values like those in a nest of sequences."""
    if isinstance(value, (tuple, list)):
        values = [_like(v) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
    return np.empty(value.shape, value.dtype) if isinstance(value, np.ndarray) else value


def _result(machine: Machine, value: Any) -> Any:
    return _arrays(machine, _off_chip(machine, value))


def _off_chip(machine: Machine, value: Any) -> Any:
    """Return ``value`` with copies in HBM of tiles on the chip, whose memory is given back when the run ends."""
    value = taken(value)
    if isinstance(value, Tile) and value.block.info.memory is not MemorySpace.HBM:
        return machine.memory.copy_to_hbm(value)
    if isinstance(value, (tuple, list)):
        values = [_off_chip(machine, v) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
    return value


def _check_output(machine: Machine, tile: Tile) -> None:
    """Check that a tensor that a kernel of today's dialect returns lies in shared HBM, or is an argument."""
    info = tile.block.info
    if machine.version and not machine.is_shared(tile):
        raise KernelFaultError(
            "unsupported",
            f"A kernel's output lies in nl.shared_hbm (NKI 0.3); this one of shape {tile.shape} does not.",
            info.line,
        )


def _arrays(machine: Machine, value: Any) -> Any:
    if isinstance(value, Tile):
        _check_output(machine, value)
        return machine.output(value)
    if isinstance(value, (tuple, list)):
        values = [_arrays(machine, v) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
    if isinstance(value, BlockArray):
        machine.fault("unsupported", "A kernel returns tensors in nl.shared_hbm, not tiles on the chip.")
    return value


def decorator(
    launch: Launcher,
    dialect: Dialect,
    writes_arguments: bool = False,
    read: Callable[[Callable[..., Any]], None] | None = None,
) -> Callable[..., Any]:
    """Return ``nki.jit`` with or without arguments, or one of those for kernels whose outputs are arguments.

    ``read`` is called with a kernel's function before each launch.
    """

    def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda f: jit(f, **options)
        if isinstance(function, EmulatedKernel):
            return function
        platform = str(options.get("platform_target") or "")
        return EmulatedKernel(
            function, launch, dialect, writes_arguments=writes_arguments, read=read, platform=platform
        )

    return jit
