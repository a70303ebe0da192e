"""Zeros in the place of what torch functions would compute, where that matters little and would take long."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

#: Bytes that a device allocation's address is a multiple of (CUDA C++ Programming Guide, "Size and Alignment
#: Requirement": addresses returned by the allocation routines are aligned to at least 256 bytes).
_ALIGNMENT = 256

#: Nothing is computed on floating tensors of more bytes.
_LARGE = 64 << 20

#: No product of more operations is computed. In half precision a CPU does some 2e9 a second.
_LARGE_PRODUCT = 8e9
#: Products, each with the dimension of the second factor that makes the result's columns.
_PRODUCTS = {
    "matmul": -1,
    "__matmul__": -1,
    "mm": -1,
    "bmm": -1,
    "linear": 0,
    "scaled_dot_product_attention": -2,
}

#: Convolutions, each with the places of the tensor that is gone over and of the weights, and the dimension of these
#: that an element of it meets once.
_CONVOLUTIONS = {
    "conv1d": (0, 1, 1), "conv2d": (0, 1, 1), "conv3d": (0, 1, 1), "convolution_backward": (0, 2, 0),
}  # fmt: skip

#: Random draws that a hollow run replaces by zeros: only shapes and types matter then.
_DRAWS_LIKE = {torch.randn_like, torch.rand_like}
_DRAWS = {torch.randn, torch.rand, torch.normal}


#: Change what is known of a tensor, and none of its elements: a hollow run makes them, whatever the size.
_OF_THE_TENSOR = {
    "as_strided_", "detach_", "requires_grad_", "resize_", "resize_as_", "set_", "share_memory_", "squeeze_",
    "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
}  # fmt: skip


def hollow(func: Any, args: Any, kwargs: Any) -> Any:
    """Call a torch function without drawing random floats, and without computing on large tensors: zeros take the place
    of what it would give.
    """
    name = getattr(func, "__name__", "")
    if func in _DRAWS and not any(isinstance(a, torch.Tensor) for a in args):
        kwargs.pop("generator", None)
        if func is not torch.normal:
            return untouched_zeros(
                torch.empty(*args, **{**kwargs, "device": "meta"}), kwargs.get("requires_grad", False)
            )
    if func in _DRAWS_LIKE:
        kwargs.pop("memory_format", None)
        return untouched_zeros(
            torch.empty(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device="meta"),
            kwargs.get("requires_grad", False),
        )
    drawn = kwargs.get("tensor", args[0] if args else None)
    of_init = getattr(func, "__module__", "") == torch.nn.init.__name__
    if (name in ("normal_", "uniform_") or of_init) and isinstance(drawn, torch.Tensor):
        return drawn
    large = any(_is_large(a) for a in args) or _operations(name, args) > _LARGE_PRODUCT
    if name not in _OF_THE_TENSOR and large:
        zeros = _untouched(func, args, kwargs)
        if zeros is not None:
            return zeros
    return func(*args, **kwargs)


def too_large(func: Any, args: Any, kwargs: Any) -> Any:
    """Return zeros in place of what a torch function would compute on large floating tensors, or by a large product;
    None where it is to be called. Integers are computed: they may be places that kernels read.
    """
    name = getattr(func, "__name__", "")
    floats = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    if name in _OF_THE_TENSOR or not floats:
        return None
    if any(_is_large(a) for a in floats):
        return _untouched(func, args, kwargs)
    return _untouched(func, args, kwargs) if _operations(name, floats) > _LARGE_PRODUCT else None


def _operations(name: str, args: Sequence[Any]) -> float:
    """Return the operations of a product or a convolution that nothing wants gradients of, 0 of anything else."""
    at, weights, dimension = _CONVOLUTIONS.get(name, (0, 1, None))
    if (name not in _PRODUCTS and dimension is None) or len(args) <= weights:
        return 0.0
    one: Any = args[at]
    other: Any = args[weights]
    if any(not isinstance(a, torch.Tensor) or a.requires_grad or not a.dim() for a in (one, other)):
        return 0.0
    if dimension is not None:
        return float(2 * one.numel() * other.numel() // max(1, int(other.shape[dimension])))
    columns = int(other.shape[_PRODUCTS[name]]) if other.dim() > 1 else 1
    return float(2 * one.numel() * columns)


def _is_large(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.numel() * value.element_size() > _LARGE
        and not value.requires_grad
        and not value.is_meta
    )


def _untouched(func: Any, args: Any, kwargs: Any) -> Any:
    """Return zeros in place of what ``func`` would compute on large tensors.

    None where it computes no new tensor.

    Which shape and type that has is found on meta tensors. What changes its first argument leaves it as it is; views,
    other results that are an argument, and numbers are left to the function itself.
    """
    name = getattr(func, "__name__", "")
    if name.endswith("_") and not name.endswith("__") and isinstance(args[0], torch.Tensor):
        return args[0]
    if name == "to":  # the shadow has no device to go to
        args = tuple(a for a in args if not isinstance(a, torch.device))
        kwargs = {n: v for n, v in kwargs.items() if n != "device"}
    shadows: dict[int, Any] = {}

    def shadow(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(shadow(v) for v in value)
        if not isinstance(value, torch.Tensor):
            return value
        zeros = value.to("meta")
        shadows[zeros.untyped_storage()._cdata] = zeros
        return zeros

    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            result = func(*(shadow(a) for a in args), **{n: shadow(v) for n, v in kwargs.items()})
            if isinstance(result, tuple) and all(r is None or r.is_meta for r in result):
                return tuple(None if r is None else untouched_zeros(r) for r in result)
            if not isinstance(result, torch.Tensor) or not result.is_meta:
                return None
            if result.untyped_storage()._cdata in shadows:
                return None
            return untouched_zeros(result)
    except Exception:  # it has no shape without values, or is no function of tensors
        return None


def _pages(nbytes: int) -> Any:
    if nbytes <= _LARGE:
        return np.zeros(nbytes, np.uint8)
    unreserved = getattr(mmap, "MAP_NORESERVE", 0)  # there may be more of them than memory
    return np.frombuffer(mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | unreserved), np.uint8)


def untouched_zeros(like: Any, requires_grad: bool = False) -> Any:
    """Zeros of the shape and type of a meta tensor, in pages that the system hands out when they are touched."""
    nbytes = like.numel() * like.element_size()
    pages = _pages(nbytes + _ALIGNMENT)
    start = -pages.ctypes.data % _ALIGNMENT
    flat = torch.from_numpy(pages)[start : start + nbytes].view(like.dtype)
    return flat.reshape(like.shape).requires_grad_(requires_grad)
