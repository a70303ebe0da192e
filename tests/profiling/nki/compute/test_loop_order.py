"""The iterations of nl.affine_range in another order: what may change, and what may not."""

from __future__ import annotations

import numpy as np
import pytest
from support import nki_current_source, nki_source

RNG = np.random.default_rng(7)
X = RNG.standard_normal((6 * 128, 16), dtype=np.float32)
Y = RNG.standard_normal((6 * 128, 16), dtype=np.float32)
BLOCKS = X.reshape(6, 128, 16)

HEAD = """
out = nl.ndarray({shape}, dtype=a.dtype, buffer=nl.shared_hbm)
p, f = nl.arange(128)[:, None], nl.arange(16)[None, :]
"""
ONE, ALL = "(128, 16)", "(768, 16)"

#: What depends on the order: the carried value is in SBUF, in HBM, or in a name of Python's.
CARRIED = {
    "a running total": (ALL, """
acc = nl.zeros((nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(6):
    acc += nl.load(a[i * 128 + p, f])
    nl.store(out[i * 128 + p, f], acc)
"""),
    "a recurrence": (ONE, """
acc = nl.zeros((nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(6):
    acc[...] = nl.add(nl.multiply(acc, 0.5), nl.load(a[i * 128 + p, f]))
nl.store(out, acc)
"""),
    "the last writer": (ONE, """
tile = nl.ndarray((nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(6):
    tile[...] = nl.load(a[i * 128 + p, f])
nl.store(out, tile)
"""),
    "through HBM": (ALL, """
nl.store(out[p, f], nl.load(a[p, f]))
for i in nl.affine_range(5):
    total = nl.add(nl.load(out[i * 128 + p, f]), nl.load(a[i * 128 + 128 + p, f]))
    nl.store(out[i * 128 + 128 + p, f], total)
"""),
    "a name that keeps a tile": (ALL, """
before = nl.load(a[p, f])
for i in nl.affine_range(6):
    tile = nl.load(a[i * 128 + p, f])
    nl.store(out[i * 128 + p, f], nl.subtract(tile, before))
    before = tile
"""),
}  # fmt: skip

#: What does not, for rounding apart.
FREE = {
    "a sum": (ONE, """
acc = nl.zeros((nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(6):
    acc += nl.load(a[i * 128 + p, f])
nl.store(out, acc)
"""),
    "a loop reduction": (ONE, """
acc = nl.ndarray((nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(3):
    for j in nl.affine_range(2):
        acc[...] = nl.loop_reduce(nl.load(a[(2 * i + j) * 128 + p, f]), op=np.max, loop_indices=[i, j])
nl.store(out, acc)
"""),
    "products in PSUM": ("(16, 16)", """
psum = nl.zeros((nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)
for i in nl.affine_range(6):
    psum += nisa.nc_matmul(nl.load(a[i * 128 + p, f]), nl.load(b[i * 128 + p, f]))
nl.store(out, nl.copy(psum))
"""),
    "a tile for each turn": (ALL, """
tile = nl.ndarray((nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(6):
    tile[...] = nl.exp(nl.load(a[i * 128 + p, f]))
    nl.store(out[i * 128 + p, f], tile)
"""),
    "block dimensions": (ALL, """
tiles = nl.ndarray((6, nl.par_dim(128), 16), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(6):
    tiles[i] = nl.load(a[i * 128 + p, f])
for i in nl.affine_range(6):
    nl.store(out[i * 128 + p, f], tiles[5 - i])
"""),
}  # fmt: skip


def agree(run, body: str) -> bool:
    """True if two orders give what the kernel's own order gives."""
    first = run(body, X, Y)
    assert first.fault is None
    return all(np.allclose(run(body, X, Y, order=seed).result, first.result, atol=1e-4) for seed in (1, 2))


@pytest.mark.parametrize("name", CARRIED)
def test_a_carried_value_shows(name: str) -> None:
    shape, loop = CARRIED[name]
    body = f"{HEAD.format(shape=shape)}{loop}return out"
    assert not agree(nki_source.run, body)
    assert agree(nki_source.run, body.replace("affine_range", "sequential_range"))


@pytest.mark.parametrize("name", FREE)
def test_what_is_allowed_stays(name: str) -> None:
    shape, loop = FREE[name]
    assert agree(nki_source.run, f"{HEAD.format(shape=shape)}{loop}return out")


CURRENT = """
out = nl.ndarray({shape}, dtype=a.dtype, buffer=nl.shared_hbm)
place = {place}
{before}
for i in nl.affine_range(6):
    x, y = sbuf(128, 16), sbuf(128, 16)
    nisa.dma_copy(x, a[nl.ds(i * 128, 128), :])
    nisa.dma_copy(y, b[nl.ds(i * 128, 128), :])
    {statement}
done = sbuf(*place.shape)
nisa.tensor_copy(done, place)
nisa.dma_copy(out, done)
return out
"""


@pytest.mark.parametrize(
    ("place", "before", "statement", "free"),
    [
        ("psum(16, 16)", "", "nisa.nc_matmul(place, x, y)", True),
        ("psum(16, 16)", "", "nisa.nc_matmul(place, x, y, accumulate=i > 0)", True),
        ("sbuf(128, 16)", "nisa.memset(place, 0.0)", "nisa.tensor_tensor(place, place, x, nl.add)", True),
        (
            "sbuf(128, 16)",
            "",
            "nisa.tensor_tensor(place, place, x, nl.maximum) if i else nisa.tensor_copy(place, x)",
            True,
        ),
        (
            "sbuf(128, 16)",
            "nisa.memset(place, 1.0)",
            "nisa.tensor_tensor(place, x, place, nl.subtract)",
            False,
        ),
        ("sbuf(128, 16)", "", "nisa.tensor_copy(place, x)", False),
    ],
)
def test_the_current_dialect(place: str, before: str, statement: str, free: bool) -> None:
    shape = place[4:]
    body = CURRENT.format(shape=shape, place=place, before=before, statement=statement)
    assert agree(nki_current_source.run, body) == free


def test_a_list_of_tensors_is_filled_in_the_kernels_own_order() -> None:
    body = f"""
out = nl.ndarray({ALL}, dtype=a.dtype, buffer=nl.shared_hbm)
tiles = []
for i in nl.affine_range(6):
    tiles.append(sbuf(128, 16))
    nisa.dma_copy(tiles[-1], a[nl.ds(i * 128, 128), :])
for i in nl.affine_range(6):
    nisa.dma_copy(out[nl.ds(i * 128, 128), :], tiles[i])
return out
"""
    assert agree(nki_current_source.run, body)
