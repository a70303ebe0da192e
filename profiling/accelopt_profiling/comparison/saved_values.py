"""Save and load inputs and outputs as ``.npy`` files and one JSON index in a folder. Never pickle.

A value is a NumPy array, a torch tensor, a number, text, None, or a list, tuple or dictionary of values (see
``values``). Arrays are saved as bytes. A tensor keeps its dtype, shape and strides.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.comparison.values import dtype_name, from_json, reach, to_json

INDEX = "values.json"
#: dtypes that NumPy lacks.
NARROW = (
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3",
)  # fmt: skip
Bytes = np.ndarray[Any, Any]


class NotCarriedError(Exception):
    """A value that cannot travel between the gate's processes."""


def save_values(folder: Path, values: list[Any]) -> None:
    """Write ``values`` to ``folder``, which must not exist yet.

    Raises:
        NotCarriedError: a value of an unknown kind (an object of a class, a function, ...).
        FileExistsError: somebody made the folder already.
    """
    folder.mkdir(parents=True)
    count = 0

    def save(value: Any) -> dict[str, Any]:
        nonlocal count
        about, content = _described(value)
        name, count = f"{count}.npy", count + 1
        np.save(folder / name, content, allow_pickle=False)
        return {"array": {**about, "file": name}}

    (folder / INDEX).write_text(json.dumps([to_json(value, save) for value in values]), encoding="utf-8")


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

    def load(kind: str, about: Any) -> Any:
        if kind == "dtype":
            import torch

            return getattr(torch, about)
        if kind != "array":
            raise ValueError(f"unknown saved value {kind!r:.200}")
        content = read_bytes(about, folder)
        return _tensor(about, content) if about["library"] == "torch" else _array(about, content)

    index = read_index(folder)
    try:
        return [from_json(data, load) for data in index]
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{folder.name} holds no saved values: {error!r}") from None


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


def _described(value: Any) -> tuple[dict[str, Any], Bytes]:
    """Return what is to be known of an array, and its bytes."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _described_tensor(torch, value)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise NotCarriedError(
            f"a {type(value).__module__}.{type(value).__qualname__} cannot be passed between processes"
        )
    array, dtype = np.asarray(value), dtype_name(value.dtype)
    if dtype not in NARROW and array.dtype.kind not in "biufc":
        raise NotCarriedError(f"an array of dtype {dtype} cannot be passed between processes")
    about = {"library": "numpy", "dtype": dtype, "shape": list(array.shape)}
    scalar = isinstance(value, np.generic)
    return {**about, "scalar": scalar}, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _described_tensor(torch: Any, tensor: Any) -> tuple[dict[str, Any], Bytes]:
    if tensor.is_sparse or tensor.is_quantized or tensor.layout != torch.strided:
        raise NotCarriedError("a sparse or quantized tensor cannot be passed between processes")
    flat = tensor.detach().resolve_conj().resolve_neg()
    shape, strides = list(flat.shape), list(flat.stride())
    length = reach(shape, strides)
    overlaps = any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True))
    # of a large storage with a few elements of the tensor the rest is left behind
    packed = length > 2 * flat.numel() and not overlaps
    window = flat.reshape(-1) if packed else torch.as_strided(flat, (length,), (1,), flat.storage_offset())
    own = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    about = {
        "library": "torch", "dtype": dtype_name(tensor.dtype), "shape": shape, "strides": strides, "packed": packed,
        "device": str(tensor.device), "requires_grad": bool(tensor.requires_grad),
        "type": type(tensor).__name__ if own else "subclass",
    }  # fmt: skip
    return about, window.cpu().contiguous().view(torch.uint8).numpy()


def read_bytes(about: dict[str, Any], folder: Path, mapped: bool = False) -> Bytes:
    """Return the bytes of a saved array.

    With ``mapped`` they are read-only and stay in their file until they are used.

    Raises:
        ValueError: the file is missing, outside the folder, or holds no bytes.
    """
    name = about.get("file")
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"a saved array names the file {name!r}")
    try:
        loaded = np.load(folder / name, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ValueError(f"the saved array {name} cannot be read: {error}") from None
    if not isinstance(loaded, np.ndarray) or loaded.dtype != np.uint8 or loaded.ndim != 1:
        raise ValueError(f"the saved array {name} is no array of bytes")
    return loaded


def _array(about: dict[str, Any], content: Bytes) -> Any:
    if about["dtype"] in NARROW:
        import ml_dtypes  # which gives NumPy these types

        values = content.view(getattr(ml_dtypes, about["dtype"]))
    else:
        values = content.view(about["dtype"])
    return values.reshape(about["shape"])[() if about["scalar"] else ...]


def _tensor(about: dict[str, Any], content: Bytes) -> Any:
    import torch

    dtype, shape, strides = getattr(torch, about["dtype"]), about["shape"], about["strides"]
    flat = torch.from_numpy(content).as_strided(content.shape, (1,))  # an empty one has no stride yet
    window = flat.view(dtype).to(about["device"])
    if about["packed"]:
        tensor = torch.empty_strided(shape, strides, dtype=window.dtype, device=window.device)
        tensor.copy_(window.reshape(shape))
    else:
        tensor = torch.as_strided(window, shape, strides)
    return tensor.requires_grad_() if about["requires_grad"] else tensor
