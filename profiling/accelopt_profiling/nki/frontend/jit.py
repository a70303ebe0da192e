"""``@nki.jit`` without a compiler: calling the kernel runs it on the emulator."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.process_settings import collection_paused
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.loop_recorder import ReplayMismatchError
from accelopt_profiling.nki.emulator.machine import Machine, running, running_machine
from accelopt_profiling.nki.emulator.peak_usage import overflow
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import handed_out, taken

#: Makes the machine for a launch and takes it back when the launch is over; set by ``emulated``.
Launcher = Callable[[str], Machine]

#: Gives a new machine what is special to a dialect: what tensors look like, what their operators mean.
Dialect = Callable[[Machine], None]


class EmulatedKernel:
    """A kernel function. ``kernel(x)`` runs one program, ``kernel[n](x)`` a grid of them one after another."""

    def __init__(
        self, function: Callable[..., Any], launch: Launcher, dialect: Dialect, grid: tuple[int, ...] = (1,)
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self._launch, self.dialect, self.grid = function, launch, dialect, grid

    def __getitem__(self, grid: Any) -> EmulatedKernel:
        sizes = grid if isinstance(grid, tuple) else (grid,)
        return EmulatedKernel(self.function, self._launch, self.dialect, tuple(int(n) for n in sizes))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if running_machine() is not None:  # one kernel calls another: inlined
            return self.function(*args, **kwargs)
        machine = self._launch(self.__name__)  # type: ignore[attr-defined]  # functools.update_wrapper sets it
        with collection_paused():
            try:
                return self._run(machine, args, kwargs)
            except (Exception, ReplayMismatchError) as error:
                # the kernel may have caught what went wrong first, and failed later
                if not machine.recorder.mismatched:
                    first = machine.diagnostics.first_fault
                    if first is None or first is error:
                        raise
                    raise first from error
                machine.begin(replaying=False)
                machine.trace.kernel = self.__name__  # type: ignore[attr-defined]  # functools.update_wrapper sets it
                return self._run(machine, args, kwargs)

    def _run(self, machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.dialect(machine)
        machine.launched_on_a_grid = self.grid != (1,)
        positional = [_argument(machine, a) for a in args]
        named = {name: _argument(machine, a) for name, a in kwargs.items()}
        result: Any = None
        with running(machine):
            for program in itertools.product(*(range(n) for n in self.grid)):
                machine.begin_program(program, self.grid)
                result = self.function(*positional, **named)
            if machine.recorder.mismatched:
                raise ReplayMismatchError
            if machine.diagnostics.first_fault is not None:  # the kernel caught what a compiler ends with
                raise machine.diagnostics.first_fault
            finding = overflow(machine.trace.instructions, machine.limits, not machine.version)
            if finding is not None:
                machine.findings.append(finding)
        return _result(machine, result)


def _argument(machine: Machine, value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return handed_out(machine.argument(value))
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return handed_out(machine.argument(_from_torch(value)))
    return value


def _from_torch(tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        return tensor.view(torch.int16).numpy().view(as_dtype("bfloat16"))
    return tensor.numpy()


def _result(machine: Machine, value: Any) -> Any:
    value = taken(value)
    if isinstance(value, Tile):
        return machine.output(value)
    if isinstance(value, (tuple, list)):
        values = [_result(machine, v) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
    if isinstance(value, BlockArray):
        machine.fault("unsupported", "A kernel returns tensors in nl.shared_hbm, not tiles on the chip.")
    return value


def decorator(launch: Launcher, dialect: Dialect) -> Callable[..., Any]:
    """Return ``nki.jit`` with or without arguments."""

    def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda f: jit(f, **options)
        return function if isinstance(function, EmulatedKernel) else EmulatedKernel(function, launch, dialect)

    return jit
