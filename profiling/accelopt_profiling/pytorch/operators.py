"""Record the operators that a call gives PyTorch's dispatcher, with the bytes and the arithmetic of each, and without
computing any of them: tensors are fakes that have a shape and no data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.comparison.values import dtype_name, leaves_in

#: Reductions: one pass of a kernel over a tensor that gives fewer elements, or normalises what it reads.
_REDUCTIONS = frozenset(
    {"sum", "mean", "amax", "amin", "max", "min", "prod", "var", "var_mean", "std", "norm", "linalg_vector_norm",
     "argmax", "argmin", "any", "all", "logsumexp", "_softmax", "_log_softmax", "native_layer_norm",
     "native_batch_norm", "native_group_norm", "_native_batch_norm_legit", "cudnn_batch_norm", "nll_loss_forward",
     "native_batch_norm.default", "_fused_rms_norm"}
)  # fmt: skip

#: What PyTorch's compiler leaves to a kernel of a library, besides everything that counts floating-point operations.
_EXTERNAL = frozenset(
    {"sort", "topk", "cumsum", "cumprod", "cummax", "cummin", "kthvalue", "median", "mode", "multinomial", "unique",
     "_unique2", "histc", "bincount", "_fft_r2c",
     "_fft_c2c", "_fft_c2r", "_embedding_bag", "grid_sampler_2d", "_cdist_forward", "linalg_inv_ex", "linalg_qr",
     "linalg_cholesky_ex", "triangular_solve"}
)  # fmt: skip

#: A call of more operators is taken for one that goes on step after step.
MOST_OPERATORS = 5000

#: Kernels whose time neither bytes nor products bound: one step after the other.
_SEQUENTIAL = frozenset(
    {"mkldnn_rnn_layer", "_thnn_fused_lstm_cell", "_cudnn_rnn", "miopen_rnn", "lstm", "gru"}
)

#: How often an eager kernel reads its input from DRAM or L2, where not once: statistics first, then the result.
_PASSES = {"native_batch_norm": 2, "_native_batch_norm_legit": 2, "native_group_norm": 2, "var_mean": 1}


class NotModelledError(Exception):
    """An operator's time is not modelled; the message names it."""


@dataclass(frozen=True)
class TensorUse:
    """A tensor that an operator reads or writes: which storage, and how many of its bytes."""

    storage: int
    bytes: int


@dataclass(frozen=True)
class TorchOperator:
    """One operator that runs a kernel.

    ``kind``: "external" (a library's kernel), "reduction" or "pointwise". ``flops`` are those of matrix products and
    convolutions (2 per multiply-add), ``dtype`` their input's type, ``elements`` what else is computed, one operation
    each; ``passes`` is how often it reads its input. ``rate`` names what a library reaches of the peak in float32
    (``library_rates.json``).
    """

    name: str
    kind: str
    reads: tuple[TensorUse, ...]
    writes: tuple[TensorUse, ...]
    flops: float = 0.0
    dtype: str = "float32"
    elements: float = 0.0
    passes: int = 1
    rate: str = ""


def record_operators(prepare: Callable[[], Callable[[], Any]]) -> list[TorchOperator]:
    """Return the operators of the call that ``prepare`` returns.

    Both run with fake tensors: weights and inputs have no data, so that any size costs nothing.

    Raises:
        NotModelledError: an operator's work cannot be told from its shapes. What the two raise goes through, also where
            the call looks at the values of a tensor, which fakes do not have.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    operators: list[TorchOperator] = []
    references: list[Any] = []  # storages live as long as they are told apart by their address

    class Recorder(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            keywords = kwargs or {}
            result = func(*args, **keywords)
            before = [t for t in leaves_in((args, keywords)) if isinstance(t, torch.Tensor)]
            after = [t for t in leaves_in(result) if isinstance(t, torch.Tensor)]
            references.extend((*before, *after))
            if len(operators) >= MOST_OPERATORS:
                raise NotModelledError(f"the time of more than {MOST_OPERATORS} operators is not modelled")
            operator = _operator(
                func,
                args,
                keywords=keywords,
                result=result,
                before=before,
                after=after,
                counters=flop_registry,
            )
            if operator is not None:
                operators.append(operator)
            return result

    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        call = prepare()
        with Recorder():
            call()
    return operators


def _operator(
    func: Any, args: Any, keywords: Any, result: Any, before: list[Any], after: list[Any], counters: Any
) -> TorchOperator | None:
    """Describe what one operator does.

    None for those that run no kernel: views, allocations, questions of shape.
    """
    packet = func.overloadpacket
    name = packet.__name__
    writes_into = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
    old = {_storage(t) for t in before}
    new = [t for t in after if _storage(t) not in old]
    if (
        not after
        or (not new and not writes_into)
        or name.startswith(("empty", "new_empty", "lift_fresh", "detach"))
    ):
        return None
    if name in _SEQUENTIAL:
        raise NotModelledError(f"the time of {name} is not modelled")
    written = new if new else after
    if name.startswith("_scaled_dot_product"):  # whose variant for this machine's processor has no counter
        query, keys = before[0].shape, before[1].shape
        flops = 4.0 * int(query.numel()) * int(keys[-2])
    else:
        flops = float(counters[packet](*args, **keywords, out_val=result)) if packet in counters else 0.0
    reads = {_storage(t): TensorUse(_storage(t), _bytes(t)) for t in before}
    if not writes_into:
        reads = {key: use for key, use in reads.items() if key not in {_storage(t) for t in new}}
    if flops or name in _EXTERNAL:
        kind = "external"
    else:
        kind = "reduction" if name in _REDUCTIONS else "pointwise"
    floating = next((t for t in before if t.is_floating_point()), None)
    largest = max((t.numel() for t in (*before, *written)), default=0)
    return TorchOperator(
        name,
        kind,
        reads=tuple(reads.values()),
        writes=tuple(TensorUse(_storage(t), _bytes(t)) for t in {_storage(t): t for t in written}.values()),
        flops=flops,
        dtype=dtype_name(floating.dtype) if floating is not None else "int32",
        elements=0.0 if flops else float(largest),
        passes=_PASSES.get(name, 1),
        rate=_rate(name, args) if flops else "",
    )


def _rate(name: str, args: Any) -> str:
    """Name the rate of a product or of a convolution, whose arguments are input, weight, bias, stride, padding,
    dilation, transposed, output padding, groups."""
    if name != "convolution":
        return "product"
    if int(args[8]) > 1:
        return "grouped convolution"
    return "convolution 3d" if len(args[3]) == 3 else "convolution"


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _bytes(tensor: Any) -> int:
    """Return the bytes of a tensor that can be read: repeated elements (stride 0) once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= int(size) if stride else 1
    return count * int(tensor.element_size())
