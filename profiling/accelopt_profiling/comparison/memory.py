"""Arrays and tensors as memory: overlaps, fingerprints, new data at old addresses, and allocations that are filled
with NaNs whose bits no computation gives, so that what was never written can be told.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from accelopt_profiling.comparison.values import dtype_name

#: ``M_PERTURB`` of glibc's ``malloc.h``.
_M_PERTURB = -6
#: Bytes that a device allocation's address is a multiple of (torch's allocator for CUDA rounds to 512; the CUDA C++
#: Programming Guide promises 256).
ALIGNMENT = 512


def arrays_of(values: Any, where: str = "") -> list[tuple[str, Any]]:
    """Return the NumPy arrays and torch tensors inside ``values``, with their places."""
    torch = sys.modules.get("torch")
    if type(values) in (list, tuple):
        return [
            array
            for n, v in enumerate(values)
            for array in arrays_of(v, f"{where}[{n}]" if where else str(n))
        ]
    if isinstance(values, np.ndarray) or (torch is not None and isinstance(values, torch.Tensor)):
        return [(where, values)]
    return []


def is_plain(array: Any) -> bool:
    """Check whether an array is of a library's own type: a subclass may compute when it is looked at."""
    torch = sys.modules.get("torch")
    kinds = (np.ndarray, *((torch.Tensor, torch.nn.Parameter) if torch is not None else ()))
    return type(array) in kinds


def span(array: Any) -> tuple[int, int]:
    """Return the first byte address of an array's elements, and the one after the last."""
    if isinstance(array, np.ndarray):
        places: Any = getattr(np.lib, "array_utils", np)  # NumPy 2 moved the function
        low, high = places.byte_bounds(array)
        return int(low), int(high)
    if not array.numel():
        return 0, 0
    length = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.stride(), strict=True))
    start = int(array.data_ptr())
    return start, start + length * int(array.element_size())


def byte_count(values: list[Any]) -> int:
    """Count the bytes of all arrays in ``values``."""
    return sum(
        a.nbytes if isinstance(a, np.ndarray) else a.numel() * a.element_size() for _, a in arrays_of(values)
    )


def overlapping(one: list[Any], other: list[Any]) -> list[list[str]]:
    """Return the places of the arrays of ``other`` that share memory with one of ``one``, each with the place of
    that."""
    pairs: list[list[str]] = []
    for place, second in arrays_of(other):
        low, high = span(second)
        for source, first in arrays_of(one):
            start, end = span(first)
            if low < end and start < high:
                pairs.append([place, source])
                break
    return pairs


def same_layout(one: list[Any], other: list[Any]) -> bool:
    """Check whether both are as long, and their arrays stand at the same places and have pairwise the same type, dtype,
    shape and strides.
    """
    first, second = arrays_of(one), arrays_of(other)
    return (
        len(one) == len(other)
        and bool(first)
        and [place for place, _ in first] == [place for place, _ in second]
        and all(_alike(a, b) for (_, a), (_, b) in zip(first, second, strict=True))
    )


