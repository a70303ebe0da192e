"""Run chosen programs of a captured launch on the CPU tensors that stand in for device memory."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice as generic_libdevice
from triton.runtime import interpreter as stock
from triton.runtime.jit import JITFunction, mangle_type

from accelopt_profiling.triton import reduction
from accelopt_profiling.triton.arithmetic import packed_as, wide
from accelopt_profiling.triton.batches import Batches
from accelopt_profiling.triton.bounds import Memory, Region, regions_of
from accelopt_profiling.triton.counting import Counter, source_line
from accelopt_profiling.triton.coverage import Coverage
from accelopt_profiling.triton.launch import Launch
from accelopt_profiling.triton.lockstep import (
    Lockstep,
    Refused,
    Varying,
    common,
    materialized,
    spread,
    varies,
)
from accelopt_profiling.triton.rewrite import rewrite
from accelopt_profiling.triton.sampling import ProgramId
from accelopt_profiling.triton.stores import StoreLog

Handle = Any
_ABSENT = object()
_LIBDEVICE = triton.language.extra.cuda.libdevice
#: Where kernels call libdevice functions from; all stand for CUDA's of the same name.
_LIBRARIES = {
    library.__name__: library
    for library in (generic_libdevice, _LIBDEVICE, triton.language.extra.hip.libdevice)
}


class Builder(Lockstep):
    """Adds the memory operations: every access is checked, counted, and remembered by the coverage.

    With a ``log`` stores can be taken back, and what could not be is refused. ``widest`` is the largest access yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory([])
        self.coverage: Coverage | None = None
        self.file = ""
        self.log: StoreLog | None = None
        self.widest = 0

    def _access(self, kind: str, pointers: Handle, mask: Handle) -> Any:
        """The mask of the lanes that really access memory, after checking, counting and remembering them."""
        addresses = pointers.data
        active = np.broadcast_to(mask.data, addresses.shape).astype(np.bool_, copy=False)
        self.widest = max(self.widest, addresses.size)
        itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        region = self.memory.locate(addresses, active, pointers.attr.get("origin"))
        if region is not None or active.any():
            allowed = self.memory.allowed(addresses, active, itemsize, region)
            if allowed is not None:
                bad = active & ~allowed
                if bad.any():
                    if self.log is not None:
                        raise Refused("an access out of bounds")
                    line = source_line(self.file)
                    self.memory.report(kind, line, region, self.grid_idx, addresses, bad)
                active = active & allowed
        used = addresses[active]
        if self.counter is not None and self.counter.enabled:
            self.counter.memory(kind, region, used, addresses.size, itemsize)
        if self.coverage is not None and region is not None:
            self.coverage.access(kind, region, used, itemsize)
        return active

    def create_masked_load(
        self,
        ptrs: Handle,
        mask: Handle,
        other: Handle | None,
        cache_modifier: Any,
        eviction_policy: Any,
        is_volatile: Any,
    ) -> Handle:
        if varies([ptrs, mask, other]):
            ptrs, mask, other = self._side_by_side(ptrs, mask, other)
        active = self._access("load", ptrs, mask)
        dtype = ptrs.get_element_ty()
        kind = stock._get_np_dtype(dtype)
        filler = (
            np.zeros_like(ptrs.data, kind) if other is None else np.broadcast_to(other.data, ptrs.data.shape)
        )
        loaded = stock._interpreter.load(ptrs.data, active, filler, kind)
        return (Varying if varies([ptrs]) else stock.TensorHandle)(loaded, dtype)

    def _side_by_side(self, pointers: Handle, *others: Any) -> list[Handle]:
        """All of them with as many elements as their shapes together call for. What has as many axes as pointers that
        differ was made from them, by Triton's own code, as were the masks of blocks, which are plain arrays.
        """
        handles = [pointers]
        for other in others:
            if other is not None:
                plain = isinstance(other, np.ndarray)
                data, dtype = (other, tl.int1) if plain else (other.data, other.dtype)
                made = isinstance(pointers, Varying) and data.ndim == pointers.data.ndim
                kind = Varying if made or isinstance(other, Varying) else stock.TensorHandle
                handles.append(kind(data, dtype))
        data = spread(handles)
        shape = np.broadcast_shapes(*(array.shape for array in data))
        first = Varying(np.broadcast_to(data[0], shape), pointers.dtype, pointers.attr)
        rest = iter(zip(data[1:], handles[1:], strict=True))
        return [first, *(None if o is None else Varying((n := next(rest))[0], n[1].dtype) for o in others)]

    def create_masked_store(
        self, ptrs: Handle, value: Handle, mask: Handle, cache: Any, eviction: Any
    ) -> None:
        if varies([ptrs, value, mask]):
            ptrs, value, mask = self._side_by_side(ptrs, value, mask)
        active = self._access("store", ptrs, mask)
        kind = stock._get_np_dtype(ptrs.get_element_ty())
        data = np.broadcast_to(value.data, ptrs.data.shape)
        data = data if data.dtype == kind else data.astype(kind)
        addresses = np.require(
            ptrs.data, requirements="W"
        )  # Triton's store asks that, though it only reads them
        if self.log is not None:
            self.log.before(addresses, data, active, isinstance(ptrs, Varying))
        stock._interpreter.store(addresses, data, active)

    def create_print(self, *arguments: Any) -> None:
        self._not_twice("a print")
        super().create_print(*arguments)

    def _not_twice(self, what: str) -> None:
        if self.log is not None:
            raise Refused(what)

    def create_atomic_rmw(
        self, op: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any
    ) -> Handle:
        self._not_twice("an atomic operation")
        active = self._access("atomic", ptr, mask)
        name = val.dtype.scalar.name
        if name in ("bf16", "fp16"):
            return self._half_atomic_add(op, ptr, val, active)
        checked = stock.TensorHandle(active, tl.int1)
        return super().create_atomic_rmw(op, ptr, val, checked, sem, scope)

    def _half_atomic_add(self, op: Any, ptr: Handle, val: Handle, active: Any) -> Handle:
        """``atomic_add`` on 16-bit floats: lanes in order, each sum rounded, as a device does one at a time."""
        if op not in (stock._ir.ATOMIC_OP.FADD, stock._ir.ATOMIC_OP.ADD):
            raise ValueError(f"the atomic operation {op} does not exist for {val.dtype}")
        kind = stock._get_np_dtype(val.dtype)
        shape = ptr.data.shape
        flat, lanes = ptr.data.reshape(-1), active.reshape(-1)
        values = np.broadcast_to(wide(val), shape).reshape(-1)
        before = np.zeros(flat.shape, kind)
        one = np.ones(1, np.bool_)
        for lane in np.flatnonzero(lanes):
            address = flat[lane : lane + 1].copy()
            old = stock._interpreter.load(address, one, np.zeros(1, kind), kind)
            before[lane] = old[0]
            added = wide(stock.TensorHandle(old, val.dtype.scalar)) + values[lane]
            stock._interpreter.store(address, packed_as(added, val.dtype).data, one)
        return stock.TensorHandle(before.reshape(shape), val.dtype.scalar)

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
        self._not_twice("an atomic operation")
        active = self._access("exchange", ptr, stock.TensorHandle(np.ones_like(ptr.data, np.bool_), tl.int1))
        if not active.all():
            return stock.TensorHandle(
                cmp.data.copy(), cmp.dtype.scalar
            )  # as if it succeeded: a lock must not hang
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)


