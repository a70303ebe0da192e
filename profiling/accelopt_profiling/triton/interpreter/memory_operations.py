"""The memory operations of a kernel on the CPU tensors that stand in for device memory, and a log of its stores, so
that they can be undone or compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import triton.language as tl

from accelopt_profiling.triton.interpreter.arithmetic import packed_as, wide
from accelopt_profiling.triton.interpreter.compiler_hints import FalseHintError
from accelopt_profiling.triton.interpreter.counting import source_line
from accelopt_profiling.triton.interpreter.lockstep import (
    LockstepBuilder,
    LockstepError,
    Varying,
    spread,
    varies,
)
from accelopt_profiling.triton.interpreter.loops import LoopLimit
from accelopt_profiling.triton.interpreter.memory_bounds import LaunchMemory, Region
from accelopt_profiling.triton_adapter.interpreter import TensorHandle, enums, memory, numpy_dtype

Handle = Any

#: An instruction of PTX (ISA 8.7, section 9.7.13.1) at which the lanes of a program wait for one another.
_BARRIER = "bar."


class AccessListener(Protocol):
    """Is told of the accesses that it follows."""

    def follows(self, kind: str, region: Region) -> bool: ...

    def access(self, kind: str, region: Region, addresses: Any, itemsize: int, active: Any = None) -> None:
        """Take byte ``addresses``, those of the lanes that are ``active`` in an access's block."""

    def barrier(self) -> None:
        """Take note that the lanes of a program waited for one another."""

    def atomic_order(self, acquires: bool, releases: bool) -> None:
        """Take note of how the atomic operation that comes orders the accesses of several programs."""

    @property
    def asks_what_changes(self) -> bool: ...

    def changes(self, region: Region, before: Any, after: Any) -> None:
        """Take the values that the active lanes of a store overwrite, and those that they store."""


