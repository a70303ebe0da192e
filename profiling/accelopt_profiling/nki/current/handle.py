"""Handles of the current dialect: its tensors and registers as kernel code holds them."""

from __future__ import annotations

from accelopt_profiling.nki.current.registers import Register
from accelopt_profiling.nki.current.tensor import NkiTensor
from accelopt_profiling.nki.frontend.handle import TENSOR_ATTRIBUTES, TENSOR_METHODS, Handle, represents

_VIEWS = (
    "permute", "broadcast", "expand_dim", "squeeze_dim", "reshape_dim", "flatten_dims", "slice", "select",
    "vector_select", "ap", "rearrange", "get_pattern", "is_contiguous", "is_indirect", "view", "indirect",
)  # fmt: skip


@represents(NkiTensor, *TENSOR_ATTRIBUTES, "strides", methods=(*TENSOR_METHODS, *_VIEWS))
class KernelNkiTensor(Handle):
    """A tensor in HBM, SBUF or PSUM, or a view of one, as kernel code holds it."""

    __slots__ = ()


@represents(Register, methods=("__bool__",))
class KernelRegister(Handle):
    """A register as kernel code holds it: older versions allow it as the condition of a loop."""

    __slots__ = ()
