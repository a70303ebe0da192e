"""Triton's number types on NumPy arrays: bf16 and the fp8 formats as their bit patterns, rounded as a GPU rounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Triton's names of the types that NumPy lacks, which the interpreter keeps as bit patterns.
PACKED = ("bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16")

_TORCH_FP8 = {
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
}


def widen_bf16(bits: Array) -> Array:
    """Convert bf16 bit patterns (uint16) to fp32; exact."""
    wide: Array = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide


def round_to_bf16(values: Array) -> Array:
    """Round fp32 to bf16 bit patterns (uint16), to nearest, ties to even. NaN stays NaN (quiet)."""
    wide = np.ascontiguousarray(values, np.float32)
    bits = wide.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = np.uint32(0x7FC0) | (bits >> np.uint32(16))
    packed: Array = np.where(np.isnan(wide), quiet, rounded).astype(np.uint16)
    return packed


def truncate_to_bf16(values: Array) -> Array:
    """Round fp32 to bf16 bit patterns, toward zero."""
    wide = np.ascontiguousarray(values, np.float32)
    bits = (wide.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    packed: Array = np.where(np.isnan(wide), np.uint16(0x7FC0), bits)
    return packed


@cache
def _fp8_values(name: str) -> Array:
    """Return the 256 values of an fp8 format as fp32."""
    import torch

    patterns = torch.arange(256, dtype=torch.uint8)
    values = patterns.view(getattr(torch, _TORCH_FP8[name])).to(torch.float32)
    return np.asarray(values.detach().cpu().numpy(), np.float32)


def widen(data: Array, name: str) -> Array:
    """Convert bit patterns of the packed type ``name`` to fp32. Arrays of any other type stay."""
    if name == "bf16":
        return widen_bf16(data)
    if name in _TORCH_FP8:
        return _fp8_values(name)[data]
    return data


def narrow(values: Array, name: str, *, toward_zero: bool = False) -> Array:
    """Round numbers to bit patterns of the packed type ``name``.

    bf16 rounds to nearest even. The fp8 formats round to nearest even and saturate to the largest finite value, as
    the ``cvt.rn.satfinite`` instruction that Triton emits does (PTX ISA, section "cvt"); NaN stays NaN.
    """
    with np.errstate(all="ignore"):
        wide = np.asarray(values, np.float32)
    if name == "bf16":
        return truncate_to_bf16(wide) if toward_zero else round_to_bf16(wide)
    import torch

    kind = getattr(torch, _TORCH_FP8[name])
    limit = np.float32(torch.finfo(kind).max)
    clipped = np.clip(wide, -limit, limit)
    packed = torch.from_numpy(np.array(clipped, np.float32)).to(kind).view(torch.uint8)
    return np.asarray(packed.cpu().numpy(), np.uint8).reshape(wide.shape)


def is_packed(name: str) -> bool:
    return name in PACKED
