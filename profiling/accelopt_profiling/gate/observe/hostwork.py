"""Count what host code, or a reference, computes with NumPy or torch, by kinds of work."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from accelopt_profiling.comparison.tolerance import coarsest
from accelopt_profiling.gate.observe.dispatch_mode import base_name, dispatching
from accelopt_profiling.problems.problem import Problem

Array = np.ndarray[Any, Any]

#: Kind of work by the name of an operation of torch (aten) or NumPy. What is neither here nor in
#: ``light_operations.json`` is a kind of its own, and heavy. "Python" is what hands elements to Python code: it may do
#: anything with them.
_KINDS = {
    "matmul": "mm bmm addmm baddbmm addbmm addmv mv dot vdot matmul linear einsum tensordot inner outer addr ger "
              "_addmm_activation _scaled_mm _int_mm mkldnn_linear",
    "convolution": "convolution conv1d conv2d conv3d convolve correlate _convolution mkldnn_convolution "
                   "convolution_overrideable _slow_conv2d_forward slow_conv3d_forward _conv_depthwise2d thnn_conv2d",
    "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention _scaled_dot_product_attention_math "
                 "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
                 "_scaled_dot_product_fused_attention_overrideable",
    "softmax": "_softmax softmax _log_softmax log_softmax logsumexp logaddexp _safe_softmax _masked_softmax",
    "norm": "native_layer_norm layer_norm native_group_norm native_batch_norm _native_batch_norm_legit batch_norm "
            "rms_norm _fused_rms_norm linalg_vector_norm norm instance_norm renorm "
            "_native_batch_norm_legit_no_training",
    "activation": "gelu silu relu elu selu leaky_relu softplus mish hardswish hardsigmoid prelu _prelu_kernel glu "
                  "threshold celu log_sigmoid_forward hardtanh hardshrink softshrink rrelu_with_noise",
    "loss": "nll_loss_forward nll_loss2d_forward cross_entropy mse_loss "
            "kl_div smooth_l1_loss binary_cross_entropy l1_loss huber_loss",
    "pooling": "max_pool2d_with_indices avg_pool2d avg_pool1d _adaptive_avg_pool2d max_pool2d avg_pool3d",
    "scan": "cumsum cumprod logcumsumexp cummax cummin",
    "order": "sort topk argsort kthvalue median unique searchsorted",
    "exp": "exp exp2 expm1", "log": "log log2 log10 log1p", "erf": "erf erfc", "tanh": "tanh", "sigmoid": "sigmoid",
    "sqrt": "sqrt rsqrt", "power": "pow square power float_power reciprocal",
    "trigonometric": "sin cos tan atan arctan",
    "sum": "sum mean nansum nanmean trace bincount",
    "scatter": "scatter_add index_add scatter_reduce index_reduce",
    "variance": "var var_mean std std_mean", "product": "prod",
    "extreme": "amax amin max min maximum minimum aminmax clamp clamp_min clamp_max clip fmax fmin",
    "index of extreme": "argmax argmin", "choice": "where",
    "distance": "cdist _cdist_forward _euclidean_dist _pdist_forward",
    "Python": "tolist tobytes nditer apply_along_axis apply_over_axes vectorize piecewise",
    "add": "add sub subtract rsub", "multiply": "mul div multiply divide true_divide truediv addcmul addcdiv lerp",
}  # fmt: skip
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
#: Work that is never mere preparation or the end of a reduction.
HEAVY = frozenset(
    ["matmul", "convolution", "attention", "softmax", "norm", "activation", "loss", "pooling", "scan", "order", "exp",
     "erf", "tanh", "sigmoid", "log", "variance", "distance", "scatter", "Python"]
)  # fmt: skip
#: First part of the kind of work that nobody knows.
UNKNOWN = "unknown: "
#: Work beside which all other work of a problem is little.
DOMINANT = frozenset(["matmul", "convolution", "attention"])
#: Work that is exact in any precision: its results' dtypes say nothing about the others'.
_EXACT = frozenset(["order", "extreme", "index of extreme", "choice", "Python", "pooling"])
#: The simpler work that a composite stands for.
_CONTAINS = {
    "softmax": {"exp", "extreme", "add", "sum", "multiply", "log"},
    "norm": {"sum", "variance", "add", "multiply", "sqrt", "power"},
    "attention": {"matmul", "softmax", "exp", "extreme", "add", "sum", "multiply", "choice"},
    "activation": {"exp", "erf", "tanh", "sigmoid", "multiply", "add", "power", "extreme", "choice", "log"},
    "loss": {"softmax", "exp", "log", "sum", "extreme", "add", "multiply", "power"},
    "variance": {"sum", "add", "power", "multiply"},
    "distance": {"matmul", "sum", "add", "power", "multiply", "sqrt"},
    "sigmoid": {"exp", "add", "multiply"}, "tanh": {"exp", "add", "multiply"},
    "scatter": {"sum"}, "exp": {"power"}, "power": {"multiply"}, "multiply": {"power"}, "sqrt": {"power"},
}  # fmt: skip
#: A composite is done by whoever does all of one of these sets of parts.
_MADE_OF = {
    "softmax": ({"exp", "sum", "multiply"},), "norm": ({"sum", "sqrt", "multiply"},),
    "attention": ({"matmul", "softmax"},), "activation": ({"exp"}, {"erf"}, {"tanh"}, {"sigmoid"}),
    "loss": ({"softmax", "sum"}, {"log", "sum"}), "variance": ({"sum", "power"},),
    "distance": ({"matmul", "sum"}, {"power", "sum"}), "scatter": ({"sum"},),
}  # fmt: skip

#: Operations of torch that write to given places, and add up what meets there when they are told to.
_PLACED = ("index_put", "index_put_impl", "put", "scatter")

#: Functions of NumPy that return an array of the plain kind whatever they are given.
_MAKE_PLAIN = ("asarray", "array", "ascontiguousarray", "asfortranarray", "copy", "require")


class HostWork:
    """Counts elements per kind of work, in the body of ``counting``: ``elements`` of the largest single operation,
    ``total`` of all together; ``largest`` is that of any kind that makes other values than it takes, light ones too;
    ``dtypes`` are those of inexact results. What is done in the body of ``pausing`` is not
    the host code's.

    ``source`` is the folder of the host code: where it makes plain arrays of ``marked`` ones they stay marked. Give it
    before that code is loaded. Nothing is marked while ``marking`` is off.
    """

    def __init__(self, source: str = "") -> None:
        self.elements: dict[str, int] = {}
        self.total: dict[str, int] = {}
        self.largest = 0
        self.dtypes: set[str] = set()
        self.marking = True
        self._paused = self._in_torch = False
        self._launches = 0
        if source:
            numpy: Any = np
            for name in _MAKE_PLAIN:
                setattr(numpy, name, self._marking(getattr(np, name), source))

    def _marking(self, real: Any, source: str) -> Any:
        frame = sys._getframe

        @functools.wraps(real)
        def make(*args: Any, **kwargs: Any) -> Any:
            result = real(*args, **kwargs)
            counts = args and (isinstance(args[0], _Counted) or self.of_tensor(args[0]))
            return (
                self.marked(result) if counts and frame(1).f_code.co_filename.startswith(source) else result
            )

        return make

    def of_tensor(self, value: Any) -> bool:
        """Check whether it is a tensor whose numbers host code takes to NumPy while it is being counted."""
        return self._in_torch and not self._paused and isinstance(value, sys.modules["torch"].Tensor)

    def _dispatched(
        self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], perform: Callable[[], Any]
    ) -> Any:
        """Run one operator of torch's dispatcher and count it.

        One of a library may launch kernels: it is the sum of what these do.
        """
        launches = self._launches
        result = perform()
        library, _, name = base_name(operator).partition("::")
        if library in ("aten", "prims") or self._launches == launches:
            outputs = result if isinstance(result, (tuple, list)) else [result]
            sizes = [v.numel() for v in [*args, *kwargs.values(), *outputs] if hasattr(v, "numel")]
            sizes += [
                v.numel() for a in args if isinstance(a, (list, tuple)) for v in a if hasattr(v, "numel")
            ]
            self.add(
                _scattering(operator, name, args, kwargs), max(sizes, default=0), next(iter(outputs), None)
            )
        return result

    @contextmanager
    def pausing(self) -> Iterator[None]:
        self._launches += 1
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def add(self, name: str, size: int, result: Any = None) -> None:
        """Count one operation; ``result`` is what it returned."""
        if self._paused:
            return
        kind = _kind(name)
        if kind is not None or name.strip("_") in _light_values():
            self.largest = max(self.largest, size)
        if kind is not None:
            self.elements[kind] = max(self.elements.get(kind, 0), size)
            self.total[kind] = self.total.get(kind, 0) + size
            if kind not in _EXACT and hasattr(result, "dtype"):
                self.dtypes.add(str(result.dtype).removeprefix("torch."))

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what torch computes in the body. NumPy's work is counted on ``marked`` arrays."""
        if "torch" not in sys.modules:
            yield
            return
        self._in_torch = True
        try:
            with _torch_mode(self), dispatching(self._dispatched):
                yield
        finally:
            self._in_torch = False

    def marked(self, value: Any) -> Any:
        """NumPy arrays as arrays that count what is computed with them. Anything else as it is."""
        if type(value) in (list, tuple):
            return type(value)(self.marked(v) for v in value)
        if type(value) is np.ndarray and self.marking:
            counted = value.view(_Counted)
            counted.work = self
            return counted
        return value


