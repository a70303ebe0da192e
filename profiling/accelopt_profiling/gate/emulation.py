"""The place of the device in the gate's processes: each dialect's emulation, or nothing where code is plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

#: "numpy" is plain Python on NumPy arrays, as references are; nothing is emulated for it.
GateDialect = Literal["triton", "nki", "numpy"]


class Seen:
    """What an emulation saw of the code that ran in it. This one saw nothing: the code ran as it is."""

    def raise_faults(self) -> None:
        """Raise what went wrong inside a kernel and did not reach the code that launched it."""

    def launched(self) -> list[str] | None:
        """Names of the kernels that ran; None where nothing tells."""
        return None

    def complete(self) -> bool:
        """Whether every program of every launch ran."""
        return True

    def known(self, outputs: list[Any]) -> dict[int, Any]:
        """For each array of ``outputs`` (by number, lists flattened) of which only some elements are known: a mask."""
        return {}


class _NkiSeen(Seen):
    def __init__(self, emulator: Any) -> None:
        self._emulator = emulator

    def launched(self) -> list[str] | None:
        return None if self._emulator.real else sorted({m.trace.kernel for m in self._emulator.machines})


class _TritonSeen(Seen):
    def __init__(self, session: Any) -> None:
        self._session = session

    def raise_faults(self) -> None:
        from accelopt_profiling.triton.session import OutOfBoundsError

        for execution in self._session.executions:
            if execution.error is not None:
                raise execution.error
            if execution.faults:
                raise OutOfBoundsError(execution.faults[0])

    def launched(self) -> list[str] | None:
        return sorted({launch.name for launch in self._session.launches})

    def complete(self) -> bool:
        return not self._session.coverage.sampled

    def known(self, outputs: list[Any]) -> dict[int, Any]:
        if self.complete():
            return {}
        from accelopt_profiling.gate.memory import arrays_of

        masks: dict[int, Any] = {}
        for number, (_, tensor) in enumerate(arrays_of(outputs)):
            mask = self._session.coverage.known(tensor)
            if mask is None:  # computed by PyTorch from what kernels left, where unknown floats are NaN
                mask = (
                    ~tensor.isnan() if tensor.is_floating_point() else tensor.new_zeros(tensor.shape).bool()
                )
            masks[number] = mask.numpy()
        return masks


@contextmanager
def emulation(dialect: GateDialect, target: str, seconds: float | None = None) -> Iterator[Seen]:
    """Make kernels of ``dialect`` run here and compute what they would on ``target``, while the context is open.

    With ``seconds`` a Triton launch that cannot be interpreted whole in that time is interpreted in part; without, it
    is interpreted whole. Kernels of a module that was loaded in one such context run in another as well.
    """
    if dialect == "nki":
        from accelopt_profiling.nki.install import emulated as emulated_nki

        with emulated_nki(mode="full", record=False) as emulator:
            yield _NkiSeen(emulator)
    elif dialect == "triton":
        from accelopt_profiling.triton.session import emulated as emulated_triton

        mode: Literal["capture", "execute"] = "execute" if seconds is None else "capture"
        with emulated_triton(
            target, mode=mode, sample=SAMPLE, seconds=seconds or 0.0, count=False
        ) as session:
            yield _TritonSeen(session)
    else:
        yield Seen()


#: Programs of a launch that are interpreted when there is no time for all of them.
SAMPLE = 16
