"""Call a kernel file with a problem's inputs. The process that runs a candidate needs nothing else of a problem."""

from __future__ import annotations

import copy
import importlib
import inspect
import math
import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.inference.kernel_makers import call_made
from accelopt_profiling.problems.loading.operator_call import call_operator, comparable
from accelopt_profiling.problems.loading.parameters import redraw
from accelopt_profiling.problems.loading.script_run import run_script
from accelopt_profiling.problems.problem import Call, OutputSpec, Problem, ProblemError
from accelopt_profiling.recording.value_encoding import decode

#: So many elements lie between two rows that are apart.
_GAP = 16
#: Draws the weights of a module that is built for a call.
_WEIGHT_SEED = 42


def perform(
    module: ModuleType,
    call: Call,
    arguments: list[Any],
    file: str | None = None,
    built: dict[str, Any] | None = None,
    gradients: bool = False,
    outputs: list[Any] | None = None,
) -> list[Any]:
    """Make the call and return its outputs as a list; see ``call_entry``."""
    return listed(
        call_entry(
            module, call, arguments=arguments, file=file, built=built, gradients=gradients, outputs=outputs
        )
    )


def run_problem(problem: Problem, module: ModuleType, inputs: list[Any]) -> list[Any]:
    """Make the call of ``module`` that ``inputs`` of ``problem`` ask for, and return its raw outputs as a list."""
    call, arguments = problem.call(inputs)
    try:
        return perform(module, call, arguments=arguments, file=problem.file, built=problem.built)
    except ProblemError as error:
        if problem.may_be_empty and error.code == "problem-empty":
            return []
        raise


def listed(result: Any) -> list[Any]:
    """Return what a call returned, as a list of outputs."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def call_entry(
    module: ModuleType,
    call: Call,
    arguments: list[Any],
    file: str | None = None,
    built: dict[str, Any] | None = None,
    gradients: bool = False,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    outputs: list[Any] | None = None,
) -> Any:
    """Make the call and return what it returned.

    This is the one place that makes calls.

    A model is built for the call, unless ``built`` holds one from an earlier call under "model"; a new one is put
    there, and under "initial" whether its parameters could not be drawn anew as the call asks. It is called without
    gradients unless they are asked for. ``around`` is entered for the time that the file's own function runs.
    ``outputs`` are filled by a call that takes its outputs, in place of new ones.

    Raises:
        ProblemError: the kernel file lacks the function, or it returned nothing.
    """
    if call.style == "script":
        with around():
            run_script(module, call.function, call.methods)
        return []  # what it computed stays in its launches
    if call.style == "recorded":
        with around():
            return _repeat(module, call, arguments, file)
    if call.style == "operator":
        with around():
            returned = call_operator(module, call, arguments, {} if built is None else built)
        if not returned:
            raise ProblemError("problem-empty", "The operator's benchmarks returned nothing.", file)
        return returned
    function = _entry(module, call.function)
    if function is None or (call.style != "launch" and not callable(function)):
        raise ProblemError(
            "problem-invalid", f"The kernel file has no function `{call.function}` to call.", file
        )
    if call.style == "model":
        result = _call_model(
            function,
            call,
            arguments=arguments,
            built={} if built is None else built,
            gradients=gradients,
            around=around,
        )
    elif call.style == "destination":
        outputs = [poisoned(spec) for spec in call.outputs] if outputs is None else outputs
        with around():
            function(*arguments, *outputs)
        result = outputs
    else:
        if inspect.isclass(function):
            function = partial(_call_instance, function)
        positional = arguments[: len(arguments) - len(call.keywords)]
        keywords = dict(zip(call.keywords, arguments[len(positional) :], strict=True))
        triton = hasattr(function, "arg_names")
        if call.style == "launch":
            grid = _grid(function, call.grid, positional, keywords)
            function = function[grid if triton else grid({})]
        if call.on_chip:
            if not hasattr(function, "with_tiles"):
                message = (
                    f"`{call.function}` is no NKI kernel of the emulator, which alone takes `on_chip` tiles."
                )
                raise ProblemError("problem-invalid", message, file)
            function = function.with_tiles(call.on_chip)
        with around():
            if call.backward:
                return with_gradients(function, positional, keywords, call.rows_apart)
            result = call_made(function, positional, keywords)
        if call.style == "launch" and triton:
            result = None  # what a launch returns is the compiled kernel
    if result is None:
        message = f"`{call.function}` returned nothing; let it return the outputs."
        raise ProblemError("problem-empty", message, file)
    return result


def _repeat(module: ModuleType, call: Call, storages: list[Any], file: str | None) -> list[Any]:
    """Make the calls of ``call.recorded`` and return the tensors and numbers that they return. All are made; what one
    raised is raised at the end.

    Raises:
        ProblemError: the kernel file lacks an entry, or no call returned anything, as those that write in place.
    """
    outputs: list[Any] = []
    failure: Exception | None = None
    rest = iter(storages)
    for recorded in call.recorded:
        own, grid = list(islice(rest, int(recorded["storages"]))), recorded.get("grid") or []
        one = Call(str(recorded["entry"]), "launch" if grid else "returns")
        one = replace(one, keywords=list(recorded.get("keywords") or []), grid=[str(n) for n in grid])
        try:
            if _entry(module, one.function) is None:
                undefined = f"`{one.function}`, which the kernel file does not define"
                message = f"The recording calls {undefined}; record it again."
                raise ProblemError("problem-invalid", message, file)
            outputs += comparable(call_entry(module, one, decode(recorded["arguments"], own, module), file))
        except Exception as error:  # the kernels of the other calls are still to be measured
            empty = isinstance(error, ProblemError) and error.code == "problem-empty"
            failure = failure or (None if empty else error)
    if failure is not None:
        raise failure
    if not outputs:
        raise ProblemError("problem-empty", "The recorded calls returned nothing.", file)
    return outputs


def _entry(module: ModuleType, name: str) -> Any:
    """Return what an entry names: ``function`` or ``Softmax.apply`` of the kernel file's module, or of the one before a
    colon, which launches the file's kernels; None where there is none."""
    place, _, name = name.rpartition(":")
    entry: Any = importlib.import_module(place) if place else module
    for part in name.split("."):
        entry = getattr(entry, part, None)
    return entry


