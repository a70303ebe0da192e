# ruff: noqa: E501 (kernels as they are written)
"""What each NKI rule does to a kernel, and that the kernel computes the same afterwards (on the emulator)."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nki_block_cases import CASES as BLOCK_CASES

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.report import quantities
from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import AS_WRITTEN, hardware

HEADER = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

WIDTH = 256


@nki.jit
def kernel(x, w):
    # x is (256, 1024), w is (128, 1024)
    out = nl.ndarray((256, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
"""
FOOTER = """    return out  # all of it


def untouched( a,b ):  # layout that no formatter made
    return a+b
"""


@dataclass(frozen=True)
class Case:
    """``before`` and ``after`` are the kernel's body; ``after`` is None where the rule must not apply."""

    rule: str
    name: str
    before: str
    after: str | None


CASES = [
    Case(
        "nki-hoist-load",
        "leaves the loop with its arithmetic",
        """
    for i in nl.affine_range(2):
        # the scale
        last = 1024 * 1
        scale = nl.load(w[0:128, 0:last])  # loaded
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, scale))
""",
        """
    last = 1024 * 1
    scale = nl.load(w[0:128, 0:last])
    for i in nl.affine_range(2):
        # the scale
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, scale))
""",
    ),
    Case(
        "nki-hoist-load",
        "stays where the tensor is stored to in the loop",
        """
    for i in nl.sequential_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], tile)
        first = nl.load(out[0:128, 0:1024])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.add(tile, first))
""",
        None,
    ),
    Case(
        "nki-hoist-load",
        "stays where the loaded tile is changed",
        """
    for i in nl.affine_range(2):
        tile = nl.load(w[0:128, 0:1024])
        tile[...] = nl.add(tile, nl.load(x[i * 128:(i + 1) * 128, 0:1024]))
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], tile)
""",
        None,
    ),
    Case(
        "nki-keep-resident",
        "loads all tiles before the loop",
        """
    for i in nl.affine_range(2):
        for j in nl.affine_range(4):
            tile = nl.load(w[0:128, j * 256:(j + 1) * 256])
            row = nl.load(x[i * 128:(i + 1) * 128, j * 256:(j + 1) * 256])
            nl.store(out[i * 128:(i + 1) * 128, j * 256:(j + 1) * 256], nl.add(row, tile))
""",
        """
    tile_kept = nl.ndarray((4, nl.par_dim(128), 256), dtype=w.dtype, buffer=nl.sbuf)
    for j in nl.affine_range(4):
        tile_kept[j, nl.arange(128)[:, None], nl.arange(256)[None, :]] = nl.load(w[0:128, j * 256:(j + 1) * 256])
    for i in nl.affine_range(2):
        for j in nl.affine_range(4):
            row = nl.load(x[i * 128:(i + 1) * 128, j * 256:(j + 1) * 256])
            nl.store(out[i * 128:(i + 1) * 128, j * 256:(j + 1) * 256], nl.add(row, tile_kept[j, nl.arange(128)[:, None], nl.arange(256)[None, :]]))
""",
    ),
    Case(
        "nki-keep-resident",
        "leaves a load that depends on the outer loop",
        """
    for i in nl.affine_range(2):
        for j in nl.affine_range(4):
            row = nl.load(x[i * 128:(i + 1) * 128, j * 256:(j + 1) * 256])
            nl.store(out[i * 128:(i + 1) * 128, j * 256:(j + 1) * 256], row)
""",
        None,
    ),
    Case(
        "nki-reuse-load",
        "uses the first of two equal loads",
        """
    a = nl.load(w[0:128, 0:1024])
    b = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(a, b))
""",
        """
    a = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(a, a))
""",
    ),
    Case(
        "nki-reuse-load",
        "keeps both where the tensor changed in between",
        """
    a = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], a)
    b = nl.load(out[0:128, 0:1024])
    nl.store(out[0:128, 0:1024], nl.add(b, a))
    c = nl.load(out[0:128, 0:1024])
    nl.store(out[128:256, 0:1024], nl.add(b, c))
""",
        None,
    ),
    Case(
        "nki-interchange-loops",
        "loads in the loop that it depends on",
        """
    acc = nl.zeros((2, nl.par_dim(128), 1024), dtype=nl.float32)
    for s in nl.affine_range(3):
        # tiles
        for i in nl.affine_range(2):
            start = i * 128
            tile = nl.load(x[start:start + 128, 0:1024])
            acc[i, 0:128, 0:1024] += nl.multiply(tile, 0.5)
    for i in nl.affine_range(2):
        start = i * 128
        nl.store(out[start:start + 128, 0:1024], acc[i, 0:128, 0:1024])
""",
        """
    acc = nl.zeros((2, nl.par_dim(128), 1024), dtype=nl.float32)
    for i in nl.affine_range(2):
        # tiles
        start = i * 128
        tile = nl.load(x[start:start + 128, 0:1024])
        for s in nl.affine_range(3):
            acc[i, 0:128, 0:1024] += nl.multiply(tile, 0.5)
    for i in nl.affine_range(2):
        start = i * 128
        nl.store(out[start:start + 128, 0:1024], acc[i, 0:128, 0:1024])
""",
    ),
    Case(
        "nki-interchange-loops",
        "keeps sequential loops in order",
        """
    for s in nl.sequential_range(3):
        for i in nl.affine_range(2):
            tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
            nl.store(out[i * 128:(i + 1) * 128, 0:1024], tile)
""",
        None,
    ),
    Case(
        "nki-sigmoid-activation",
        "makes silu of exp, add and divide",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nl.exp(nl.negative(tile))
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], power)
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        negated = nl.multiply(tile, -1.0)
        # e to the minus x
        power = nl.exp(negated)
        below = power + 1.0
        result = nl.divide(tile, below)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nl.exp(nl.negative(tile))
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], power)
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        # e to the minus x
        result = nisa.activation(op=nl.silu, data=tile)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-sigmoid-activation",
        "scales its argument",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nisa.activation(op=nl.exp, data=tile, scale=-1.702)
        below = nl.add(power, 1.0)
        gelu = tile / below
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], gelu)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        gelu = nl.multiply(tile, nisa.activation(op=nl.sigmoid, data=tile, scale=1.702))
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], gelu)
""",
    ),
    Case(
        "nki-activation-reduce",
        "sums a product of a tile with itself",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        squared = nl.multiply(tile, tile)
        total = nl.sum(squared, axis=1)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, total))
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        squared = nisa.activation_reduce(op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total[...])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, total))
""",
    ),
    Case(
        "nki-sigmoid-activation",
        "leaves 2 + exp(-x) alone",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nisa.activation(op=nl.exp, data=tile, scale=-1.0)
        below = nl.add(power, 2.0)
        result = nisa.reciprocal(below)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        None,
    ),
    Case(
        "nki-hoist-transpose",
        "transposes before the loop over columns",
        """
    a = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        for n in nl.affine_range(2):
            psum = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(2):
                b = nl.load(x[k * 128:(k + 1) * 128, n * 512:(n + 1) * 512])
                psum += nl.matmul(a[:, k * 128:(k + 1) * 128], b)
            nl.store(out[i * 128:(i + 1) * 128, n * 512:(n + 1) * 512], nl.copy(psum))
""",
        """
    a = nl.load(w[0:128, 0:1024])
    a_transposed = nl.ndarray((2, nl.par_dim(128), a.shape[0]), dtype=a.dtype, buffer=nl.sbuf)
    for k in nl.affine_range(2):
        a_transposed[k, nl.arange(128)[:, None], nl.arange(a.shape[0])[None, :]] = nl.copy(nl.transpose(a[:, k * 128:(k + 1) * 128]))
    for i in nl.affine_range(2):
        for n in nl.affine_range(2):
            psum = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(2):
                b = nl.load(x[k * 128:(k + 1) * 128, n * 512:(n + 1) * 512])
                psum += nl.matmul(a_transposed[k, nl.arange(128)[:, None], nl.arange(a.shape[0])[None, :]], b, transpose_x=True)
            nl.store(out[i * 128:(i + 1) * 128, n * 512:(n + 1) * 512], nl.copy(psum))
""",
    ),
    Case(
        "nki-hoist-transpose",
        "needs a loop that does not change the operand",
        """
    for i in nl.affine_range(2):
        a = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        psum = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            b = nl.load(x[k * 128:(k + 1) * 128, 0:512])
            psum += nl.matmul(a[:, k * 128:(k + 1) * 128], b)
        nl.store(out[i * 128:(i + 1) * 128, 0:512], nl.copy(psum))
        nl.store(out[i * 128:(i + 1) * 128, 512:1024], nl.copy(psum))
""",
        None,
    ),
    Case(
        "nki-hoist-compute",
        "broadcasts once",
        """
    row = nl.load(w[0:1, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        wide = row.broadcast_to((128, 1024))
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, wide))
""",
        """
    row = nl.load(w[0:1, 0:1024])
    wide = row.broadcast_to((128, 1024))
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, wide))
""",
    ),
    Case(
        "nki-hoist-compute",
        "leaves what depends on the tile",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        twice = nl.multiply(tile, 2.0)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], twice)
