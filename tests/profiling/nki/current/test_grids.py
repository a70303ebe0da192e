"""Tensors in coordinates of tiles and blocks: shapes, boundaries, memory laid out in tiles, and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.nki_current_source import run

from accelopt_profiling.nki.current.versions import VARIABLE


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("grid", "shape", "elements", "steps", "remainder"),
    [
        ("nl.tiles(a, tile_shape=(128, 256))", (3, 2), (300, 500), (128, 256), True),
        ("nl.tiles(a, tile_shape=(100, 250))", (3, 2), (300, 500), (100, 250), False),
        ("nl.tiles(a, tile_shape=(128, 256))[2, 1]", (), (44, 244), (), True),
        ("nl.tiles(a, tile_shape=(128, 256))[-1]", (2,), (44, 500), (256,), True),
        ("nl.tiles(a, tile_shape=(128, 256))[:, 0]", (3,), (300, 256), (128,), True),
        ("nl.tiles(a, tile_shape=(128, 256))[1:2, ..., 0]", (1,), (128, 256), (128,), False),
        ("nl.blocks(a, tile_shape=(64, 100), block_shape=(2, 3))", (3, 2), (300, 500), (128, 300), True),
        ("nl.blocks(a, tile_shape=(64, 100), block_shape=(2, 3))[2, 1]", (), (44, 200), (), True),
        ("nl.tiles(nl.blocks(a, tile_shape=(64, 90), block_shape=(2, 3))[1, 0])", (2, 3), (128, 270), (64, 90), False),
        ("nl.blocks(nl.tiles(a, tile_shape=(64, 100)), block_shape=(1, 5))", (5, 1), (300, 500), (64, 500), True),
        ("nl.tiles(nl.tiles(a, tile_shape=(64, 100))[1], tile_shape=(32, 50))", (2, 10), (64, 500), (32, 50), False),
        ("nl.tiles(b, tile_shape=(4, 4))", (2, 2, 2), (2, 8, 8), (1, 4, 4), False),
        ("nl.tiles(b, tile_shape=(4, 4))[1]", (2, 2), (8, 8), (4, 4), False),
    ],
)  # fmt: skip
def test_coordinates_count_tiles_or_blocks_and_boundaries_what_there_is(
    grid: str, shape: tuple[int, ...], elements: tuple[int, ...], steps: tuple[int, ...], remainder: bool
) -> None:
    body = f"""
    grid = {grid}
    assert (grid.shape, grid.element_shape, grid.index_step_elements) == {(shape, elements, steps)}, (
        grid.shape, grid.element_shape, grid.index_step_elements)
    assert grid.is_remainder == {remainder}
    assert grid.is_data_representable and grid.data.shape == {elements}
    assert isinstance(grid, nl.NkiGrid) and isinstance(grid, (nl.NkiTileGrid, nl.NkiBlockGrid))
    assert grid.dtype == a.dtype
    return a
    """
    assert run(body, numbers(300, 500), numbers(2, 8, 8)).fault is None


def test_a_long_loop_over_tiles_gives_each_its_own() -> None:
    """Iterations of a loop are predicted from one of them where they are alike; coordinates are not."""
    body = """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    source, target = nl.tiles(a, tile_shape=(8, 64)), nl.tiles(out, tile_shape=(8, 64))
    first = nisa.scalar_load(b)
    for i in range(source.shape[0]):
        tile = nl.ndarray((8, 64), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(tile, source[i, 0].data)
        nisa.dma_copy(tile[0:1, 0:8], a.ap([[64, 1], [1, 8]], scalar_offset=first * i, indirect_dim=0))
        nisa.dma_copy(target[i, 0].data, tile)
    return out
    """
    a = numbers(256, 64)
    expected = a.copy()
    expected[::8, :8] = a[np.arange(32) * 3, :8]
    np.testing.assert_array_equal(run(body, a, np.array([[3]], np.int32)).result, expected)


def test_tiles_are_where_their_coordinates_say() -> None:
    body = """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    source, target = nl.tiles(a, tile_shape=(128, 256)), nl.tiles(out, tile_shape=(128, 256))
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            tile = nl.ndarray(source[i, j].element_shape, dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, source[i, j].data)
            nisa.tensor_scalar(tile, tile, nl.multiply, 1.0 + i + 10 * j)
            nisa.dma_copy(target[i, j].data, tile.data)
    return out
    """
    a = numbers(300, 500)
    factors = 1.0 + np.arange(300)[:, None] // 128 + 10 * (np.arange(500) // 256)
    np.testing.assert_array_equal(run(body, a).result, a * factors.astype(np.float32))


@pytest.mark.parametrize("rows", [128, 64, 256])
def test_memory_on_the_chip_holds_rows_of_tiles_behind_one_another(rows: int) -> None:
    """One DMA fills a block of several rows of tiles, each element in its own place."""
    body = f"""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    source = nl.blocks(a, tile_shape=({rows // 2}, 128), block_shape=(2, 2))
    target = nl.blocks(out, tile_shape=({rows // 2}, 128), block_shape=(2, 2))
    kept = nl.alloc_blocks(tile_shape=({rows // 2}, 128), block_shape=(2, 2), element_shape=({rows}, 256),
                           buffer=nl.sbuf, dtype=a.dtype)
    assert kept.data.shape == ({rows // 2}, 512)
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            nisa.dma_copy(kept.data, source[i, j].data)
            inside = nl.tiles(kept[0, 0])
            for p in range(2):
                for q in range(2):
                    tile = inside[p, q].data
                    assert tile.shape == ({rows // 2}, 128)
                    nisa.tensor_scalar(tile, tile, nl.multiply, 1.0 + p + 10 * q)
            nisa.dma_copy(target[i, j].data, kept.data)
    return out
    """
    a = numbers(256, 512)
    factors = 1.0 + np.arange(256)[:, None] // (rows // 2) % 2 + 10 * (np.arange(512) // 128 % 2)
    ran = run(body, a)
    np.testing.assert_array_equal(ran.result, a * factors.astype(np.float32))
    assert ran.findings == []


def test_a_boundary_of_memory_laid_out_in_tiles_is_cut() -> None:
    body = """
    x = nl.alloc_tiles(tile_shape=(128, 64), element_shape=(200, 100), buffer=nl.sbuf, dtype=nl.float32)
    assert x.shape == (2, 2) and x[1, 1].element_shape == (72, 36) and x[1, 1].data.shape == (72, 36)
    assert x[0].data.shape == (128, 100) and x[:1, 1].data.shape == (128, 36)
    assert not x.is_data_representable
    x.data
    """
    fault = run(body, numbers(1, 1)).fault
    assert fault is not None
    assert (fault.code, "not one access pattern" in fault.message) == ("unsupported", True)


def test_memory_in_hbm_and_psum_is_laid_out_too() -> None:
    body = """
    out = nl.alloc_tiles(tile_shape=(64, 64), element_shape=(128, 64), buffer=nl.shared_hbm, dtype=nl.float32)
    sums = nl.alloc_tiles(tile_shape=(64, 64), element_shape=(128, 64), buffer=nl.psum, dtype=nl.float32)
    x, y = sbuf(64, 64), sbuf(64, 64)
    nisa.dma_copy(x, a)
    for i in range(2):
        nisa.nc_matmul(sums[i, 0].data, x, x)
        nisa.tensor_copy(y, sums[i, 0].data)
        nisa.dma_copy(out[i, 0].data, y)
    return out.data
    """
    a = np.random.default_rng(1).standard_normal((64, 64), dtype=np.float32)
    np.testing.assert_allclose(run(body, a).result, np.concatenate([a.T @ a] * 2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("nl.tiles(a, tile_shape=[4, 4])", "a tuple of Python's whole numbers"),
        ("nl.tiles(a, tile_shape=(4,))", "at least 2 sizes"),
        ("nl.tiles(a, tile_shape=(4, 0))", "all positive"),
        ("nl.tiles(a, tile_shape=(1, 4, 4))", "do not fit a tensor of shape (8, 8)"),
        ("nl.tiles(sbuf(8, 2, 8), tile_shape=(2, 8))", "only in HBM"),
        ("nl.tiles(3, tile_shape=(2, 8))", "not of int"),
        ("nl.blocks(a, tile_shape=(4, 4), block_shape=(2,))", "differ in rank"),
        ("nl.tiles(a, tile_shape=(4, 4))[2, 0]", "Coordinate 2 does not exist; there are 2"),
        ("nl.tiles(a, tile_shape=(4, 4))[0, 0, 0]", "3 coordinates for a grid of shape (2, 2)"),
        ("nl.tiles(a, tile_shape=(4, 4))[::2]", "has steps"),
        ("nl.tiles(a, tile_shape=(4, 4))['x']", "not str"),
        (
            "nl.alloc_tiles(tile_shape=(4, 4), element_shape=(8, 8), buffer='sbuf', dtype=nl.float32)",
            "write nl.sbuf",
        ),
        (
            "x = nl.alloc_tiles(tile_shape=(4, 8), element_shape=(8, 8), buffer=nl.sbuf, dtype=nl.float32)\n"
            "nisa.dma_copy(x.data, a.reshape((4, 16)))",
            "2 rows of tiles hold (8, 8) elements",
        ),
        (
            "nl.tiles(nl.alloc_tiles(tile_shape=(4, 4), element_shape=(8, 8), buffer=nl.sbuf, dtype=nl.float32), "
            "tile_shape=(2, 2))",
            "laid out in tiles of (4, 4)",
        ),
    ],
)
def test_what_no_grid_can_be_is_told(statement: str, words: str) -> None:
    fault = run(f"{statement}\nreturn a", numbers(8, 8)).fault
    assert fault is not None
    assert words in fault.message


def test_grids_came_with_0_7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.6")
    fault = run("nl.tiles(a, tile_shape=(4, 4))\nreturn a", numbers(8, 8)).fault
    assert fault is not None
    assert "tiles came with NKI 0.7; the emulated version is 0.6" in fault.message