class Interpreter:
    """One builder with its patches of ``triton.language``, reused for all launches of a process.

    Patches hold only inside ``scope``, so that kernels compile as usual between interpretations.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self.semantic = stock.TritonSemantic(self.builder)
        self._bodies: dict[Any, Callable[..., Any]] = {}
        self._patches: list[tuple[Any, str, Any]] = []

    def prepare(self) -> None:
        """Do now what the first launch would have to: build the patches, import what Triton and NumPy import late."""
        if not self._patches:
            self._build_patches()
        np.unique(np.zeros(2))
        np.random.default_rng(0)
        with suppress(ImportError):  # what Triton's argument specialisation looks for
            importlib.import_module("triton.experimental.gluon.nvidia.hopper")

    def run(
        self,
        launch: Launch,
        programs: Sequence[ProgramId],
        *,
        counter: Counter | None = None,
        coverage: Coverage | None = None,
        memory: Memory | None = None,
    ) -> Memory:
        """Interpret ``programs``; the memory returned holds what went out of bounds. They are run one after another, or
        side by side where that comes to the same and they are not counted.

        Raises:
            Exception: whatever the kernel's own code raises; ``Unsupported`` for what cannot run here.
        """
        builder = self.builder
        named = dict(zip(launch.fn.arg_names, launch.args, strict=False))
        builder.memory = memory if memory is not None else Memory(regions_of(named))
        builder.counter, builder.coverage, builder.file = counter, coverage, launch.file
        builder.set_grid_dim(*launch.grid)
        with self.scope(), np.errstate(all="ignore"):
            body = self.body(launch.fn)
            constexprs = {p.name for p in launch.fn.params if p.is_constexpr}
            values = {n: a if n in constexprs else self.convert(n, a) for n, a in named.items()}
            if counter is None and (coverage is None or coverage.side_by_side):
                programs = Batches(builder, lambda: body(**values), coverage).run(programs)
            for program in programs:
                builder.set_grid_idx(*program)
                if coverage is not None:
                    coverage.begin_program()
                body(**values)
                if coverage is not None:
                    coverage.end_program()
                if counter is not None and counter.enabled:
                    counter.end_program()
        return builder.memory

    def body(self, fn: Any) -> Callable[..., Any]:
        """The rewritten body of a JITFunction."""
        made = self._bodies.get(fn.fn)
        if made is None:
            made, _ = rewrite(fn, lambda value: self.semantic.to_tensor(value, False), self._replacement)
            self._bodies[fn.fn] = made
        return made

    def convert(self, name: str, value: Any) -> Any:
        """A launch argument as the tensor that the kernel's body sees; ``name`` is the origin of its pointers."""
        if isinstance(value, bool):
            return tl.tensor(stock.TensorHandle(np.array([value]), tl.int1), tl.int1)
        if isinstance(value, float):
            return tl.tensor(stock.TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            return self._descriptor(name, value)
        if hasattr(value, "data_ptr"):
            kind = tl.str_to_ty(mangle_type(value), None)
            address = np.array([value.data_ptr()], np.uint64)
            return tl.tensor(stock.TensorHandle(address, kind, {"origin": name}), kind)
        if isinstance(value, tuple):
            return stock._tuple_create(value, (self.convert(f"{name}[{i}]", v) for i, v in enumerate(value)))
        return stock._implicit_cvt(value)

    def _descriptor(self, name: str, value: Any) -> Any:
        strides = [self.convert(name, s) for s in value.strides[:-1]]
        return self.semantic.make_tensor_descriptor(
            base=self.convert(name, value.base),
            shape=[self.convert(name, s) for s in value.shape],
            strides=[*strides, tl.constexpr(1)],
            block_shape=[tl.constexpr(b) for b in value.block_shape],
            padding_option=value.padding,
        )

    def _replacement(self, value: Any) -> Any:
        """What a global of a kernel stands for while interpreting: language functions imported by name."""
        if inspect.isfunction(value):
            if value.__module__ in _LIBRARIES and hasattr(_LIBDEVICE, value.__name__):
                return self._libdevice(value.__name__)
            if tl.core.is_builtin(value) and getattr(value, "__module__", "").startswith("triton.language"):
                return lambda *a, **k: getattr(_home(value), value.__name__, value)(*a, **k)
        return value

    def _libdevice(self, name: str) -> Callable[..., Any]:
        function = getattr(_LIBDEVICE, name)

        def call(*arguments: Any, **options: Any) -> Any:
            options.pop("_semantic", None)
            return function(*arguments, **options, _semantic=self.semantic)

        return call

    def _turned(self, tensor: Any) -> Any:
        rank = len(tensor.shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        shape = [tensor.shape[n] for n in order]
        return tl.tensor(self.builder.create_trans(tensor.handle, order), tl.block_type(tensor.dtype, shape))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Patch ``triton.language`` and the interpreter's module so that kernels run on this builder; then restore."""
        swapped = [
            (stock, "interpreter_builder", self.builder),
            (stock, "interpreter_semantic", self.semantic),
        ]
        saved: list[tuple[Any, str, Any]] = []
        try:
            for owner, name, value in (*swapped, *(self._patches or self._build_patches())):
                saved.append((owner, name, vars(owner).get(name, _ABSENT)))
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in reversed(saved):
                if value is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)

    def _build_patches(self) -> list[tuple[Any, str, Any]]:
        visible = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
        own, stock.interpreter_builder = stock.interpreter_builder, self.builder  # Triton 3.6 binds it here
        try:
            stock_scope = stock._patch_lang(visible)
        finally:
            stock.interpreter_builder = own
        patches = {}
        try:
            for owner, name, _ in stock_scope._changes:
                patches[id(owner), name] = (owner, name, inspect.getattr_static(owner, name))
        finally:
            stock_scope.restore()
        for owner, name, value in self._own_patches():
            patches[id(owner), name] = (owner, name, value)
        self._patches = list(patches.values())
        return self._patches

    def _own_patches(self) -> Iterator[tuple[Any, str, Any]]:
        def reduce(value: Any, axis: Any, combine_fn: Any, keep_dims: bool = False, **_: Any) -> Any:
            return reduction.reduce(self.builder, value, axis, combine_fn, keep_dims)

        def scan(value: Any, axis: Any, combine_fn: Any, reverse: bool = False, **_: Any) -> Any:
            return reduction.scan(self.builder, value, axis, combine_fn, reverse)

        def call_device_function(fn: Any, *arguments: Any, **options: Any) -> Any:
            options.pop("_semantic", None)
            return self.body(fn)(*arguments, **options)

        for language in (tl, tl.core):
            yield language, "reduce", reduce
            yield language, "associative_scan", scan
        yield JITFunction, "__call__", call_device_function
        yield tl.dtype, "to_ir", lambda dtype, builder: dtype
        yield (
            tl.tensor,
            "__index__",
            lambda tensor: int(common(tensor.handle).squeeze()),
        )  # as since Triton 3.7
        yield tl.tensor, "__bool__", _truth
        yield tl.tensor, "T", property(self._turned)
        for handle in (stock.BlockPointerHandle, stock.TensorDescHandle):
            yield handle, "materialize_pointers", _with_origin(handle.materialize_pointers)
        for library in _LIBRARIES.values():
            for name, function in vars(library).items():
                if inspect.isfunction(function) and hasattr(_LIBDEVICE, name):
                    yield library, name, self._libdevice(name)


def _with_origin(materialize: Callable[..., Any]) -> Callable[..., Any]:
    def materialize_pointers(self: Any, which: Any) -> Any:
        if isinstance(self, stock.BlockPointerHandle):
            offsets, checked = self.offsets, which
        else:
            offsets, checked = which, range(len(self.block_shape))
        if varies([self.base, *offsets, *self.shape, *self.strides]):
            pointers, mask = materialized(self, offsets, checked)
        else:
            pointers, mask = materialize(self, which)
        origin = self.base.attr.get("origin")
        if origin is not None:
            pointers.attr["origin"] = origin
        return pointers, mask

    return materialize_pointers


def _truth(tensor: Any) -> bool:
    """Whether a scalar is true; blocks are, as in Triton's own interpreter."""
    handle = tensor.handle
    size = handle.data.size // (len(handle.data) if isinstance(handle, Varying) else 1)
    return bool(common(handle).reshape(-1)[0]) if size == 1 else True


def _home(builtin: Any) -> Any:
    """The module whose attribute a language function is, as the patches see it."""
    for module in (tl, tl.core, tl.math):
        if hasattr(module, builtin.__name__):
            return module
    return tl


__all__ = ["Builder", "Interpreter", "Region"]
