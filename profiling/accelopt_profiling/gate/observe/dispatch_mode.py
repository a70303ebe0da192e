"""See every operator that torch's dispatcher is given, whatever Python or C++ code asked for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from accelopt_profiling.comparison.memory import poison

#: Given an operator, its arguments and a function that runs it, returns its result.
Handler = Callable[[Any, tuple[Any, ...], dict[str, Any], Callable[[], Any]], Any]

#: Operators whose results nobody has written yet, without the parts behind the dot.
_UNINITIALISED = frozenset(
    ["aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided",
     "aten::empty_permuted"]
)  # fmt: skip


def dispatching(handler: Handler) -> AbstractContextManager[Any]:
    """Have ``handler`` run every operator in the body. Nothing happens where torch is not loaded."""
    if "torch" not in sys.modules:
        return nullcontext()
    mode: AbstractContextManager[Any] = _mode_class()(handler)
    return mode


@cache
def _mode_class() -> Any:
    """Return the class of all modes. Once there is one, torch's operators stay as they are."""
    from torch.utils._python_dispatch import TorchDispatchMode

    _keep_operators()

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self, handler: Handler) -> None:
            super().__init__()
            self._handler = handler

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else its first use imports torch's compiler, which takes seconds

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            keywords = kwargs or {}
            return self._handler(func, args, keywords, lambda: func(*args, **keywords))

    return Mode


def _keep_operators() -> None:
    """Have ``torch.ops`` and what is in it return what they have where somebody calls their ``__getattr__``.

    They would make it anew and drop the old one, to which the dispatcher of torch 2.13 keeps a pointer for its modes,
    but no reference: the next call then reads memory that is gone.
    """
    torch = sys.modules["torch"]
    for kind in (type(torch.ops), type(torch.ops.aten), type(torch.ops.aten.mm)):
        kind.__getattr__ = _as_it_is(kind.__getattr__)


def _as_it_is(make: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def get(holder: Any, name: str) -> Any:
        held = vars(holder)
        return held[name] if name in held else make(holder, name)

    return get


def base_name(operator: Any) -> str:
    """Return ``aten::mm`` of ``aten::mm.out``."""
    return str(operator.name()).split(".")[0]


@contextmanager
def poisoned_tensors() -> Iterator[None]:
    """Poison tensors that nobody has written yet, by whichever constructor they come."""
    with dispatching(_poisoning):
        yield


def _poisoning(
    operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], perform: Callable[[], Any]
) -> Any:
    name = base_name(operator)
    if name == "aten::resize_":
        return _resized(args[0], perform)
    result = perform()
    return (
        poison(result) if name in _UNINITIALISED and result.layout == sys.modules["torch"].strided else result
    )


def _resized(tensor: Any, perform: Callable[[], Any]) -> Any:
    """Run a ``resize_`` and poison what it added to the storage."""
    torch = sys.modules["torch"]
    before = tensor.untyped_storage().nbytes()
    result = perform()
    memory = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    memory[before:].fill_(0xFF)  # NaN in every float format
    return result
