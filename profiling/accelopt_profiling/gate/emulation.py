"""The place of the device in the gate's processes: each dialect's emulation, or nothing where code is plain
NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

#: "numpy" is plain Python on NumPy arrays, as references are; nothing is emulated for it.
GateDialect = Literal["triton", "nki", "numpy"]


@contextmanager
def emulation(dialect: GateDialect, target: str) -> Iterator[Any]:
    """Make kernels of ``dialect`` run here and compute what they would on ``target``, while the context is
    open.
    """
    if dialect == "nki":
        from accelopt_profiling.nki.install import emulated as emulated_nki

        with emulated_nki(mode="full", record=False) as emulator:
            yield emulator
    elif dialect == "triton":
        from accelopt_profiling.triton.session import emulated as emulated_triton

        with emulated_triton(target, mode="execute", count=False) as emulator:
            yield emulator
    else:
        yield None