class MemoryBuilder(LockstepBuilder):
    """Adds the memory operations: every access is checked against its tensor, counted, and noted by the coverage.

    With a ``log`` stores can be undone, and operations that cannot be undone raise ``LockstepError``. ``widest`` is the
    number of lanes of the largest access so far. Where ``loops`` lets only some iterations of long loops run, what they
    compute is wrong, and only the counts are of use.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory = LaunchMemory([])
        self.coverage: AccessListener | None = None
        self.file = ""
        self.log: StoreLog | None = None
        self.widest = 0
        self.loops = LoopLimit()

    def _access(self, kind: str, pointers: Handle, mask: Handle) -> tuple[Any, Region | None]:
        """Check, count and note an access.

        Return the mask of the lanes that really access memory, and their region.
        """
        addresses = pointers.data
        self.widest = max(self.widest, addresses.size)
        active, region, itemsize = self._check(kind, pointers, mask)
        if self.counter is not None and self.counter.enabled:
            self.counter.memory(kind, region, addresses[active], addresses.size, itemsize)
        if self.coverage is not None and region is not None and self.coverage.follows(kind, region):
            self.coverage.access(kind, region, addresses[active], itemsize, active)
        return active, region

    def _check(self, kind: str, pointers: Handle, mask: Handle) -> tuple[Any, Region | None, int]:
        """Report the lanes that leave their tensor.

        Return the mask of the others, their region and the bytes of an element.
        """
        addresses = pointers.data
        active = np.broadcast_to(mask.data, addresses.shape).astype(np.bool_, copy=False)
        self.meter.spend(4 * addresses.size)
        itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        region = self.memory.locate(addresses, active, pointers.attr.get("origin"))
        if region is not None or active.any():
            allowed = self.memory.allowed(addresses, active, itemsize, region)
            if allowed is not None:
                bad = active & ~allowed
                if bad.any() and not (self.loops.until and self.loops.sampled):
                    if self.log is not None:
                        raise LockstepError("an access out of bounds")
                    line = source_line(self.file)
                    self.memory.report(kind, line, region, self._program(pointers, bad), addresses, bad)
                active = active & allowed
        return active, region, itemsize

    @property
    def checks_hints(self) -> bool:
        """Tell that values are those that a device would have: nothing is counted or left out."""
        return self.counter is None and self.loops.until is None

    def create_assume(self, condition: Handle) -> None:
        if self.checks_hints and not condition:
            raise FalseHintError("A hint to the compiler does not hold: tl.assume.")

    def barrier(self) -> None:
        """Note that the lanes of a program wait for one another here."""
        if self.coverage is not None:
            self.coverage.barrier()

    def create_barrier(self) -> None:
        super().create_barrier()
        self.barrier()

    def create_grid_dependency_wait(self) -> None:
        """Programs of launches that depend on each other run in turn here. 3.9 has operations for it."""

    create_grid_dependency_launch_dependents = create_grid_dependency_wait

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any, max_imprecise: Any) -> Handle:
        self.barrier()  # its operands pass through memory that a program's lanes share
        return super().create_dot(a, b, d, input_precision, max_imprecise)

    def create_inline_asm(self, text: str, *rest: Any) -> Any:
        if _BARRIER in text:
            self.barrier()
        return super().create_inline_asm(text, *rest)

    def _program(self, pointers: Handle, bad: Any) -> tuple[int, int, int]:
        """Return the ids of the first program with a ``bad`` lane."""
        if self.lanes is None or not isinstance(pointers, Varying):
            x, y, z = self.grid_idx
        else:
            x, y, z = self.lanes[int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))]
        return int(x), int(y), int(z)

    def create_masked_load(
        self, ptrs: Handle, mask: Handle, other: Handle | None, *_: Any, **__: Any
    ) -> Handle:
        if varies([ptrs, mask, other]):
            ptrs, mask, other = self._side_by_side(ptrs, mask, other)
        active, region = self._access("load", ptrs, mask)
        dtype = ptrs.get_element_ty()
        kind = numpy_dtype(dtype)
        shape = ptrs.data.shape
        filler = (
            np.zeros(shape, kind) if other is None else np.broadcast_to(_as_kind(other.data, kind), shape)
        )
        loaded = filler if region is None else region.load(ptrs.data, active, filler)
        return (Varying if varies([ptrs]) else TensorHandle)(loaded, dtype)

    def _side_by_side(self, pointers: Handle, *others: Any) -> list[Handle]:
        """Broadcast pointers and other handles to one shape, with the axis of programs in front.

        A handle with as many axes as pointers that differ was computed from them by Triton's own code, and so were the
        masks of blocks, which are plain arrays.
        """
        handles = [pointers]
        for other in others:
            if other is not None:
                plain = isinstance(other, np.ndarray)
                data, dtype = (other, tl.int1) if plain else (other.data, other.dtype)
                is_computed = isinstance(pointers, Varying) and data.ndim == pointers.data.ndim
                kind = Varying if is_computed or isinstance(other, Varying) else TensorHandle
                handles.append(kind(data, dtype))
        data = spread(handles)
        shape = np.broadcast_shapes(*(array.shape for array in data))
        first = Varying(np.broadcast_to(data[0], shape), pointers.dtype, pointers.attr)
        rest = iter(zip(data[1:], handles[1:], strict=True))
        return [first, *(None if o is None else Varying((n := next(rest))[0], n[1].dtype) for o in others)]

    def create_masked_store(self, ptrs: Handle, value: Handle, mask: Handle, *_: Any) -> None:
        if varies([ptrs, value, mask]):
            ptrs, value, mask = self._side_by_side(ptrs, value, mask)
        active, region = self._access("store", ptrs, mask)
        if region is None:
            return
        kind = numpy_dtype(ptrs.get_element_ty())
        data = _as_kind(np.broadcast_to(value.data, ptrs.data.shape), kind)
        if self.coverage is not None and self.coverage.asks_what_changes:
            values = (region.load(ptrs.data, active, data), data)
            before, after = (wide(TensorHandle(v, ptrs.get_element_ty()))[active] for v in values)
            self.coverage.changes(region, before, after)
        if self.log is not None:
            self.log.before(region, ptrs.data, data, active, isinstance(ptrs, Varying))
        region.store(ptrs.data, data, active)

    def tensors(self, compute: Callable[[], Any], value: Any, shape: list[int]) -> Any:
        """Return what ``compute`` makes of ``value``, a tensor or a tuple of tensors: as many of ``shape``."""
        return compute()

    def create_print(self, *arguments: Any) -> None:
        self._not_twice("a print")
        super().create_print(*arguments)

    def _not_twice(self, what: str) -> None:
        if self.log is not None:
            raise LockstepError(what)

    def create_atomic_rmw(
        self, op: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any
    ) -> Handle:
        self._not_twice("an atomic operation")
        self._note_order(sem, scope)
        active, _ = self._access("atomic", ptr, mask)
        name = val.dtype.scalar.name
        if name in ("bf16", "fp16"):
            return self._half_atomic_add(op, ptr, val, active)
        checked = TensorHandle(active, tl.int1)
        return super().create_atomic_rmw(op, ptr, val, checked, sem, scope)

    def _note_order(self, sem: Any, scope: Any) -> None:
        """Say which way the next atomic operation orders accesses of several programs (PTX ISA, "Memory Consistency
        Model")."""
        if self.coverage is not None:
            alone = scope == enums.MEM_SYNC_SCOPE.CTA
            both = sem == enums.MEM_SEMANTIC.ACQUIRE_RELEASE
            acquires, releases = (
                sem == way or both for way in (enums.MEM_SEMANTIC.ACQUIRE, enums.MEM_SEMANTIC.RELEASE)
            )
            self.coverage.atomic_order(acquires and not alone, releases and not alone)

    def _half_atomic_add(self, op: Any, ptr: Handle, val: Handle, active: Any) -> Handle:
        """``atomic_add`` on 16-bit floats: lanes in order, each sum rounded, as a device does one at a time."""
        if op not in (enums.ATOMIC_OP.FADD, enums.ATOMIC_OP.ADD):
            raise ValueError(f"the atomic operation {op} does not exist for {val.dtype}")
        kind = numpy_dtype(val.dtype)
        shape = ptr.data.shape
        flat, lanes = ptr.data.reshape(-1), active.reshape(-1)
        values = np.broadcast_to(wide(val), shape).reshape(-1)
        before = np.zeros(flat.shape, kind)
        one = np.ones(1, np.bool_)
        for lane in np.flatnonzero(lanes):
            address = flat[lane : lane + 1].copy()
            old = memory.load(address, one, np.zeros(1, kind), kind)
            before[lane] = old[0]
            added = wide(TensorHandle(old, val.dtype.scalar)) + values[lane]
            memory.store(address, packed_as(added, val.dtype).data, one)
        return TensorHandle(before.reshape(shape), val.dtype.scalar)

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
        self._not_twice("an atomic operation")
        self._note_order(sem, scope)
        active, _ = self._access("exchange", ptr, TensorHandle(np.ones_like(ptr.data, np.bool_), tl.int1))
        if not active.all():
            return TensorHandle(cmp.data.copy(), cmp.dtype.scalar)  # as if it succeeded: a lock must not hang
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)


