"""Kernel code holds handles: nothing that it can ask of them gives values, in either dialect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import nki_current_source, nki_source

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError

X = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)

OUT = "out = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.shared_hbm)"
COPIES = {
    "beta1": f"{OUT}\nnl.store(out, nl.load(a))\nreturn out",
    "current": f"{OUT}\nnisa.dma_copy(out, a)\nreturn out",
}
RUNS = {"beta1": nki_source.run, "current": nki_current_source.run}
dialects = pytest.mark.parametrize("dialect", list(RUNS))

#: NumPy's and Python's ways to the values of an array; each is an error of the compiler.
READS = [
    "np.asarray(a)", "np.array(a)", "np.exp(a)", "np.add(a, 1.0)", "np.multiply(np.ones(8), a)", "a.__array__()",
    "np.frombuffer(np.asarray(a))", "__import__('copy').copy(a)", "__import__('copy').deepcopy(a)",
    "__import__('pickle').dumps(a)", "np.sum(a)", "np.zeros((128, 8)) + a",
]  # fmt: skip


@dialects
@pytest.mark.parametrize("read", READS)
def test_reading_values_ends_the_kernel_even_where_it_is_caught(dialect: str, read: str) -> None:
    body = f"try:\n    kept = {read}\nexcept Exception:\n    kept = None\n{COPIES[dialect]}"
    outcome = RUNS[dialect](body, X)
    assert isinstance(outcome.fault, KernelFaultError)
    assert "has no values while its kernel is compiled" in str(outcome.fault)


@dialects
def test_no_attribute_of_a_handle_leads_to_an_array(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"""
kept.extend([a, a[0:64, 0:4]])
{COPIES[dialect]}
"""
    kept: list[Any] = []
    monkeypatch.setattr("builtins.kept", kept, raising=False)
    np.testing.assert_array_equal(RUNS[dialect](body, X).result, X)
    plain = (tuple, int, str, np.dtype)
    for handle in kept:
        assert not hasattr(handle, "__dict__")
        for name in ("machine", "block", "array", "storage", "as_view", "positions", "_object"):
            assert not hasattr(handle, name)
        for name in (n for n in dir(handle) if not n.startswith("__")):
            value = getattr(handle, name)
            assert (
                callable(value) or isinstance(value, plain) or type(value).__module__.startswith("accelopt")
            )
        with pytest.raises(TypeError):
            memoryview(handle)


@pytest.mark.parametrize(
    "statement",
    [
        "out[0:128, 0:8] = values",
        "nl.store(out, values)",
        "tile = nl.full((nl.par_dim(128), 8), values, nl.float32)",
        "tile = nl.add(nl.load(a), values)",
        "tile = nisa.memset((128, 8), values, nl.float32)",
    ],
)
def test_an_instruction_takes_no_array_from_python(statement: str) -> None:
    body = f"values = np.ones((128, 8), np.float32)\n{OUT}\n{statement}"
    fault = nki_source.run(body, X).fault
    assert fault is not None
    assert "array" in str(fault)


def test_a_scalar_of_numpys_takes_part_in_arithmetic() -> None:
    body = f"{OUT}\nnl.store(out, np.float32(2) * nl.load(a))\nreturn out"
    np.testing.assert_array_equal(nki_source.run(body, X).result, 2 * X)


def test_a_register_is_no_number() -> None:
    reads = "try:\n    kept = int(r)\nexcept TypeError:\n    kept = r.value"
    body = f"r = nisa.register_alloc(3)\n{reads}\n{COPIES['current']}"
    with pytest.raises(AttributeError):
        nki_current_source.run(body, X)


def test_inputs_have_no_values_while_the_kernel_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the emulator's own tensor behind the handle."""
    from accelopt_profiling.nki.frontend.handle import taken

    monkeypatch.setattr("builtins.taken", taken, raising=False)
    body = f"assert taken(a).block.storage is None\n{COPIES['beta1']}"
    np.testing.assert_array_equal(nki_source.run(body, X).result, X)


def test_no_code_of_a_kernel_becomes_a_step() -> None:
    body = f"""
machine = nl.load.__globals__["current"]() if "current" in nl.load.__globals__ else None
from accelopt_profiling.nki.emulator.machine import current
{COPIES["beta1"].replace("return out", "current().deferred.steps[-1].op = lambda x: x * 0")}
return out
"""
    with pytest.raises(Exception, match="code of its own into the emulator"):
        nki_source.run(body, X)


def test_a_named_tuple_of_tensors_is_a_result() -> None:
    statement = "import collections\nreturn collections.namedtuple('R', 'a b')(out, out)"
    body = f"{COPIES['beta1'].replace('return out', '')}\n{statement}"
    result = nki_source.run(body, X).result
    np.testing.assert_array_equal(result[0], X)


def test_the_first_error_is_the_one_that_is_told() -> None:
    body = f"try:\n    kept = np.exp(a)\nexcept Exception:\n    kept = a.machine\n{COPIES['beta1']}"
    assert "numpy.exp cannot read it" in str(nki_source.run(body, X).fault)
