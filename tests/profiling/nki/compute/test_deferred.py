"""Deferred steps give bit for bit what computing each instruction at once gives; memory is freed after its last use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.nki_source import run

from accelopt_profiling.nki.compute import deferred, worker_pool
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.instruction_stream import InstructionStream
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.frontend.handle import handing
from accelopt_profiling.nki.install import emulated

RNG = np.random.default_rng(11)
A = RNG.standard_normal((64, 96), dtype=np.float32)
B = RNG.standard_normal((64, 96), dtype=np.float32)


@contextmanager
def products_of_copies() -> Iterator[None]:
    """Multiply contiguous copies of the operands.

    BLAS rounds a product by the operands' layout, and NumPy takes another routine where both are one array; whether a
    copy is left out must change nothing else.
    """
    matmul = np.matmul
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "matmul", lambda a, b: matmul(np.array(a, order="C"), np.array(b, order="C")))
        yield


def one_at_a_time(body: str, *inputs: Any) -> Any:
    """Run a kernel that computes every instruction before the next one is issued."""
    emit = InstructionStream.emit

    def eager(self: InstructionStream, *arguments: Any) -> Any:
        current().deferred.run()
        return emit(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InstructionStream, "emit", eager)
        return run(body, *inputs).result


#: Statements over the tiles t (a list of 64 x 32), the PSUM tile p (32 x 32) and the tiles
#: w (64 x 96) and h (64 x 3 x 32) of all inputs.
STATEMENTS = [
    "t[{i}][...] = nl.add(t[{j}], t[{k}])",
    "t[{i}][...] = nl.multiply(t[{j}], 0.5)",
    "t[{i}] = nl.exp(nl.minimum(t[{j}], 1.0))",
    "t[{i}] = nl.copy(t[{j}])",
    "t[{i}][:, 0:16] = nl.subtract(t[{j}][:, 16:32], t[{k}][:, 0:16])",
    "t[{i}] += t[{j}]",
    "v = nl.tanh(t[{j}]); t[{k}][...] = nl.add(t[{k}], 1.0); t[{i}][...] = v",
    "t[{i}][0:32, 8:24] = nl.copy(t[{j}][32:64, 0:16])",
    "p[...] += nisa.nc_matmul(t[{j}], t[{k}])",
    "p[...] = nisa.nc_matmul(t[{j}], t[{k}])",
    "t[{i}][0:32, :] = nl.multiply(nl.copy(p), 0.01)",
    "t[{i}][32:64, :] = nl.copy(nl.transpose(t[{j}][0:32, :]))",
    "w[:, 32 * {i}:32 * {i} + 32] = nl.copy(t[{j}])",
    "t[{i}][...] = nl.copy(w[:, 32 * {j}:32 * {j} + 32])",
    "t[{i}] = nl.load(a[:, 32 * {j}:32 * {j} + 32])",
    "nl.store(out[:, 32 * {i}:32 * {i} + 32], t[{j}])",
    "nl.store(s, t[{i}]); t[{j}] = nl.load(s); nl.store(s, t[{k}])",
    "for n in nl.affine_range(3):\n    t[n][...] = nl.add(t[(n + {i}) % 3], float(n))",
    "for n in nl.affine_range(3):\n    p[...] += nisa.nc_matmul(t[n], t[{i}])",
    "t[{i}][:, 0:1] = nl.max(t[{j}], axis=1, keepdims=True)",
    "nisa.activation_reduce(op=nl.square, data=t[{i}], reduce_op=nl.add, reduce_res=t[{j}][:, 4:5])",
    "t[{i}][...] = nl.multiply(t[{j}], t[{k}], mask=r < {i} * 20 + 7)",
    "h[:, {i}, :] = nl.copy(t[{j}])",
    "h[:, {i}, 8:24] = nl.load(a[:, 32 * {j} + 8:32 * {j} + 24])",
    "h[...] = nl.load(b.reshape((64, 3, 32)))",
    "t[{i}] = nl.copy(h[:, {j}, :])",
    "t[{i}][:, 0:24] = nl.copy(h[:, {j}, 8:32]); w[:, 64:96] = h[:, {k}, :]",
    "q = nl.copy(nl.transpose(t[{j}][0:32, 0:32])); p[...] += nisa.nc_matmul(q, t[{k}][0:32, :])",
    "q = nl.copy(nl.transpose(h[0:32, {i}, :])); t[{j}][0:32, :] = nl.add(q, p)",
    "t[{i}] = nl.copy(t[{j}]); t[{j}][...] = nl.copy(t[{k}])",
]

HEAD = """
out = nl.ndarray((64, 96), dtype=np.float32, buffer=nl.shared_hbm)
s = nl.ndarray((64, 32), dtype=np.float32, buffer=nl.private_hbm)
r = nl.arange(64)[:, None]
w = nl.load(b)
h = nl.ndarray((nl.par_dim(64), 3, 32), dtype=np.float32, buffer=nl.sbuf)
h[...] = nl.load(a.reshape((64, 3, 32)))
p = nl.zeros((nl.par_dim(32), 32), dtype=np.float32, buffer=nl.psum)
t = [nl.load(a[:, 32 * n:32 * n + 32]) for n in range(3)]
"""
TAIL = """
for n in range(3):
    nl.store(out[:, 32 * n:32 * n + 32], nl.add(t[n], w[:, 32 * n:32 * n + 32]))
