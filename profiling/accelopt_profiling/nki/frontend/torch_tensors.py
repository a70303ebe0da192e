"""Tensors of torch that a kernel is launched on, and that a simulation returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.data.dtypes import as_dtype


def is_torch(value: Any) -> bool:
    """Return whether a value is a tensor of torch."""
    return hasattr(value, "detach") and hasattr(value, "numpy")


def from_torch(tensor: Any) -> Any:
    """Return the array of a tensor."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        return tensor.view(torch.int16).numpy().view(as_dtype("bfloat16"))
    return tensor.numpy()


def in_torch(value: Any) -> Any:
    """Return arrays as torch's tensors, also inside of sequences."""
    if isinstance(value, (tuple, list)):
        values = [in_torch(v) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
    if not isinstance(value, np.ndarray):
        return value
    import torch

    if value.dtype == as_dtype("bfloat16"):
        return torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))
