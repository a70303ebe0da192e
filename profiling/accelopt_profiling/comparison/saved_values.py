"""Save and load inputs and outputs as ``.npy`` files and one JSON index in a folder. Never pickle.

A value is a NumPy array, a torch tensor, a number, text, None, or a list, tuple or dictionary of values.
Arrays of dtypes that NumPy lacks (bfloat16, float8) are saved by their bits. A tensor keeps its dtype, shape
and strides.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

INDEX = "values.json"
#: dtypes saved by their bits, with the NumPy dtype of the bits
BITS = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
    "float8_e4m3": "uint8",
}


class NotCarriedError(Exception):
    """A value that cannot travel between the gate's processes."""


def save_values(folder: Path, values: list[Any]) -> None:
    """Write ``values`` to ``folder``, which must not exist yet.

    Raises:
        NotCarriedError: a value of an unknown kind (an object of a class, a function, ...).
        FileExistsError: somebody made the folder already.
    """
    folder.mkdir(parents=True)
    arrays: list[str] = []
    index = [_describe(value, folder, arrays) for value in values]
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def link_values(folder: Path, same: Path) -> None:
    """Let the files of ``folder`` be links to those of ``same``, which hold the same: results may be large. Where the
    sandbox or the file system takes no links, they stay copies."""
    for file in same.iterdir():
        link = folder / f"{file.name}.link"
        try:
            os.link(file, link)
        except OSError:
            return
        link.replace(folder / file.name)


def load_values(folder: Path) -> list[Any]:
    """Read back what ``save_values`` wrote: torch tensors become torch tensors again.

    Raises:
        ValueError: the folder does not hold saved values (a candidate may have written anything there).
    """
    return [_restore(spec, folder) for spec in read_index(folder)]


def read_index(folder: Path) -> list[Any]:
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{folder.name} holds no saved values: {error}") from None
    if not isinstance(index, list):
        raise ValueError(f"{folder.name} holds no saved values: the index is no list")
    return index


def digest(folder: Path) -> str:
    """Return a hash of the files in ``folder``, which has no folders: names, index and arrays."""
    state = hashlib.sha256()
    for file in sorted(p for p in folder.iterdir() if p.is_file()):
        state.update(os.fsencode(file.name) + b"\0")
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                state.update(block)
    return state.hexdigest()[:32]


def _describe(value: Any, folder: Path, arrays: list[str]) -> dict[str, Any]:
    if value is None:
        return {"kind": "none"}
    if isinstance(value, (bool, int, str)) and type(value) in (bool, int, str):
        return {"kind": type(value).__name__, "value": value}
    if type(value) in (float, complex):
        return {"kind": type(value).__name__, "value": repr(value)}
    if type(value) in (list, tuple):
        return {"kind": type(value).__name__, "items": [_describe(v, folder, arrays) for v in value]}
    if type(value) is dict and all(isinstance(k, str) for k in value):
        return {"kind": "dict", "items": {k: _describe(v, folder, arrays) for k, v in value.items()}}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _describe_tensor(torch, value, folder, arrays)
    if torch is not None and isinstance(value, torch.dtype):
        return {"kind": "torch.dtype", "value": str(value).removeprefix("torch.")}
    if isinstance(value, (np.ndarray, np.generic)):
        return _describe_array(np.asarray(value), isinstance(value, np.generic), folder, arrays)
    raise NotCarriedError(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be passed between processes"
    )


def _describe_array(
    array: np.ndarray[Any, Any], scalar: bool, folder: Path, arrays: list[str]
) -> dict[str, Any]:
    dtype = str(array.dtype)
    if dtype in BITS:
        bits = np.ascontiguousarray(array).reshape(array.shape).view(BITS[dtype])
    elif array.dtype.kind in "biufc":
        bits = array
    else:
        raise NotCarriedError(f"an array of dtype {dtype} cannot be passed between processes")
    spec = {"kind": "array", "library": "numpy", "dtype": dtype, "shape": list(array.shape), "scalar": scalar}
    return {**spec, "file": _store(bits, folder, arrays)}