return out
"""

statements = st.lists(
    st.tuples(st.sampled_from(STATEMENTS), *[st.integers(0, 2)] * 3).map(
        lambda drawn: drawn[0].format(i=drawn[1], j=drawn[2], k=drawn[3])
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(statements)
@example(
    [
        "t[0] = nl.copy(t[1])",
        "for n in nl.affine_range(3):\n    p[...] += nisa.nc_matmul(t[n], t[0])",
        "t[0][0:32, :] = nl.copy(p)",
    ]
)
def test_deferred_or_at_once_the_result_is_the_same(body: list[str]) -> None:
    text = HEAD + "\n".join(body) + TAIL
    with products_of_copies():
        now, later = one_at_a_time(text, A, B), run(text, A, B).result
    assert (now is None) == (later is None), "a violation must not depend on when the work is done"
    if now is not None:
        np.testing.assert_array_equal(later, now)


@pytest.mark.parametrize("threads", [1, 3])
def test_on_chip_memory_is_freed_after_its_last_use(threads: int) -> None:
    body = """
    out = nl.ndarray((64, 96), dtype=np.float32, buffer=nl.shared_hbm)
    tiles = nl.ndarray((40, nl.par_dim(64), 96), dtype=np.float32, buffer=nl.sbuf)
    for n in nl.affine_range(40):
        tiles[n] = nl.load(a)
        tiles[n] = nl.multiply(tiles[n], float(n))
        nl.store(out, tiles[n])
    return out
    """
    most, alive = 0, set()
    adopt, release = Block.adopt, Block.release

    def counted(self: Block, storage: Any) -> None:
        nonlocal most
        adopt(self, storage)
        if self.info.memory is MemorySpace.SBUF:
            alive.add(id(self))
            most = max(most, len(alive))

    def gone(self: Block) -> None:
        release(self)
        alive.discard(id(self))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Block, "adopt", counted)
        patch.setattr(Block, "release", gone)
        patch.setattr(worker_pool, "thread_count", lambda: threads)
        patch.setattr(worker_pool, "WINDOW", 12)
        np.testing.assert_array_equal(run(body, A).result, A * 39)
    limit = 3 if threads == 1 else 12
    assert 1 <= most <= limit, (
        "one tile of the forty at a time, and what fills it; on threads, those of a window"
    )


def test_inputs_that_are_changed_afterwards_do_not_change_the_result() -> None:
    with emulated():
        import neuronxcc.nki as nki
        import neuronxcc.nki.language as nl

        @nki.jit
        def kernel(a):  # type: ignore[no-untyped-def]
            out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load(a))
            return out

        given_in = A.copy()
        result = kernel(given_in)
    given_in[:] = 0
    np.testing.assert_array_equal(result, A)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(statements)
def test_on_several_threads_the_result_is_the_same(body: list[str]) -> None:
    text = HEAD + "\n".join(body) + TAIL
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "FEWEST_STEPS", 1)
        patch.setattr(worker_pool, "thread_count", lambda: 3)
        together = run(text, A, B).result
        patch.setattr(worker_pool, "thread_count", lambda: 1)
        alone = run(text, A, B).result
    assert (together is None) == (alone is None)
    if alone is not None:
        np.testing.assert_array_equal(together, alone)


def test_what_a_step_raises_on_another_thread_reaches_the_caller() -> None:
    body = """
    out = nl.ndarray((64, 96), dtype=np.float32, buffer=nl.shared_hbm)
    for n in nl.affine_range(80):
        nl.store(out, nl.load(a))
    return out
    """

    def broken(step: ComputeStep) -> None:
        raise MemoryError("no room")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "thread_count", lambda: 3)
        patch.setattr(worker_pool, "run_step", broken)
        with pytest.raises(MemoryError, match="no room"):
            run(body, A)


@pytest.mark.parametrize("params", [(), (np.add, (handing(np.add),))])
def test_a_step_computes_with_no_closure_not_even_one_of_the_emulator_s(params: tuple[Any, ...]) -> None:
    steps = deferred.DeferredSteps()
    steps.steps.append(ComputeStep(np.add if params else handing(np.add), (1, 2), params))
    with pytest.raises(deferred.ForeignCodeError):
        steps.run()
