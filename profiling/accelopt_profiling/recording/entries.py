"""Choose the call that a recording repeats: the outermost function of the kernel's file on the way to a launch."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.recording.open_calls import OpenCall

#: Functions that drive a kernel rather than offer it.
_DRIVERS = ("test_", "bench", "main", "reference", "get_inputs")


@dataclass(frozen=True)
class Entry:
    """What to call: ``name`` in the kernel file's module, with named arguments, the last by ``keywords``."""

    name: str
    arguments: list[tuple[str, Any]]
    keywords: list[str]


def candidates(stack: list[OpenCall], file: str) -> list[OpenCall]:
    """Order the open calls of ``file``: public functions from the outermost inwards, then private ones."""
    own = [call for call in stack if call.file == file and "__" not in call.name.split(".")[-1][:2]]
    own = [call for call in own if not call.name.split(".")[-1].startswith(_DRIVERS)]
    return sorted(own, key=lambda call: call.name.split(".")[-1].startswith("_"))


def entry_of(call: OpenCall) -> Entry | None:
    """Return how the call is made from outside; None where it needs an object with a state, as most methods do.

    ``forward`` of an autograd function is called through ``apply``, without its context.
    """
    module = module_of(call.file)
    if module is None:
        return None
    arguments, name = call.arguments, call.name
    owner, _, method = name.rpartition(".")
    if owner:
        cls = _attribute(module, owner)
        if not isinstance(cls, type):
            return None
        if _is_autograd(cls):
            if method != "forward":
                return None
            name = f"{owner}.apply"
            if "setup_context" not in vars(cls):
                arguments = arguments[1:]
            if call.keywords:
                return None
        elif not isinstance(inspect.getattr_static(cls, method, None), staticmethod):
            return None
    function = _attribute(module, name)
    if not callable(function) or not _accepts(function, len(arguments), call.keywords):
        return None
    return Entry(name, arguments, call.keywords)


def kernel_entry(kernel: Any, file: str) -> str | None:
    """Return the name under which the kernel file's module has the jitted function ``kernel``: ``softmax_kernel.fn``
    where it is wrapped by an autotuner; None where it has none.
    """
    module = module_of(file)
    name = kernel.fn.__qualname__
    holder = _attribute(module, name) if module is not None else None
    for _ in range(8):
        if holder is kernel:
            return str(name)
        holder, name = getattr(holder, "fn", None), f"{name}.fn"
        if holder is None:
            return None
    return None


def module_of(file: str) -> Any:
    """Return the imported module of a file, or None."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return module
    return None


def _attribute(module: Any, name: str) -> Any:
    value = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _is_autograd(cls: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(cls, torch.autograd.Function)


def _accepts(function: Any, count: int, keywords: list[str]) -> bool:
    """Check that what the module has under the function's name today takes these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    positional = count - len(keywords)
    try:
        signature.bind(*([None] * positional), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True