def _call_instance(cls: type, *arguments: Any, **keywords: Any) -> Any:
    """Build an object with as many arguments as its class requires, and call it with the others. Its weights are the
    same each time."""
    parameters = inspect.signature(cls).parameters.values()
    required = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    seed_everything(_WEIGHT_SEED)
    built = cls(*arguments[:required])
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and hasattr(built, "cuda"):
        built = built.cuda()
    return built(*arguments[required:], **keywords)


def with_gradients(
    function: Any, positional: list[Any], keywords: dict[str, Any], rows_apart: bool = False
) -> list[Any]:
    """Return the outputs of a call, then the gradients of its floating tensors. What arrives at an output's elements
    goes round 0.5, 0.7, ..., 1.5, so that a kernel has to read it; at a single value it is one. With ``rows_apart`` NaN
    lies between its rows.

    Raises:
        ProblemError: no output has a gradient.
    """
    import torch

    def leaf(value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point() and value.itemsize > 1
        return value.detach().requires_grad_() if floating else value

    positional, keywords = [leaf(v) for v in positional], {name: leaf(v) for name, v in keywords.items()}
    with torch.enable_grad():
        result = function(*positional, **keywords)
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    leaves = [v for v in (*positional, *keywords.values()) if isinstance(v, torch.Tensor) and v.requires_grad]
    heads = [v for v in outputs if isinstance(v, torch.Tensor) and v.requires_grad]
    if not heads or not leaves:
        raise ProblemError("problem-invalid", "No output has a gradient; leave out `backward`.")
    gradients = torch.autograd.grad(
        heads, leaves, [_arriving(v, rows_apart) for v in heads], allow_unused=True
    )
    detached = [v.detach() if isinstance(v, torch.Tensor) else v for v in outputs]
    return [*detached, *(g for g in gradients if g is not None)]


def _arriving(output: Any, rows_apart: bool) -> Any:
    """Return the gradient that arrives at an output."""
    import torch

    if output.numel() == 1:
        return torch.ones_like(output)
    steps = torch.arange(output.numel(), device=output.device) % 6
    gradient = (0.5 + 0.2 * steps.to(torch.float64)).to(output.dtype).reshape(output.shape)
    if not rows_apart or not output.ndim:
        return gradient
    return torch.nn.functional.pad(gradient, (0, _GAP), value=float("nan"))[..., : output.shape[-1]]


def _grid(kernel: Any, axes: list[str], positional: list[Any], keywords: dict[str, Any]) -> Any:
    """Return the function that gives a launch's grid from the values of its ``constexpr`` arguments."""
    names = kernel.arg_names if hasattr(kernel, "arg_names") else inspect.signature(kernel).parameters
    arguments = dict(zip(names, positional, strict=False)) | keywords
    helpers = {"cdiv": lambda a, b: -(-a // b), "next_power_of_2": lambda n: 1 << max(0, n - 1).bit_length()}

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        return tuple(int(eval(axis, {**helpers, **arguments, **meta})) for axis in axes)  # noqa: S307  (the problem's text)

    return grid


def _call_model(
    cls: Any, call: Call, arguments: list[Any], built: dict[str, Any], gradients: bool,
    around: Callable[[], AbstractContextManager[None]],
) -> Any:  # fmt: skip
    import torch

    construct, inputs = arguments
    if "model" not in built:
        seed_everything(call.seed)
        model = cls(*construct)
        if call.parameters:
            redrawn = redraw(model, call.parameters, call.buffers, call.parameter_seed)
            built["initial"] = not redrawn
        built["model"] = model.cuda() if torch.cuda.is_available() else model
    model = built["model"]
    if torch.cuda.is_available():
        inputs = [to_device(v) for v in inputs]
    seed_everything(call.seed)
    with torch.set_grad_enabled(gradients), around():
        return model(*inputs)


def to_device(value: Any) -> Any:
    """Move a tensor to the GPU (or its stand-in). Return anything else as it is."""
    import torch

    return value.cuda() if isinstance(value, torch.Tensor) else value


def poisoned(spec: OutputSpec) -> Any:
    """Return a tensor filled so that unwritten elements show: with NaN, or the largest value of an integer dtype."""
    import torch

    dtype = getattr(torch, spec.dtype)
    # Under the stand-in for a missing GPU "cuda" is this machine's memory; on a GPU it is the device.
    device = "cuda" if torch.cuda.is_available() and "triton" in sys.modules else "cpu"
    if dtype == torch.bool:
        return torch.ones(spec.shape, dtype=dtype, device=device)
    if dtype.is_floating_point:
        return torch.full(spec.shape, float("nan"), device=device).to(dtype)
    return torch.full(spec.shape, torch.iinfo(dtype).max, dtype=dtype, device=device)


def check_answer(outputs: list[Any]) -> None:
    """Check that there is something in a reference's answer to its own inputs that a kernel can be compared with.

    Raises:
        ProblemError: its arrays hold no element, or nothing but NaN.
    """
    arrays = [v for v in outputs if hasattr(v, "dtype") and hasattr(v, "shape")]
    if len(arrays) < len(outputs):  # numbers, and what lists hold
        return
    if not any(math.prod(v.shape) for v in arrays):
        raise ProblemError("problem-invalid", "The reference's outputs hold no element to compare.")
    if all(bool((v != v).all()) for v in arrays if math.prod(v.shape)):
        raise ProblemError("problem-invalid", "The reference's outputs hold NaN and nothing else.")


def seed_everything(seed: int) -> None:
    """Seed ``random``, and NumPy and torch where they are loaded. ``seed`` is below 2**63."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def copied(value: Any) -> Any:
    """Return a copy with its own memory, so that a call cannot change what was recorded."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return copy.deepcopy(value)