""",
        None,
    ),
    Case(
        "nki-activation-reduce",
        "sums on the way",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        squared = nl.square(tile)
        total = nl.sum(squared, axis=[1])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, total))
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        squared = nisa.activation_reduce(op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total[...])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, total))
""",
    ),
    Case(
        "nki-activation-reduce",
        "does not take a maximum for a sum",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        squared = nl.square(tile)
        largest = nl.max(squared, axis=[1])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.multiply(tile, largest))
""",
        None,
    ),
    Case(
        "nki-larger-tiles",
        "doubles a width that the module sets",
        """
    columns = nl.arange(WIDTH)[None, :]
    rows = nl.arange(128)[:, None]
    for i in nl.affine_range(2):
        for j in nl.affine_range(1024 // WIDTH):
            tile = nl.load(x[i * 128 + rows, j * WIDTH + columns])
            nl.store(out[i * 128 + rows, j * WIDTH + columns], nl.exp(tile))
""",
        """
    !WIDTH = 512
    columns = nl.arange(WIDTH)[None, :]
    rows = nl.arange(128)[:, None]
    for i in nl.affine_range(2):
        assert 1024 % WIDTH == 0
        for j in nl.affine_range(1024 // WIDTH):
            tile = nl.load(x[i * 128 + rows, j * WIDTH + columns])
            nl.store(out[i * 128 + rows, j * WIDTH + columns], nl.exp(tile))
""",
    ),
    Case(
        "nki-larger-tiles",
        "leaves a width that PSUM limits",
        """
    columns = nl.arange(WIDTH)[None, :]
    rows = nl.arange(128)[:, None]
    for i in nl.affine_range(2):
        for j in nl.affine_range(1024 // WIDTH):
            tile = nl.load(x[i * 128 + rows, j * WIDTH + columns])
            held = nl.ndarray((128, WIDTH), dtype=nl.float32, buffer=nl.psum)
            held[...] = nl.copy(tile)
            nl.store(out[i * 128 + rows, j * WIDTH + columns], nl.exp(held))
""",
        None,
    ),
    Case(
        "nki-larger-tiles",
        "chooses by a size that is known when the kernel runs",
        """
    height, width = x.shape
    columns = nl.arange(WIDTH)[None, :]
    rows = nl.arange(128)[:, None]
    for i in nl.affine_range(2):
        for j in nl.affine_range(width // WIDTH):
            tile = nl.load(x[i * 128 + rows, j * WIDTH + columns])
            nl.store(out[i * 128 + rows, j * WIDTH + columns], nl.exp(tile))
""",
        """
    height, width = x.shape
    WIDTH = 512 if width % 512 == 0 else 256
    columns = nl.arange(WIDTH)[None, :]
    rows = nl.arange(128)[:, None]
    for i in nl.affine_range(2):
        for j in nl.affine_range(width // WIDTH):
            tile = nl.load(x[i * 128 + rows, j * WIDTH + columns])
            nl.store(out[i * 128 + rows, j * WIDTH + columns], nl.exp(tile))
""",
    ),
    Case(
        "nki-merge-tiles",
        "takes an inner loop away",
        """
    a = nl.ndarray((2, nl.par_dim(128), 1024), dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((2, 2, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(2):
        a[i, nl.arange(128)[:, None], nl.arange(1024)[None, :]] = nl.load(x[128 * i + nl.arange(128)[:, None], nl.arange(1024)[None, :]])
        for j in nl.affine_range(2):
            # half a row
            b[i, j, nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.exp(a[i, nl.arange(128)[:, None], 512 * j + nl.arange(512)[None, :]])
            nl.store(out[128 * i + nl.arange(128)[:, None], nl.arange(512)[None, :] + 512 * j], value=b[i, j, nl.arange(128)[:, None], nl.arange(512)[None, :]])
            ' end loop j '
""",
        """
    a = nl.ndarray((2, nl.par_dim(128), 1024), dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((2, nl.par_dim(128), 1024), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(2):
        a[i, nl.arange(128)[:, None], nl.arange(1024)[None, :]] = nl.load(x[128 * i + nl.arange(128)[:, None], nl.arange(1024)[None, :]])
        # half a row
        b[i, nl.arange(128)[:, None], nl.arange(1024)[None, :]] = nl.exp(a[i, nl.arange(128)[:, None], nl.arange(1024)[None, :]])
        nl.store(out[128 * i + nl.arange(128)[:, None], nl.arange(1024)[None, :]], value=b[i, nl.arange(128)[:, None], nl.arange(1024)[None, :]])
        ' end loop j '
""",
    ),
    Case(
        "nki-merge-tiles",
        "leaves a tile that all iterations share",
        """
    b = nl.ndarray((2, 2, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
    c = nl.ndarray((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
    c[nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.load(w[nl.arange(128)[:, None], nl.arange(512)[None, :]])
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            b[i, j, nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.exp(c[nl.arange(128)[:, None], nl.arange(512)[None, :]])
            nl.store(out[128 * i + nl.arange(128)[:, None], nl.arange(512)[None, :] + 512 * j], value=b[i, j, nl.arange(128)[:, None], nl.arange(512)[None, :]])
""",
        None,
    ),
    Case(
        "nki-fuse-activation-input",
        "folds a subtracted maximum into the bias",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        largest = nl.max(tile, axis=[1])
        shifted = nl.subtract(tile, largest)
        power = nl.exp(shifted)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], power)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        largest = nl.max(tile, axis=[1])
        negative_shifted = nisa.tensor_scalar(largest, nl.multiply, -1.0)
        power = nisa.activation(op=nl.exp, data=tile, bias=negative_shifted)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], power)
""",
    ),
    Case(
        "nki-fuse-activation-input",
        "keeps the sum that an activation makes on the way",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        scaled = nl.multiply(tile, 0.125)
        power = nisa.activation_reduce(op=nl.exp, data=scaled, reduce_op=nl.add, reduce_res=total[...])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.divide(power, total))
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        power = nisa.activation_reduce(op=nl.exp, data=tile, scale=0.125, reduce_op=nl.add, reduce_res=total[...])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.divide(power, total))
""",
    ),
    Case(
        "nki-fuse-activation-input",
        "keeps a product that is used again",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nl.multiply(tile, 0.125)
        power = nl.exp(scaled)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.add(power, scaled))
""",
        None,
    ),
    Case(
        "nki-scalar-tensor-tensor",
        "combines a scale and an add",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nl.multiply(tile, 0.9)
        result = nl.subtract(other, scaled)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nisa.scalar_tensor_tensor(data=tile, op0=nl.multiply, operand0=0.9, op1=nl.subtract, operand1=other, reverse1=True)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-scalar-tensor-tensor",
        "does not move past a change of its operand",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nl.multiply(tile, 0.9)
        tile[...] = nl.exp(tile)
        result = nl.add(other, scaled)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.add(result, tile))
""",
        None,
    ),
    Case(
        "nki-combine-tensor-scalar",
        "does two steps at once",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nisa.tensor_scalar(tile, nl.multiply, 0.5)
        result = nl.subtract(1.0, scaled)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nisa.tensor_scalar(data=tile, op0=nl.multiply, operand0=0.5, op1=nl.subtract, operand1=1.0, reverse1=True)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-combine-tensor-scalar",
        "keeps a rounding that was asked for",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nl.multiply(tile, 0.5, dtype=nl.bfloat16)
        result = nl.add(scaled, 1.0, dtype=nl.float32)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        None,
    ),
    Case(
        "nki-divide-by-column",
        "takes the reciprocal of the column",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nl.exp(tile)
        total = nl.sum(power, axis=[1])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], power)
        result = nl.divide(power, total)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nl.exp(tile)
        total = nl.sum(power, axis=[1])
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], power)
        reciprocal_total = nisa.reciprocal(total)
        result = nisa.tensor_scalar(power, nl.multiply, reciprocal_total)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-divide-by-column",
        "leaves a divide of tiles",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nl.divide(tile, other)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        None,
    ),
    Case(
        "nki-rsqrt-activation",
        "makes one activation of two instructions",
        """
    for i in nl.affine_range(2):
        tile = nl.exp(nl.load(x[i * 128:(i + 1) * 128, 0:1024]))
        root = nl.sqrt(tile)
        result = nisa.reciprocal(root)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.exp(nl.load(x[i * 128:(i + 1) * 128, 0:1024]))
        result = nisa.activation(op=nl.rsqrt, data=tile)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-rsqrt-activation",
        "leaves the reciprocal of something else",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        power = nl.exp(tile)
        result = nisa.reciprocal(power)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        None,
    ),
    Case(
        "nki-drop-copy",
        "reads what was copied",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        twin = nl.copy(tile)
        result = nl.add(twin, other)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nl.add(tile, other)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-drop-copy",
        "keeps a copy that saves the old value",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        old = nl.copy(tile)
        tile[...] = nl.exp(tile)
        result = nl.add(old, tile)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        None,
    ),
    Case(
        "nki-balance-engines",
        "squares on ScalarE",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nisa.tensor_tensor(tile, tile, op=nl.multiply)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nisa.activation(op=nl.square, data=tile)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], result)
""",
    ),
    Case(
        "nki-balance-engines",
        "leaves what only one engine does",
        """
    other = nl.load(w[0:128, 0:1024])
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        result = nisa.tensor_tensor(tile, other, op=nl.add)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.exp(result))
""",
        None,
    ),
]
CASES += [
    Case(
        "nki-block-loop",
        "knows that a view shares what is written through it",
        """
    shared = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(2):
        view = shared[0:128, 0:1024]
        view[...] = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        turned = nl.broadcast_to(shared, shape=(128, 1024))
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], turned)
""",
        None,
    ),
    Case(
        "nki-choose-engine",
        "puts a scalar step and a copy where the person who writes them wants them",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nisa.tensor_scalar(tile, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=1.0)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.exp(scaled))
""",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        scaled = nisa.tensor_scalar(tile, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=1.0, engine=nisa.scalar_engine)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.exp(scaled))
""",
    ),
    Case(
        "nki-choose-engine",
        "leaves what one engine alone can do, and what has one",
        """
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128:(i + 1) * 128, 0:1024])
        copied = nisa.tensor_copy(tile, engine=nisa.vector_engine)
        both = nl.multiply(copied, tile)
        nl.store(out[i * 128:(i + 1) * 128, 0:1024], nl.exp(both))
""",
        None,
    ),
]
CASES += [Case(*case) for case in BLOCK_CASES]


def whole(body: str) -> str:
    """The file with this kernel body; a first line with "!" goes before the statement of the header."""
    header, body = HEADER, body.removeprefix("\n")
    if body.lstrip().startswith("!"):
        first, _, body = body.partition("\n")
        header = header.replace("    out =", f"{first.replace('!', '')}\n    out =")
    return header + body + FOOTER


def other_names(text: str) -> str:
    """The same file with other import spellings."""
    text = text.replace("import neuronxcc.nki.language as nl", "from neuronxcc.nki import language as lang")
    text = text.replace("import neuronxcc.nki.isa as nisa", "from neuronxcc.nki import isa")
    return text.replace("nl.", "lang.").replace("nisa.", "isa.")


SPELLINGS = {
    "as written": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "other import names": other_names,
    "four more spaces": lambda text: text.replace("\n    ", "\n        "),
}


def run(text: str, *inputs: Any) -> Any:
    with emulated():
        module = types.ModuleType("case")
        exec(compile(text, "case", "exec"), module.__dict__)  # noqa: S102
        return module.kernel(*[np.array(i) for i in inputs])


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_a_rule_rewrites_this_and_nothing_else(case: Case, spelling: str) -> None:
    spell = SPELLINGS[spelling]
    text = spell(whole(case.before))
    (kernel,) = find_kernels(text).kernels
    texts = [c.text for c in catalogue.apply(case.rule, text, kernel)]
    if case.after is None:
        assert texts == []
        return
    assert spell(whole(case.after)) in texts
    for changed in texts:
        start, end = text.index("@nki.jit"), text.index("def untouched")
        assert changed.startswith(text[:start])
        assert changed.endswith(text[end:])


@pytest.mark.parametrize("case", [c for c in CASES if c.after], ids=lambda case: f"{case.rule}: {case.name}")
def test_the_rewritten_kernel_computes_the_same(case: Case) -> None:
    random = np.random.default_rng(7)
    x, w = (random.standard_normal((n, 1024), dtype=np.float32) for n in (256, 128))
    text = whole(case.before)
    expected = run(text, x, w)
    for candidate in catalogue.apply(case.rule, text, find_kernels(text).kernels[0]):
        np.testing.assert_allclose(run(candidate.text, x, w), expected, rtol=2e-6, atol=2e-6)


def counters(text: str, *inputs: Any) -> dict[str, float]:
    with emulated(mode="full") as emulation:
        module = types.ModuleType("case")
        exec(compile(text, "case", "exec"), module.__dict__)  # noqa: S102
        module.kernel(*[np.array(i) for i in inputs])
    trace = emulation.machines[-1].trace
    # A rule changes what the kernel asks for; what the compiler would make of it is not the question here.
    found = quantities(estimate(trace, hardware("trn1"), AS_WRITTEN))
    return {name: quantity.value for name, quantity in found.items() if quantity.value is not None}


@pytest.mark.parametrize("case", [c for c in CASES if c.after], ids=lambda case: f"{case.rule}: {case.name}")
def test_the_counters_move_as_the_catalogue_says(case: Case) -> None:
    """Each counter that a rule names moves its way or, where the case is too small to show it, does not move."""
    inputs = [np.ones((n, 1024), dtype=np.float32) for n in (256, 128)]
    assert case.after is not None
    before, after = (counters(whole(body), *inputs) for body in (case.before, case.after))
    rule = next(r for r in catalogue.rules() if r.name == case.rule)
    moved = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in rule.moves}
    assert all(moved[name] * (1 if way == "up" else -1) >= 0 for name, way in rule.moves.items()), moved
    assert any(moved.values()), moved


@pytest.mark.parametrize("case", [c for c in CASES if c.after], ids=lambda case: f"{case.rule}: {case.name}")
def test_a_rule_comes_to_an_end(case: Case) -> None:
    """Applied again and again, a rule has nothing left to do (or goes back and forth between two engines)."""
    text, seen = whole(case.before), set()
    while text not in seen and len(seen) < 12:
        seen.add(text)
        candidates = catalogue.apply(case.rule, text, find_kernels(text).kernels[0])
        text = candidates[0].text if candidates else text
    assert len(seen) < 12


def test_every_rule_has_a_case_where_it_applies_and_one_where_it_must_not() -> None:
    for rule in catalogue.rules():
        if rule.dialect == "nki":
            kinds = {case.after is None for case in CASES if case.rule == rule.name}
            assert kinds == {True, False}, rule.name


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([c for c in CASES if c.after]),
    st.lists(st.sampled_from(["# note", "", "    ", "x_1 = 1  # ü", "'''text\n    more'''"]), max_size=3),
    st.integers(0, 8),
)
def test_rules_bear_odd_layout(case: Case, lines: list[str], where: int) -> None:
    """Comments, blank lines and strings anywhere in the body: every proposal still parses and keeps its kernel."""
    body = whole(case.before).splitlines(keepends=True)
    at = min(len(HEADER.splitlines()) + where, len(body) - len(FOOTER.splitlines()))
    indent = body[at][: len(body[at]) - len(body[at].lstrip())]
    text = "".join([*body[:at], *(f"{indent}{line}\n" for line in lines), *body[at:]])
    found = find_kernels(text).kernels
    for kernel in found:
        for candidate in catalogue.proposals(text, kernel, strict=True):
            assert "kernel" in {k.name for k in find_kernels(candidate.text).kernels}


def test_kernels_in_the_newer_dialect_are_left_alone() -> None:
    text = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    for i in nl.affine_range(4):
        tile = nl.load(x[0:128, 0:512])
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    return x
"""
    assert list(catalogue.proposals(text, find_kernels(text).kernels[0])) == []
