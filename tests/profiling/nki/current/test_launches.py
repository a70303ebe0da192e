"""What launches of the current dialect take: arrays inside of other objects, and operands of TensorE's double rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.time_model.hardware import hardware

RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Weights:
    up: Any
    scale: float = 2.0
    unused: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.fixture
def trn2() -> Iterator[None]:
    with emulated(limits=hardware("trn2").limits, sdk=False):
        yield


def added(x: Any, other: Any) -> Any:
    """Return a kernel that adds two tensors, each found by a function of an argument."""
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(held: Any) -> Any:
        a, b = x(held), other(held)
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf) for _ in range(2)]
        for tile, given in zip(tiles, (a, b), strict=True):
            nisa.dma_copy(dst=tile, src=given)
        nisa.tensor_tensor(dst=tiles[0], data1=tiles[0], data2=tiles[1], op=nl.add)
        nisa.dma_copy(dst=out, src=tiles[0])
        return out

    return kernel


@pytest.mark.usefixtures("trn2")
def test_arrays_inside_of_arguments_are_tensors() -> None:
    a, b = RNG.normal(size=(2, 64, 32)).astype(np.float32)
    held: list[tuple[Any, Any, Any]] = [
        ([a, b], lambda h: h[0], lambda h: h[1]),
        ((3, (a, b)), lambda h: h[1][0], lambda h: h[1][1]),
        ({"a": a, "b": [b]}, lambda h: h["a"], lambda h: h["b"][0]),
        (Pair(a, b), lambda h: h.first, lambda h: h.second),
        (Pair(a, Weights(b)), lambda h: h.first, lambda h: h.second.up),
    ]
    for value, first, second in held:
        np.testing.assert_array_equal(added(first, second)(value), a + b)


@pytest.mark.usefixtures("trn2")
def test_an_object_without_arrays_is_passed_as_it_is() -> None:
    import nki

    options, seen = Weights(None, 3.0), []

    @nki.jit
    def kernel(given: Any) -> None:
        seen.append(given)

    kernel(options)
    assert seen[0] is options


def double_rows(dtype: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((shape[-1], 256), dtype=nl.float32, buffer=nl.shared_hbm)
        x, y = (nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.sbuf) for t in (a, b))
        nisa.dma_copy(dst=x, src=a)
        nisa.dma_copy(dst=y, src=b)
        product = nl.ndarray((shape[-1], 256), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, x, y, perf_mode="double_row")
        copied = nl.ndarray(product.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(copied, product)
        nisa.dma_copy(dst=out, src=copied)
        return out

    a = RNG.normal(size=shape).astype(dtype)
    b = RNG.normal(size=(128, 2, 256)).astype(dtype)
    return kernel, a, b


@pytest.mark.usefixtures("trn2")
def test_double_rows_are_summed() -> None:
    kernel, a, b = double_rows(ml_dtypes.float8_e4m3, (128, 2, 64))
    expected = np.einsum("kim,kin->mn", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("trn2")
@pytest.mark.parametrize(
    ("dtype", "shape", "says"),
    [
        (ml_dtypes.bfloat16, (128, 2, 64), "float8"),
        (ml_dtypes.float8_e4m3, (128, 64), "second size is 2"),
    ],
)
def test_double_rows_of_other_operands_are_refused(dtype: Any, shape: tuple[int, ...], says: str) -> None:
    kernel, a, b = double_rows(dtype, shape)
    with pytest.raises(KernelFaultError, match=says):
        kernel(a, b)


def bits(kernel_of: str) -> Any:
    """Return a kernel that copies bits of its argument: ``kernel_of`` makes ``out`` of the tile ``a`` in SBUF."""
    text = (
        "def kernel(x):\n"
        "    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        f"    {kernel_of}\n"
        "    out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(dst=out, src=b)\n"
        "    return out\n"
    )
    import nki
    import nki.isa as nisa
    import nki.language as nl

    namespace = {"nl": nl, "nisa": nisa}
    exec(text, namespace)  # noqa: S102
    return nki.jit(namespace["kernel"])


@pytest.mark.usefixtures("trn2")
def test_bits_of_a_tile_are_read_as_another_type() -> None:
    x = RNG.normal(size=(64, 8)).astype(np.float32)
    load = "nisa.dma_copy(dst=a, src=x); "
    np.testing.assert_array_equal(bits(f"{load}b = a.view(nl.uint16)")(x), x.view(np.uint16))
    np.testing.assert_array_equal(bits(f"{load}b = a.view(nl.int32)")(x), x.view(np.int32))
    np.testing.assert_array_equal(
        bits(f"{load}b = a.ap([[8, 64], [1, 4]], dtype=nl.uint8)")(x[:, :2].copy()),
        x[:, :1].copy().view(np.uint8),
    )
    part = bits("nisa.dma_copy(dst=a[:40], src=x[:40]); b = a.view(nl.int32)[:40]")(x)
    np.testing.assert_array_equal(part, x[:40].view(np.int32))
    vector = bits("b = x.view(nl.int32)")(x[:, 0].copy())
    np.testing.assert_array_equal(vector, x[:, 0].copy().view(np.int32))
    half = x.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(
        bits(f"{load}b = a[:, 2:6].view(nl.uint8)")(half), half[:, 2:6].copy().view(np.uint8)
    )


@pytest.mark.usefixtures("trn2")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("nisa.dma_copy(dst=a, src=x); b = a[:, ::2].view(nl.uint16)", "lie in one row"),
        ("nisa.dma_copy(dst=a, src=x); b = a[:, 0:3].view(nl.float64)", "whole elements|float64"),
    ],
)
def test_bits_that_no_view_shows_are_refused(body: str, says: str) -> None:
    with pytest.raises((KernelFaultError, AttributeError), match=says):
        bits(body)(np.ones((64, 8), np.float32))
