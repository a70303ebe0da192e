"""Read a tensor from the text of a safetensors file in base64, which is how a job carries it.

The format: 8 bytes with the length of a JSON header, little-endian; the header, which gives each tensor's dtype, shape
and place by its name; the tensors' bytes, row by row (https://github.com/huggingface/safetensors).
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip


class SafetensorsError(Exception):
    """The file is none, or does not hold the tensor."""


def stored_tensor(text: str, key: str) -> Any:
    """Return the torch tensor ``key`` of a file in base64.

    Raises:
        SafetensorsError: there is no such tensor, or the file is broken.
    """
    import torch

    try:
        data = base64.b64decode(text, validate=True)
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        entry = header[key]
        dtype = getattr(torch, _DTYPES[entry["dtype"]])
        first, end = entry["data_offsets"]
        held = bytearray(data[start + first : start + end])
        if len(held) != end - first:
            raise ValueError("the file is cut off")
        if not held:
            return torch.empty(entry["shape"], dtype=dtype)
        return torch.frombuffer(held, dtype=torch.uint8).view(dtype).reshape(entry["shape"])
    except (KeyError, ValueError, TypeError, RuntimeError, binascii.Error) as error:
        held_names = ", ".join(list(header)[:5]) if "header" in locals() and isinstance(header, dict) else ""
        which = f"it holds {held_names}" if held_names else f"{type(error).__name__}: {error}"
        raise SafetensorsError(f"the tensor {key!r} cannot be read ({which})") from error
