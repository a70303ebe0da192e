"""Postpone a kernel's operations until an address, a mask or a branch needs their values.

What no store's address and mask depend on is never computed: a run of this builder finds where programs write, at a
small part of what their values cost. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import triton.language as tl

from accelopt_profiling.triton.interpreter.arithmetic import InstructionResults
from accelopt_profiling.triton.interpreter.lockstep import ELEMENTWISE, SHAPING, Varying, varies
from accelopt_profiling.triton.interpreter.memory_bounds import Region
from accelopt_profiling.triton.interpreter.memory_operations import MemoryBuilder
from accelopt_profiling.triton_adapter.interpreter import TensorHandle

Handle = Any


class UnknownValueError(Exception):
    """An address, a mask or a branch depends on a value that only a run in order has: an atomic operation's result."""


class Deferred(TensorHandle):  # type: ignore[misc]
    """A handle whose value is computed when it is first looked at.

    ``__class__`` is the type of that value, so that code which asks whether it differs among programs gets the answer.
    """

    def __init__(self, compute: Callable[[], Any], sources: Iterable[Any], loaded: bool = False) -> None:
        self._compute, self._sources = compute, tuple(_deferred(sources))
        self._loaded: bool = loaded or any(source._loaded for source in self._sources)
        self._made: Any = None

    def value(self) -> Handle:
        """Compute the value, its sources first: without recursion, because chains are as long as loops."""
        waiting = [self]
        while waiting:
            node = waiting[-1]
            missing = [source for source in node._sources if source._made is None]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if node._made is None:
                node._made = forced(node._compute())
                node._compute, node._sources = _nothing, ()
        return self._made

    __class__ = property(lambda self: type(self.value()))
    data = property(lambda self: self.value().data)
    dtype = property(lambda self: self.value().dtype)
    attr = property(lambda self: self.value().attr)

    def clone(self) -> Handle:
        return self.value().clone()


def _always() -> Handle:
    return TensorHandle(np.ones(1, np.bool_), tl.int1)


def _nothing() -> None:
    return None


def forced(value: Any) -> Any:
    """Return ``value`` with every deferred handle in it replaced by what it stands for."""
    if type(value) is Deferred:
        return value.value()
    if type(value) in (list, tuple):
        return type(value)(forced(v) for v in value)
    return value


def _deferred(values: Iterable[Any]) -> Iterable[Deferred]:
    for value in values:
        if type(value) is Deferred:
            yield value
        elif type(value) in (list, tuple):
            yield from _deferred(value)


class WriteListener(Protocol):
    """Is told what programs write: byte addresses, and the number of the program for each."""

    def write(self, region: Region, addresses: Any, programs: Any, itemsize: int) -> None: ...


