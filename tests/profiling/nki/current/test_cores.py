"""Two cores of a launch wait for one another and exchange tiles."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_current_source import TRN2
from support.nki_rule_cases import loaded

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import emulated

SWAP = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    sent = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    received = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(sent, x[:, nl.ds(me * 64, 64)])
    nisa.sendrecv(src=sent, dst=received, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
    nisa.memset(sent, 0.0)
    nisa.dma_copy(out[:, nl.ds(me * 64, 64)], received)
    nisa.core_barrier(out, (0, 1))
    {more}
    nisa.dma_copy(sent, out[:, nl.ds((1 - me) * 64, 64)])
    nisa.core_barrier(out, (0, 1))
    nisa.dma_copy(out[:, nl.ds(me * 64, 64)], sent)
    return out
"""
X = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)


def launch(cores: int, more: str = "pass") -> np.ndarray:
    with emulated("full", limits=TRN2):
        result: np.ndarray = loaded(SWAP.replace("{more}", more)).kernel[cores](X)
        return result


def test_each_core_gets_what_the_other_had_when_it_was_sent() -> None:
    assert np.array_equal(launch(2), X), "swapped once by sendrecv, and back through HBM"


@pytest.mark.parametrize(
    ("cores", "more", "message"),
    [
        (1, "pass", "two cores of a launch"),
        (2, "if me == 1: nisa.core_barrier(out, (0, 1))", "does not come here"),
        (2, "if me == 0: nisa.core_barrier(out, (0, 1))", "does not come here"),
        (2, "nisa.sendrecv(sent, received, me, me, 1)", "^$"),
        (2, "nisa.sendrecv(sent, received, 0, 0, 1)", "not to the one that waits"),
        (2, "nisa.sendrecv(sent, received, 2, 2, 1)", "cores are 0 and 1"),
    ],
)
def test_what_no_other_core_answers_is_told(cores: int, more: str, message: str) -> None:
    try:
        launch(cores, more)
        text = ""
    except KernelFaultError as fault:
        text = fault.message
    assert (not text) if message == "^$" else message in text


def test_an_error_of_one_core_ends_both() -> None:
    for me in (0, 1):
        with pytest.raises(ZeroDivisionError):
            launch(2, f"if me == {me}: 1 // 0")
