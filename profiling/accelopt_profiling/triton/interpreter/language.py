"""``triton.language`` while kernels are interpreted: its functions act on the interpreter's values.

Triton wraps the sizes of each value anew: as a tuple with a type of its own, and each size as a constant. A third of
the time of a small kernel went there. What follows from the sizes alone is kept here; the rest is as Triton makes it.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import triton.language as tl

from accelopt_profiling.triton.interpreter import reduction
from accelopt_profiling.triton.interpreter.arithmetic import UnsupportedOperationError
from accelopt_profiling.triton.interpreter.compiler_hints import CHECKS, StaticAssertionError, check_hint
from accelopt_profiling.triton.interpreter.lockstep import Varying, common, materialized, varies
from accelopt_profiling.triton.interpreter.loops import InterpretedRange
from accelopt_profiling.triton.interpreter.memory_operations import MemoryBuilder
from accelopt_profiling.triton_adapter import interpreter as adapter

_ABSENT = object()
#: Where kernels call libdevice functions from; all stand for CUDA's of the same name.
_LIBRARIES = {library.__name__: library for library in adapter.LIBRARIES}


class Language:
    """The patches of ``triton.language`` for one builder.

    ``body`` returns the rewritten body of a device function.

    They hold only inside ``scope``, so that kernels compile as usual between interpretations.
    """

    def __init__(
        self, builder: MemoryBuilder, semantic: Any, body: Callable[[Any], Callable[..., Any]]
    ) -> None:
        self._builder, self._semantic, self._body = builder, semantic, body
        self._block_types = BlockTypes()
        self._patches: list[tuple[Any, dict[str, Any]]] = []  # members by who owns them

    def replacement(self, value: Any) -> Any:
        """Return the substitute of a kernel's global while interpreting: language functions imported by name."""
        if inspect.isfunction(value):
            if value.__module__ in _LIBRARIES and hasattr(adapter.LIBDEVICE, value.__name__):
                return self._libdevice(value.__name__)
            if value.__module__.startswith(adapter.EXTRA) and adapter.is_builtin(value):
                return self._with_semantic(value)
            if adapter.is_builtin(value) and getattr(value, "__module__", "").startswith("triton.language"):
                return lambda *a, **k: getattr(_home(value), value.__name__, value)(*a, **k)
        return value

    def loop(self, start: Any, stop: Any = None, step: Any = None, **_: Any) -> InterpretedRange:
        """Return what stands for ``range`` and ``tl.range``. Options for the compiler change no value."""
        bounds = (0, start) if stop is None else (start, stop)
        return InterpretedRange(self._builder, *bounds, 1 if step is None else step)

    def _hint(self, name: str, input: Any, values: Any, **_: Any) -> Any:
        """Check a hint to the compiler, which changes no value."""
        if isinstance(input, tl.tensor) and self._builder.checks_hints:
            check_hint(
                name, input.handle.data, rank=len(input.shape), numbers=values, addresses=input.dtype.is_ptr()
            )
        return input

    def _libdevice(self, name: str) -> Callable[..., Any]:
        return self._with_semantic(getattr(adapter.LIBDEVICE, name))

    def _member(self, function: Any) -> Callable[..., Any]:
        def call(value: Any, *arguments: Any, **options: Any) -> Any:
            return self._body(function)(value, *arguments, **adapter.without_semantic(options))

        return call

    def _with_semantic(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return adapter.with_semantic(function, self._builder, self._semantic)

    def _wait(self, value: Any) -> None:
        """A reduction or scan along a block's only axis goes through memory that all lanes of a program share."""
        if len(reduction.shape_of(value)) == 1:
            self._builder.barrier()

    def _turned(self, tensor: Any) -> Any:
        """Return ``tensor.T``: the last two axes exchanged."""
        rank = len(tensor.shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        shape = [tensor.shape[n] for n in order]
        return tl.tensor(self._builder.create_trans(tensor.handle, order), tl.block_type(tensor.dtype, shape))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Patch ``triton.language`` and the interpreter's module so that kernels run on this builder; then restore."""
        saved: list[tuple[Any, dict[str, Any]]] = []
        try:
            for owner, members in self._patches or self.build():
                saved.append((owner, {name: vars(owner).get(name, _ABSENT) for name in members}))
                _replace(owner, members)
            yield
        finally:
            for owner, members in reversed(saved):
                _replace(owner, members)

    def build(self) -> list[tuple[Any, dict[str, Any]]]:
        """Collect the patches: language functions run on this builder, and over them those of this package."""
        functions = ((owner, name, self._with_semantic(f)) for owner, name, f in adapter.builtins())
        patches: dict[int, tuple[Any, dict[str, Any]]] = {}
        for owner, name, value in (*functions, *self._own()):
            patches.setdefault(id(owner), (owner, {}))[1][name] = value
        self._patches = list(patches.values())
        return self._patches

    def _own(self) -> Iterator[tuple[Any, str, Any]]:
        def reduce(value: Any, axis: Any, combine_fn: Any, keep_dims: bool = False, **_: Any) -> Any:
            self._wait(value)
            return self._builder.tensors(
                lambda: reduction.reduce(self._builder, value, axis, combine_fn, keep_dims),
                value,
                reduction.reduced_shape(value, axis, keep_dims),
            )

        def scan(value: Any, axis: Any, combine_fn: Any, reverse: bool = False, **_: Any) -> Any:
            self._wait(value)
            return self._builder.tensors(
                lambda: reduction.scan(self._builder, value, axis, combine_fn, reverse),
                value,
                reduction.shape_of(value),
            )

        def call_device_function(fn: Any, *arguments: Any, **options: Any) -> Any:
            return self._body(fn)(*arguments, **adapter.without_semantic(options))

        yield from adapter.patches()
        yield from self._block_types.patches()
        for language in adapter.LANGUAGES:
            yield language, "reduce", reduce
            yield language, "associative_scan", scan
            yield language, "range", self.loop
            yield language, "static_range", _static_range
            yield language, "static_print", print
            yield language, "static_assert", _static_assert
            yield language, "dot_scaled", _refused("tl.dot_scaled")
            for name in CHECKS:
                yield language, name, partial(self._hint, name)
        yield adapter.JITFunction, "__call__", call_device_function
        for name, member in vars(tl.tensor).items():
            if isinstance(member, adapter.JITFunction):  # ``x.sum()``: functions of Triton's own
                yield tl.tensor, name, self._member(member)
        yield tl.tensor, "__index__", _whole_number
        yield tl.tensor, "__bool__", _truth
        yield tl.tensor, "T", property(self._turned)
        for value in ("__repr__", "__str__"):
            yield tl.tensor, value, lambda tensor: repr(tensor.handle.data)
        for handle, name, materialize in adapter.pointers_of_blocks():
            yield handle, name, _with_origin(materialize)
        for module in _modules_of_devices():
            for name, function in vars(module).items():
                if inspect.isfunction(function) and adapter.is_builtin(function):
                    yield module, name, self._with_semantic(function)
        for library in _LIBRARIES.values():
            for name, function in vars(library).items():
                if inspect.isfunction(function) and hasattr(adapter.LIBDEVICE, name):
                    yield library, name, self._libdevice(name)


def _replace(owner: Any, members: dict[str, Any]) -> None:
    """Give an ``owner`` other members, all of a module in one go. Those that are ``_ABSENT`` are removed."""
    if inspect.ismodule(owner) and _ABSENT not in members.values():
        vars(owner).update(members)
        return
    for name, member in members.items():
        if member is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, member)


def _static_range(start: Any, stop: Any = None, step: Any = 1, **_: Any) -> range:
    return range(0, start, step) if stop is None else range(start, stop, step)


def _static_assert(condition: Any, message: Any = "", **_: Any) -> None:
    if not condition:
        raise StaticAssertionError(str(getattr(message, "value", message)) or "a static assertion fails")


def _refused(name: str) -> Callable[..., Any]:
    def operation(*_: Any, **__: Any) -> Any:
        raise UnsupportedOperationError(f"not emulated: {name}")

    return operation


def _modules_of_devices() -> list[Any]:
    """Return the modules of one vendor's functions besides libdevice, which a kernel may call by any of their names.

    Triton loads those below ``tl.extra`` anew, so that they are others than the ones an import finds.
    """
    imported = [m for name, m in list(sys.modules.items()) if name.startswith(adapter.EXTRA)]
    vendors = [m for m in vars(tl.extra).values() if inspect.ismodule(m)]
    parts = [m for vendor in vendors for m in vars(vendor).values() if inspect.ismodule(m)]
    modules = {id(m): m for m in (*imported, *vendors, *parts) if m is not None}
    return [
        m for m in modules.values() if m.__name__.startswith(adapter.EXTRA) and m.__name__ not in _LIBRARIES
    ]


def _with_origin(materialize: Callable[..., Any]) -> Callable[..., Any]:
    def materialize_pointers(self: Any, which: Any) -> Any:
        if adapter.is_descriptor(self):
            offsets, checked = which, range(len(self.block_shape))
        else:
            offsets, checked = self.offsets, which
        if varies([self.base, *offsets, *self.shape, *self.strides]):
            pointers, mask = materialized(self, offsets, checked)
        else:
            pointers, mask = materialize(self, which)
        origin = self.base.attr.get("origin")
        if origin is not None:
            pointers.attr["origin"] = origin
        return pointers, mask

    return materialize_pointers


def _whole_number(tensor: Any) -> int:
    """Convert a scalar to an index, as Triton does since 3.7."""
    return int(common(tensor.handle).squeeze())


def _truth(tensor: Any) -> bool:
    """Return whether a scalar is true. Blocks always are, as in Triton's own interpreter."""
    handle = tensor.handle
    size = handle.data.size // (len(handle.data) if isinstance(handle, Varying) else 1)
    return bool(common(handle).reshape(-1)[0]) if size == 1 else True


def _home(builtin: Any) -> Any:
    """Return the module that a language function is an attribute of, among the patched ones."""
    for module in (*adapter.LANGUAGES, tl.math):
        if hasattr(module, builtin.__name__):
            return module
    return tl


_CONSTANT = tl.constexpr


class _Sizes:
    """What follows from the sizes of a block: ``shape`` of its type, ``constants`` and ``count`` of its tensors."""

    def __init__(self, sizes: tuple[int, ...], shape: Any, numel: int) -> None:
        self.shape, self.numel, self.text = shape, numel, str(shape)
        self.constants = tl.tuple([_CONSTANT(size) for size in sizes])
        self.count = _CONSTANT(math.prod(sizes))


class BlockTypes:
    """Constructors of values, for ``Language``'s patches.

    Each keeps to what Triton's own one does and raises.
    """

    def __init__(self) -> None:
        self._sizes: dict[tuple[int, ...], _Sizes] = {}
        self._by_shape: dict[int, _Sizes] = {}  # by the identity of its ``shape``, which lives as long
        self._make_type = tl.block_type.__init__
        self._scalar = (tl.tuple([]), _CONSTANT(1))

    def patches(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """Yield who owns what is replaced, its name, and what replaces it."""

        def make_type(block: Any, element_ty: Any, shape: Any) -> None:
            sizes_of = self._by_shape.get(id(shape))
            if sizes_of is None:
                listed = shape if isinstance(shape, (list, tl.tuple)) else ()
                sizes = tuple([s.value if isinstance(s, _CONSTANT) else s for s in listed])
                sizes_of = self._sizes.get(sizes) if all(type(n) is int for n in sizes) else None
                if sizes_of is None:
                    self._make_type(block, element_ty, shape)
                    sizes_of = self._sizes[sizes] = _Sizes(sizes, block.shape, block.numel)
                    self._by_shape[id(sizes_of.shape)] = sizes_of
            block.element_ty, block.shape, block.numel = element_ty, sizes_of.shape, sizes_of.numel
            block.name = f"<{sizes_of.text}, {element_ty}>"
            block.sizes_of_tensors = sizes_of

        def make_tensor(tensor: Any, handle: Any, type: Any) -> None:
            tensor.handle, tensor.type, tensor.dtype = handle, type, type.scalar
            if not type.is_block():
                tensor.shape, tensor.numel = self._scalar
                return
            sizes_of = getattr(type, "sizes_of_tensors", None)
            if sizes_of is None:  # a type that was made outside of an interpretation
                sizes_of = tl.block_type(type.element_ty, type.shape).sizes_of_tensors
            tensor.shape, tensor.numel = sizes_of.constants, sizes_of.count

        yield tl.block_type, "__init__", make_type
        yield tl.tensor, "__init__", make_tensor
        yield adapter.broadcasting(_equally_large)


def _equally_large(one: Any, other: Any) -> bool:
    """Return whether two values are blocks of the same sizes. False where their types were made elsewhere."""
    sizes = getattr(one.type, "sizes_of_tensors", None)
    return sizes is not None and sizes is getattr(other.type, "sizes_of_tensors", None)