class DeferringBuilder(MemoryBuilder):
    """Defers every operation that gives a value.

    Stores and atomic operations compute addresses and masks, which are checked and noted in ``footprint``, and write
    nothing. Loads whose addresses and masks come from no other load are checked too, for as many lanes as ``reads``
    says.
    """

    footprint: WriteListener | None = None
    reads = 0

    def create_load(self, ptr: Handle, *rest: Any) -> Handle:
        return self.create_masked_load(ptr, _always(), None, *rest)

    def create_masked_load(
        self, ptrs: Handle, mask: Handle, other: Handle | None, *_: Any, **__: Any
    ) -> Handle:
        load = Deferred(
            lambda: MemoryBuilder.create_masked_load(self, *forced((ptrs, mask, other))),
            [ptrs, mask, other],
            loaded=True,
        )
        if self.reads > 0 and not any(source._loaded for source in _deferred([ptrs, mask])):
            pointers, which = forced(ptrs), forced(mask)
            if varies([pointers, which]):
                pointers, which = self._side_by_side(pointers, which)
            self.reads -= pointers.data.size
            self._check("load", pointers, which)
        return load

    def create_masked_store(self, ptrs: Handle, value: Handle, mask: Handle, *_: Any) -> None:
        self._touch("store", ptrs, mask)

    def create_store(self, ptr: Handle, val: Handle, *_: Any) -> None:
        self._touch("store", ptr, _always())

    def create_atomic_rmw(
        self, op: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any
    ) -> Handle:
        self._touch("atomic", ptr, mask)
        return Deferred(_unknown, ())

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
        self._touch("exchange", ptr, _always())
        return Deferred(_unknown, ())

    def _touch(self, kind: str, pointers: Handle, mask: Handle) -> None:
        pointers, mask = forced(pointers), forced(mask)
        if varies([pointers, mask]):
            pointers, mask = self._side_by_side(pointers, mask)
        active, region = self._access(kind, pointers, mask)
        if self.footprint is not None and region is not None:
            itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
            lanes = np.array([self.grid_idx]) if self.lanes is None else self.lanes
            x, y, _ = self.grid_dim
            numbers = lanes @ np.array([1, x, x * y]) + 1
            shape = pointers.data.shape
            if isinstance(pointers, Varying):
                writers = [numbers.reshape(-1, *[1] * (len(shape) - 1))]
            else:  # all of them: two are enough to show it
                writers = [numbers[:1], *([numbers[-1:]] if len(numbers) > 1 else [])]
            for writer in writers:
                which = np.broadcast_to(writer, shape)[active]
                self.footprint.write(region, pointers.data[active], which, itemsize)

    def create_split(self, val: Handle) -> tuple[Handle, Handle]:
        def part(number: int) -> Handle:
            return Deferred(lambda: MemoryBuilder.create_split(self, forced(val))[number], [val])

        return part(0), part(1)

    def create_inline_asm(
        self, text: str, constraints: str, arguments: list[Handle], types: list[Any], *rest: Any
    ) -> InstructionResults:
        def part(number: int) -> Handle:
            def compute() -> Handle:
                results = MemoryBuilder.create_inline_asm(
                    self, text, constraints, forced(arguments), types, *rest
                )
                return results.get_result(number)

            return Deferred(compute, arguments)

        return InstructionResults([part(number) for number in range(len(types))])

    def tensors(self, compute: Callable[[], Any], value: Any, shape: list[int]) -> Any:
        inputs = value if isinstance(value, tuple) else (value,)
        outputs: list[Any] = []

        def part(number: int) -> Handle:
            def of_all() -> Handle:
                if not outputs:
                    results = compute()
                    outputs.extend(results if isinstance(results, tuple) else (results,))
                return outputs[number].handle

            return Deferred(of_all, [tensor.handle for tensor in inputs])

        kinds = [tl.block_type(t.dtype.scalar, shape) if shape else t.dtype.scalar for t in inputs]
        results = tuple(tl.tensor(part(number), kind) for number, kind in enumerate(kinds))
        return results if isinstance(value, tuple) else results[0]

    checks_hints = False  #: values are looked at where something needs them

    def create_print(self, *arguments: Any) -> None:
        pass

    def create_assert(self, condition: Any, message: Any) -> None:
        pass

    def create_assume(self, condition: Any) -> None:
        pass


def _unknown() -> Any:
    raise UnknownValueError("the result of an atomic operation")


def _deferring(name: str) -> Callable[..., Handle]:
    inherited = getattr(MemoryBuilder, name)

    def operation(self: DeferringBuilder, *arguments: Any, **options: Any) -> Handle:
        self.meter.spend(0)
        return Deferred(lambda: inherited(self, *forced(arguments), **forced_options(options)), arguments)

    operation.__name__ = name
    return operation


def forced_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: forced(value) for name, value in options.items()}


def _at_once(name: str) -> Callable[..., Any]:
    inherited = getattr(MemoryBuilder, name)

    def operation(self: DeferringBuilder, *arguments: Any, **options: Any) -> Any:
        return inherited(self, *forced(arguments), **forced_options(options))

    operation.__name__ = name
    return operation


#: Operations that give one value and change nothing, besides those on single elements and on shapes.
_GIVING = (
    "create_splat", "create_unsplat", "create_gather", "create_join", "create_cat", "create_dot",
    "create_tensor_pointer_load", "create_descriptor_load", "create_descriptor_gather",
    "create_extern_elementwise", "create_histogram",
)  # fmt: skip

#: Operations that end in a store, whose value is not needed.
_STORING = ("create_tensor_pointer_store", "create_descriptor_store")

for _name in dir(MemoryBuilder):
    if _name in _GIVING or _name in SHAPING or _name.removeprefix("create_") in ELEMENTWISE:
        setattr(DeferringBuilder, _name, _deferring(_name))
    elif _name.startswith("create_") and _name not in (*vars(DeferringBuilder), *_STORING):
        setattr(DeferringBuilder, _name, _at_once(_name))