def _alike(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or a.dtype != b.dtype or tuple(a.shape) != tuple(b.shape):
        return False
    if isinstance(a, np.ndarray):
        return a.strides == b.strides and bool(a.flags.writeable)
    return bool(a.stride() == b.stride() and not a.requires_grad)


def fill_in_place(target: list[Any], source: list[Any]) -> None:
    """Write the arrays of ``source`` into those of ``target``. Everything else is replaced."""
    for n, (old, new) in enumerate(zip(target, source, strict=True)):
        if isinstance(old, np.ndarray):
            old[...] = new
        elif arrays_of([old]) and type(old) not in (list, tuple):
            old.copy_(new)
        else:
            target[n] = new


def poisoned(array: Any) -> Any:
    """Return a NumPy array of the same form in which a value nobody wrote shows: NaN, or a large number."""
    return poison(np.array(array))


def poison(array: Any) -> Any:
    """Fill an array or tensor with NaN (see ``unwritten``), the largest value of an integer type, or True."""
    if not isinstance(array, np.ndarray):
        _poison_tensor(array)
        return array
    if fill(array):
        return array
    if array.dtype.kind in "fcV":  # "V": bfloat16 and float8 of ml_dtypes
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    return array


def _poison_tensor(tensor: Any) -> None:
    torch = sys.modules["torch"]
    with torch.no_grad():
        bits = UNWRITTEN.get(dtype_name(tensor.dtype))
        if bits is not None:
            whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
            tensor.view(whole).fill_(bits)
        elif tensor.is_floating_point() or tensor.is_complex():
            tensor.fill_(float("nan"))
        elif tensor.dtype == torch.bool:
            tensor.fill_(True)
        else:
            tensor.fill_(torch.iinfo(tensor.dtype).max)


def poison_allocator() -> None:
    """Have the C library fill all memory that it hands out with a byte (0xFE) that is nobody's result: what reaches
    code past the constructors that ``poisoned_memory`` knows. Linux with glibc only.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_PERTURB, 1)


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Poison memory that NumPy hands out uninitialised. (For torch ``gate.observe.dispatch_mode`` does, and
    ``triton.capture.torch_device`` where a device is emulated.)
    """
    empty, empty_like = np.empty, np.empty_like

    def poisoned_empty(*args: Any, **kwargs: Any) -> Any:
        return poison(empty(*args, **kwargs))

    def poisoned_empty_like(*args: Any, **kwargs: Any) -> Any:
        return poison(empty_like(*args, **kwargs))

    numpy: Any = np
    numpy.empty, numpy.empty_like = poisoned_empty, poisoned_empty_like
    try:
        yield
    finally:
        numpy.empty, numpy.empty_like = empty, empty_like


def aligned(value: Any) -> Any:
    """Return a copy of a tensor whose memory begins where a device's allocator would let it begin, for lists
    and tuples those of their tensors; everything else as it is."""
    torch = sys.modules.get("torch")
    if type(value) in (list, tuple):
        return type(value)(aligned(v) for v in value)
    if torch is None or type(value) is not torch.Tensor or value.requires_grad:
        return value
    low, high = span(value)
    if low % ALIGNMENT == 0 or low == high:
        return value
    pages = np.empty(high - low + ALIGNMENT, np.uint8)
    start = -pages.ctypes.data % ALIGNMENT
    memory = torch.from_numpy(pages[start : start + high - low])
    window = torch.empty(0, dtype=torch.uint8).set_(
        value.untyped_storage(), value.storage_offset() * value.element_size(), (high - low,)
    )
    memory.copy_(window)
    return torch.as_strided(memory.view(value.dtype), value.shape, value.stride())


def same_bits(one: Any, other: Any) -> bool:
    """Check whether two arguments have the same type, shape and bits. Cheaper than two fingerprints."""
    torch = sys.modules.get("torch")
    if type(one) in (list, tuple) and type(other) in (list, tuple):
        return len(one) == len(other) and all(map(same_bits, one, other))
    if torch is not None and isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        kinds = [(v.dtype, tuple(v.shape)) for v in (one, other)]
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        kinds = [(v.dtype, v.shape) for v in (one, other)]
    else:
        return fingerprint(one) == fingerprint(other)
    return kinds[0] == kinds[1] and bool(np.array_equal(_bits(one), _bits(other)))


def _bits(array: Any) -> np.ndarray[Any, Any]:
    """Return an array's bits as whole numbers, the widest that divide it."""
    if not isinstance(array, np.ndarray):
        torch = sys.modules["torch"]
        flat = array.detach().cpu().contiguous().reshape(-1)
        array = flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
    return bits.view(np.uint64) if bits.size % 8 == 0 else bits


def fingerprint(value: Any) -> bytes:
    """Return a hash of an argument's type, shape and bits."""
    state = hashlib.sha256()
    _feed(value, state.update)
    return state.digest()


def with_gaps(value: Any) -> Any:
    """Return a tensor's memory from its first element to its last, of a list or tuple that of each; all else as it
    is."""
    torch = sys.modules.get("torch")
    if type(value) in (list, tuple):
        return type(value)(with_gaps(v) for v in value)
    if torch is None or not isinstance(value, torch.Tensor) or value.is_contiguous() or not value.numel():
        return value
    low, high = span(value)
    return torch.as_strided(
        value.detach(), ((high - low) // value.element_size(),), (1,), value.storage_offset()
    )


def empty_alike(value: Any) -> Any:
    """Return new memory for a tensor, in its layout, gaps included."""
    torch = sys.modules["torch"]
    whole = with_gaps(value)
    if whole is value or any(s == 0 for s in value.stride()):
        return torch.empty_like(value)
    return torch.as_strided(whole.clone(), value.shape, value.stride())


def _feed(value: Any, update: Callable[[Any], None]) -> None:
    torch = sys.modules.get("torch")
    if type(value) in (list, tuple):
        for item in value:
            _feed(item, update)
    elif torch is not None and isinstance(value, torch.Tensor):
        update(f"{value.dtype}{tuple(value.shape)}".encode())
        flat = value.detach().cpu().contiguous().reshape(-1)
        update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    elif isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode())
        update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data if value.size else b"")
    else:
        update(repr(value).encode())


#: By the name of a float type: quiet NaNs with bits of our own in the fraction, as unsigned integers.
UNWRITTEN = {"float16": 0x7EAC, "bfloat16": 0x7FEC, "float32": 0x7FC0ACCE, "float64": 0x7FF80000ACCE55ED}


def fill(array: np.ndarray[Any, Any]) -> bool:
    """Fill a NumPy array with the bits of its type. False where there are none for it."""
    bits = UNWRITTEN.get(array.dtype.name)
    if bits is None:
        return False
    array.view(f"u{array.dtype.itemsize}").fill(bits)
    return True


def is_unwritten(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return where ``values`` are of memory that nothing wrote.

    ``dtype`` is the type they had; bfloat16 may have become float32.
    """
    bits = UNWRITTEN.get(dtype)
    if bits is None or values.dtype.kind != "f":
        return np.zeros(values.shape, np.bool_)
    if dtype == "bfloat16":
        bits <<= 16
    if values.dtype.name != ("float32" if dtype == "bfloat16" else dtype):
        return np.zeros(values.shape, np.bool_)
    same: Any = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}") == bits
    unwritten: np.ndarray[Any, Any] = same.reshape(values.shape)
    return unwritten