def _describe_tensor(torch: Any, tensor: Any, folder: Path, arrays: list[str]) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_sparse or tensor.is_quantized or tensor.layout != torch.strided:
        raise NotCarriedError("a sparse or quantized tensor cannot be passed between processes")
    device = str(tensor.device)
    flat = tensor.detach().resolve_conj().resolve_neg()
    strides = list(flat.stride())
    span = 1 + sum((n - 1) * s for n, s in zip(flat.shape, strides, strict=True)) if flat.numel() else 0
    overlaps = any(s == 0 and n > 1 for n, s in zip(flat.shape, strides, strict=True))
    packed = (
        span > 2 * flat.numel() and not overlaps
    )  # a few elements of a large storage: leave the rest behind
    if packed:
        window = flat.contiguous().reshape(-1).cpu()
    else:
        window = torch.as_strided(flat, (span,), (1,), flat.storage_offset()).cpu().contiguous()
    if dtype in BITS:
        window = window.view(torch.int16 if BITS[dtype] == "uint16" else torch.uint8)
    bits = window.numpy()
    if dtype in BITS:
        bits = bits.view(BITS[dtype])
    return {
        "kind": "array", "library": "torch", "dtype": dtype, "shape": list(tensor.shape), "strides": strides,
        "packed": packed, "device": device, "requires_grad": bool(tensor.requires_grad), "scalar": False,
        "file": _store(bits, folder, arrays),
        "type": type(tensor).__name__ if type(tensor) in (torch.Tensor, torch.nn.Parameter) else "subclass",
    }  # fmt: skip


def _store(bits: np.ndarray[Any, Any], folder: Path, arrays: list[str]) -> str:
    name = f"{len(arrays)}.npy"
    arrays.append(name)
    np.save(folder / name, bits, allow_pickle=False)
    return name


def _restore(spec: Any, folder: Path) -> Any:
    kind = spec.get("kind") if isinstance(spec, dict) else None
    if kind == "none":
        return None
    if kind in ("bool", "int", "str"):
        return spec["value"]
    if kind == "float":
        return float(spec["value"])
    if kind == "complex":
        return complex(spec["value"])
    if kind in ("list", "tuple"):
        items = [_restore(item, folder) for item in spec["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {k: _restore(v, folder) for k, v in spec["items"].items()}
    if kind == "torch.dtype":
        import torch

        return getattr(torch, spec["value"])
    if kind == "array":
        bits = read_bits(spec, folder)
        return _restore_tensor(spec, bits) if spec.get("library") == "torch" else _restore_array(spec, bits)
    raise ValueError(f"unknown saved value {spec!r:.200}")


def read_bits(spec: dict[str, Any], folder: Path, mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return the array file of a spec, as stored: floats as they are, bfloat16 and float8 as unsigned
    integers.

    With ``mapped`` the array is read-only and stays in its file until it is used.

    Raises:
        ValueError: the file is missing, outside the folder, or not an array.
    """
    name = spec.get("file")
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"a saved array names the file {name!r}")
    try:
        loaded = np.load(folder / name, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ValueError(f"the saved array {name} cannot be read: {error}") from None
    if not isinstance(loaded, np.ndarray):
        raise ValueError(f"the saved array {name} is no array")
    return loaded


def _restore_array(spec: dict[str, Any], bits: np.ndarray[Any, Any]) -> Any:
    if spec["dtype"] in BITS:
        import ml_dtypes

        bits = bits.view(getattr(ml_dtypes, spec["dtype"]))
    return bits[()] if spec.get("scalar") and bits.shape == () else bits


def _restore_tensor(spec: dict[str, Any], bits: np.ndarray[Any, Any]) -> Any:
    import torch

    dtype = getattr(torch, spec["dtype"])
    if spec["dtype"] in BITS:
        signed = bits.view("int16") if BITS[spec["dtype"]] == "uint16" else bits
        window = torch.from_numpy(signed).view(dtype)
    else:
        window = torch.from_numpy(bits)
    if spec["device"] != "cpu":
        window = window.to(spec["device"])
    if spec.get("packed"):
        tensor = torch.empty_strided(spec["shape"], spec["strides"], dtype=dtype, device=window.device)
        tensor.copy_(window.reshape(spec["shape"]))
    else:
        tensor = torch.as_strided(window, spec["shape"], spec["strides"])
    return tensor.requires_grad_() if spec.get("requires_grad") else tensor
