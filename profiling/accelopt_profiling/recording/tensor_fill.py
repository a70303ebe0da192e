"""Describe the elements of a tensor so that they can be made again: a constant, saved values, or a distribution.

Integers, bools and small tensors are saved (compressed); large floats are described by their distribution: normal,
uniform, or their quantiles. What is described is drawn anew from a seed.
"""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

#: Floats up to this many elements are saved; integers as long as their compressed bytes fit.
SAVED_FLOATS = 4096
SAVED_BYTES = 1 << 20
_LOOKED_AT = 1 << 20
#: Elements of a distribution without a name that are drawn; a larger tensor repeats them.
_DRAWN = 1 << 22
#: How far off a mean of 0 and a deviation of 1 a sample of a standard normal is taken to be.
_NEARLY = 0.02
#: Levels of the quantiles that are kept: percents, and finer at both ends.
_LEVELS = (0, 1e-4, 1e-3, 5e-3, *(n / 100 for n in range(1, 100)), 0.995, 0.999, 0.9999, 1)


def describe(flat: Any, budget: int) -> tuple[dict[str, Any], bool]:
    """Return how the one-dimensional tensor ``flat`` is filled, and whether that gives its very values.

    Memory that nobody wrote to holds no values: an output, or what a launch that was not run would have left. Its
    integers become zeros, which are within the bounds of whatever they may count or index.
    """
    import torch

    if not flat.numel():
        return {"fill": "constant", "value": 0}, True
    flat = flat.cpu()
    floating = flat.is_floating_point()
    if flat.is_complex():
        return {"fill": "normal", "mean": 0.0, "deviation": 1.0}, False
    wide = flat.float() if floating and flat.element_size() < 4 else flat
    first = wide[0].item()
    if bool((wide == first).all()):
        wide_integers = not floating and flat.dtype not in (torch.bool, torch.uint8, torch.int8)
        if wide_integers and first == torch.iinfo(flat.dtype).max:
            return {"fill": "constant", "value": 0}, False
        if not isinstance(first, float) or math.isfinite(first):
            return {"fill": "constant", "value": first}, True
    finite = not floating or bool(torch.isfinite(wide).all())
    if (not floating or flat.numel() <= SAVED_FLOATS) and finite:
        saved = _packed(flat)
        if len(saved) <= min(budget, SAVED_BYTES):
            return {"fill": "saved", "values": saved}, True
    return _distribution(wide, floating), False


def _packed(flat: Any) -> str:
    import torch

    raw = flat.contiguous().view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return base64.b64encode(zlib.compress(raw, 6)).decode("ascii")


def _distribution(wide: Any, floating: bool) -> dict[str, Any]:
    import torch

    step = max(1, wide.numel() // _LOOKED_AT)
    some = wide[::step].double()
    some = some[torch.isfinite(some)]
    if not some.numel():  # nothing is known: a launch before this one was not run
        return {"fill": "normal", "mean": 0.0, "deviation": 1.0}
    low, high = some.min().item(), some.max().item()
    if not floating:
        return {"fill": "integers", "low": int(low), "high": int(high)}
    mean, deviation = some.mean().item(), some.std(unbiased=False).item()
    if deviation > 0.0:
        centred = (some - mean) / deviation
        skew, kurtosis = (centred**3).mean().item(), (centred**4).mean().item()
        if abs(skew) < 0.15 and abs(kurtosis - 3.0) < 0.4:
            standard = abs(mean) < _NEARLY and abs(deviation - 1.0) < _NEARLY  # as ``randn`` draws
            return {
                "fill": "normal",
                "mean": 0.0 if standard else mean,
                "deviation": 1.0 if standard else deviation,
            }
        if abs(skew) < 0.15 and abs(kurtosis - 1.8) < 0.1:
            return {"fill": "uniform", "low": low, "high": high}
    ordered = some.sort().values
    at = [round(level * (ordered.numel() - 1)) for level in _LEVELS]
    return {"fill": "quantiles", "levels": list(_LEVELS), "values_at": [float(ordered[n]) for n in at]}


def fill(storage: dict[str, Any], seed: int) -> Any:
    """Make the elements of a storage: a one-dimensional CPU tensor.

    Raises:
        ValueError: the description does not have the form.
    """
    import torch

    dtype, count, kind = getattr(torch, str(storage["dtype"])), int(storage["elements"]), storage.get("fill")
    if not isinstance(dtype, torch.dtype) or count < 0:
        raise ValueError("a recorded tensor has no dtype or a negative size")
    if kind == "constant":
        value = storage["value"]
        if dtype.itemsize == 1 and dtype.is_floating_point:  # torch fills no fp8 tensors
            return torch.full((count,), float(value)).to(dtype)
        return torch.full((count,), value, dtype=dtype)
    if kind == "saved":
        return _unpacked(storage["values"], dtype, count)
    generator = torch.Generator().manual_seed(seed % (1 << 63))
    if kind == "integers":
        return torch.randint(storage["low"], storage["high"] + 1, (count,), generator=generator).to(dtype)
    if kind == "normal":
        mean, deviation = float(storage["mean"]), float(storage["deviation"])
        own = dtype if dtype.itemsize > 1 else torch.float32
        drawn = torch.randn(count, generator=generator, dtype=own)
        return (drawn if (mean, deviation) == (0.0, 1.0) else drawn.mul_(deviation).add_(mean)).to(dtype)
    if kind == "uniform":
        low, high = storage["low"], storage["high"]
        return (torch.rand(count, generator=generator) * (high - low) + low).to(dtype)
    if kind == "quantiles":
        levels, values = (torch.tensor(storage[n], dtype=torch.float32) for n in ("levels", "values_at"))
        at = torch.rand(min(count, _DRAWN), generator=generator)
        below = (torch.searchsorted(levels, at, right=True) - 1).clamp(0, len(levels) - 2)
        share = (at - levels[below]) / (levels[below + 1] - levels[below])
        drawn = torch.lerp(values[below], values[below + 1], share).to(dtype)
        return drawn if count <= _DRAWN else drawn.repeat(-(-count // _DRAWN))[:count]
    raise ValueError(f"a recorded tensor has the unknown fill {kind!r}")


def _unpacked(text: str, dtype: Any, count: int) -> Any:
    import torch

    expected = count * dtype.itemsize
    raw = zlib.decompressobj().decompress(base64.b64decode(text), expected + 1)
    if len(raw) != expected:
        raise ValueError("the saved values of a recorded tensor do not have its size")
    if not raw:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype)