def _as_kind(data: Any, kind: Any) -> Any:
    return data if data.dtype == kind else data.astype(kind)


Array = np.ndarray[Any, Any]


class StoreLog:
    """The stores of a run in order, each with the previous content of memory."""

    def __init__(self) -> None:
        self._stores: list[tuple[Region, Array, Array, Array, Array, bool]] = []

    def before(self, region: Region, addresses: Array, data: Array, active: Array, varying: bool) -> None:
        """Record a store before it happens.

        The arrays have one shape, with a first axis of programs if ``varying``.
        """
        old = region.load(addresses, active, np.zeros(addresses.shape, data.dtype))
        self._stores.append((region, addresses, data, active, old, varying))

    def undo(self) -> None:
        """Restore the previous content of memory, the last store first."""
        for region, addresses, _, active, old, _ in reversed(self._stores):
            region.store(addresses, old, active)
        self._stores.clear()

    def of(self, program: int) -> list[tuple[bytes, bytes]]:
        """Return addresses and values, store by store, of the program number ``program`` of the batch."""
        stores = []
        for _, addresses, data, active, _, varying in self._stores:
            if varying:
                addresses, data, active = addresses[program], data[program], active[program]
            stores.append((addresses[active].tobytes(), data[active].tobytes()))
        return stores