def _scattering(operator: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the name of an operation of torch: writes to given places that add up what meets there, as gradients of
    reads by index do, are not those that only move.
    """
    reduces = "reduce" in str(operator.name()).partition(".")[2]
    if name.strip("_").startswith(("index_put", "put")):
        number = next(
            (n for n, a in enumerate(operator._schema.arguments) if a.name == "accumulate"), len(args)
        )
        reduces = bool(kwargs.get("accumulate", args[number] if number < len(args) else False))
    return "index_add" if reduces and name.strip("_") in _PLACED else name


@cache
def _light() -> frozenset[str]:
    text = resources.files(__package__).joinpath("light_operations.json").read_text(encoding="utf-8")
    lists = json.loads(text)
    return frozenset([*lists["torch"].split(), *lists["numpy"].split()])


@cache
def _light_values() -> frozenset[str]:
    text = resources.files(__package__).joinpath("light_operations.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)["values"].split())


def _kind(name: str) -> str | None:
    """Return the kind of work of an operation. None for what only makes, moves or compares data."""
    plain = name.strip("_")
    spellings = (name, plain, plain[1:] if plain[:1] in "ri" else plain, plain.removeprefix("foreach_"))
    kind = next((_KIND_OF[spelling] for spelling in spellings if spelling in _KIND_OF), None)
    if kind is not None or not name:
        return kind
    return None if any(spelling in _light() for spelling in spellings) else f"{UNKNOWN}{name}"


def is_heavy(kind: str) -> bool:
    """Check whether a kind of work is never mere preparation or the end of a reduction."""
    return kind in HEAVY or kind.startswith(UNKNOWN)


class _Counted(np.ndarray[Any, Any]):
    work: HostWork | None = None

    def __array_finalize__(self, source: Any) -> None:
        self.work = getattr(source, "work", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        sizes = [v.size for v in inputs if isinstance(v, np.ndarray)]
        if getattr(np, ufunc.__name__, None) is not ufunc:  # made of a Python function
            self._tell("vectorize", max(sizes, default=1))
        plain = [_plain(v) for v in inputs]
        if options.get("out") is not None:
            options["out"] = tuple(_plain(v) for v in options["out"])
        result = getattr(ufunc, method)(*plain, **options)
        name = "sum" if method == "reduce" and ufunc.__name__ == "add" else ufunc.__name__
        self._tell(name, max(sizes, default=1), result)
        return self._mark(result)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        sizes = [v.size for v in args if isinstance(v, np.ndarray)]
        plain = {k: _plain(v) for k, v in options.items()}
        result = function(*[_plain(v) for v in args], **plain)
        self._tell(getattr(function, "__name__", ""), max(sizes, default=self.size), result)
        return self._mark(result)

    def tolist(self) -> Any:
        self._tell("tolist", self.size)
        return super().tolist()

    def tobytes(self, *args: Any, **options: Any) -> bytes:
        self._tell("tobytes", self.size)
        return super().tobytes(*args, **options)

    @property
    def flat(self) -> Any:
        self._tell("tolist", self.size)
        return super().flat

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 1:
            self._tell("tolist", self.size)
        return super().__iter__()

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        if not isinstance(item, np.ndarray):
            self._tell("tolist", 1)
        return item

    def _tell(self, name: str, size: int, result: Any = None) -> None:
        if self.work is not None:
            self.work.add(name, size, result)

    def _mark(self, value: Any) -> Any:
        return self.work.marked(value) if self.work is not None else value


def _plain(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_plain(v) for v in value)
    return value.view(np.ndarray) if isinstance(value, _Counted) else value


def _torch_mode(work: HostWork) -> Any:
    """Sees where tensors are handed to NumPy or Python. Operators are counted in the dispatcher."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Counting(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "").split(".")[0]
            if _KIND_OF.get(name) == "Python":
                work.add(name, max((t.numel() for t in args if isinstance(t, torch.Tensor)), default=0))
            leaves_torch = name in ("numpy", "__array__") and work.of_tensor(args[0])
            return work.marked(result) if leaves_torch else result

    return Counting()


def computing_dtype(problem: Problem, inputs: list[Any], work: HostWork) -> str | None:
    """Return the coarsest float dtype in which the reference computes on ``inputs``, whatever it returns;
    None where its arithmetic cannot be observed. ``work`` was given the problem's folder before the problem
    was loaded."""
    before, work.marking = work.marking, True
    work.dtypes.clear()
    try:
        count_work(problem, inputs, work)
    finally:
        work.marking = before
    return coarsest(["float64" if d == "complex128" else d for d in work.dtypes])


def covers(done: dict[str, int], required: dict[str, int]) -> bool:
    """Check whether the work ``done`` covers every kind of work in ``required``, on as many elements (a half at
    least). What Python or an unknown operation did with elements may be any kind.
    """
    whole: dict[str, int] = {}
    waiting = list(done.items())
    while waiting:
        kind, size = waiting.pop()
        if whole.get(kind, -1) < size:
            whole[kind] = size
            waiting += [(part, size) for part in _CONTAINS.get(kind, ())]
    for composite, sets in _MADE_OF.items():
        sizes = [min(whole[part] for part in parts) for parts in sets if parts <= set(whole)]
        whole[composite] = max([*sizes, whole.get(composite, -1)])
    free = max((n for kind, n in whole.items() if kind == "Python" or kind.startswith(UNKNOWN)), default=-1)
    return bool(required) and all(
        2 * max(whole.get(kind, -1), free) >= size for kind, size in required.items()
    )


def count_work(problem: Problem, inputs: list[Any], work: HostWork) -> list[Any]:
    """Run the reference on ``inputs``, which it may change, add what it computes to ``work``, and return its outputs.

    It need not run on arrays that count, or not at all; then less is known.
    """
    for marked in (work.marked(inputs), inputs):
        try:
            with work.counting():
                outputs = problem.reference(marked)
            return [] if outputs is None else list(outputs)
        except Exception:  # whatever is wrong with it is said where its answers are asked for
            continue
    return []
