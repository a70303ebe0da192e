"""Keep the stand-in for a GPU in force where torch calls Python from inside an operator.

While torch runs an operator, the mode that redirects devices is off: a backward function, or an operator's
implementation in Python, would meet a build without CUDA there.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

#: Where ``torch.library.custom_op`` makes the functions that it registers for a user's.
_CUSTOM_OPERATORS = "torch._library.custom_ops"


def _within(mode: TorchFunctionMode, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, run with ``mode`` in force."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if any(m is mode for m in _get_current_function_mode_stack()):
            return function(*args, **kwargs)
        with mode:
            return function(*args, **kwargs)

    return run


@contextlib.contextmanager
def backward_on_gpu(mode: TorchFunctionMode) -> Iterator[None]:
    """Let the backward functions of user code see the stand-in."""
    apply = BackwardCFunction.apply

    def applied(node: Any, *args: Any) -> Any:
        return _within(mode, apply)(node, *args)

    BackwardCFunction.apply = applied
    try:
        yield
    finally:
        BackwardCFunction.apply = apply


#: Modes in force, the innermost last. An operator outlives the session in which its module was imported.
_modes: list[TorchFunctionMode] = []


def _within_current(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, run with the mode that is in force when it is called."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return (_within(_modes[-1], function) if _modes else function)(*args, **kwargs)

    return run


@contextlib.contextmanager
def operators_on_cpu(mode: TorchFunctionMode) -> Iterator[None]:
    """Let what a library registers for CUDA answer for the stand-in's tensors, which torch takes for those of a CPU,
    and let it see the stand-in. Torch's own operators have their implementations for the CPU.
    """
    register = torch.library.Library.impl

    def impl(library: Any, name: Any, function: Any, key: str = "", **options: Any) -> Any:
        where = str(getattr(function, "__module__", ""))
        if callable(function) and (not where.startswith("torch.") or where == _CUSTOM_OPERATORS):
            function, key = _within_current(function), key.replace("CUDA", "CPU")
        return register(library, name, function, key, **options)

    torch.library.Library.impl = impl
    _modes.append(mode)
    try:
        yield
    finally:
        _modes.pop()
        torch.library.Library.impl = register
