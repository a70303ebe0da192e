"""``NkiTensor``: a view with the methods that the current dialect has instead of index arithmetic, and the handles of
tensors and registers that kernel code holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.current.columns import indirect_columns
from accelopt_profiling.nki.current.runtime_numbers import (
    WIDTHS,
    DynamicSlice,
    NkiScalar,
    Register,
    RuntimeNumber,
)
from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.nki.current.view_dims import merge_dims, rearranged, reshape_dims
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.index import Dim
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.memory_space import BUFFERS, SHARED_HBM, MemorySpace
from accelopt_profiling.nki.emulator.tile import Tile, sizes_of
from accelopt_profiling.nki.frontend.handle import (
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
    Handle,
    handing,
    represents,
)

#: What may stand in an index and is known at run time only.
_RUNTIME = frozenset((DynamicSlice, NkiScalar, Register))


class NkiTensor(Tile):
    """A tensor in HBM, SBUF or PSUM, or a view of one. Views move nothing and are read when an instruction uses them.

    ``index`` is the tensor whose values an indirect view was made with. ``addressing`` says what of a view is known at
    run time only: "number", its address; "vector", one for each partition; "columns", the place of each element within
    its partition, which ``regrouped`` gives for groups of another size. ``tile_rows`` is the number of rows of a grid
    of tiles that lie one after another in the partitions (see ``grids.py``).
    """

    __slots__ = ("addressing", "index", "regrouped", "tile_rows")
    index: Tile | None

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.index, self.addressing, self.tile_rows = None, "", 1
        self.regrouped: Callable[[int], Tile] | None = None

    def strided(self, offset: int, dims: tuple[Dim, ...]) -> Tile:
        """Return another view of the same block, which waits for the same index."""
        if len(dims) > 5 and self._on_chip():
            self.machine.fault(
                "unsupported", f"A view on the chip has five dimensions at most, not {len(dims)}."
            )
        view = super().strided(offset, dims)
        assert isinstance(view, NkiTensor)
        view.index, view.addressing = self.index, self.addressing
        return view

    @property
    def data(self) -> Tile:
        """The tensor itself: grids of tiles have their operand under this name, and so have tensors."""
        return self

    def __getitem__(self, key: Any) -> Tile:
        entries = key if isinstance(key, tuple) else (key,)
        if self._on_chip() and self.positions is None:
            entries = self._keeping_partitions(entries)
        if _RUNTIME.isdisjoint(map(type, entries)):
            view = super().__getitem__(entries)
            least = 2 if self._on_chip() else 1
            if len(view.dims) < least and view.positions is None:
                return view.strided(view.offset, (*view.dims, *[(1, 0)] * (least - len(view.dims))))
            return view
        registers = [e for e in entries if isinstance(e, Register)]
        if registers:
            return self._at_register(entries, registers[0])
        if any(isinstance(e, RuntimeNumber) for e in entries):
            self.machine.fault(
                "unsupported",
                "A number of the device is no index; use .select, .ap(scalar_offset=...) or nl.ds.",
            )
        numbers = [e.start for e in entries if isinstance(e, DynamicSlice)]
        known = tuple(
            slice(e.start.value or 0, (e.start.value or 0) + e.size) if isinstance(e, DynamicSlice) else e
            for e in entries
        )
        return self._known_at_run_time(super().__getitem__(known), numbers[0])

    def _at_register(self, entries: tuple[Any, ...], register: Register) -> Tile:
        """Return the position of one dimension that a register holds."""
        missing = [slice(None)] * (len(self.dims) - len([e for e in entries if e is not Ellipsis]))
        dots = next((i for i, e in enumerate(entries) if e is Ellipsis), len(entries))
        each = [*entries[:dots], *missing, *entries[dots + 1 :]]
        at = next(i for i, e in enumerate(each) if e is register)
        rest = (*each[:at], *each[at + 1 :], Ellipsis)
        return self.select(at, register)[rest]

    def _keeping_partitions(self, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the indices with that of the partitions as a slice: they stay a dimension, of size 1."""
        first = plain(entries[0]) if entries else None
        if type(first) is not int:
            return entries
        at = first + self.shape[0] if first < 0 else first
        return (slice(at, at + 1), *entries[1:])

    @property
    def buffer(self) -> Any:
        """``nl.sbuf``, ``nl.psum``, ``nl.hbm`` or ``nl.shared_hbm``."""
        return SHARED_HBM if self.block.info.shared else BUFFERS[self.block.info.memory.value]

    @property
    def name(self) -> str:
        """What the kernel called the tensor: "" where it did not."""
        return self.block.info.name

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(step for _, step in self.dims)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.machine.fault(
            "unsupported",
            "Tensors are not assigned to; an instruction writes to its dst, for instance nisa.tensor_copy.",
        )

    def __iadd__(self, other: Any) -> Tile:
        return self.machine.fault("unsupported", "Tensors have no += ; use nisa.tensor_tensor with a dst.")

    # Views

    def _on_chip(self) -> bool:
        return self.block.info.memory is not MemorySpace.HBM

    def _check(self, method: str, *axes: int, partition: bool = True) -> None:
        """The method exists in the emulated version, the axes exist, and the partition dimension is left alone."""
        later = change("methods", method, self.machine.version)
        if later is not None and later.kind == "added":
            self.machine.fault(
                "unsupported",
                f"NkiTensor.{method} came with NKI {later.version}; the emulated version is {self.machine.version}.",
            )
        if self.positions is not None:
            self.machine.fault(
                "unsupported", f"An indirect view has no {method}; call it before going indirect."
            )
        for axis in axes:
            if not 0 <= axis < len(self.dims):
                self.machine.fault(
                    "out-of-bounds", f"Dimension {axis} does not exist in a tensor of shape {self.shape}."
                )
            if axis == 0 and partition and self._on_chip():
                self.machine.fault(
                    "unsupported",
                    f"NkiTensor.{method} cannot change dimension 0 on the chip: it is the partitions.",
                )

    def permute(self, dims: Sequence[int]) -> Tile:
        """Return the same elements with the dimensions in another order."""
        self._check("permute")
        order = [as_int(d) for d in dims]
        if sorted(order) != list(range(len(self.dims))):
            self.machine.fault(
                "out-of-bounds", f"{tuple(order)} is not an order of {len(self.dims)} dimensions."
            )
        if self._on_chip() and order[0] != 0:
            self.machine.fault("unsupported", "On the chip dimension 0 is the partitions and stays first.")
        return self.strided(self.offset, tuple(self.dims[d] for d in order))

    def broadcast(self, dim: int, size: int) -> Tile:
        """Return a dimension of size 1 repeated ``size`` times."""
        self._check("broadcast", dim)
        if self.dims[dim][0] != 1:
            self.machine.fault(
                "out-of-bounds", f"Dimension {dim} has size {self.dims[dim][0]}; only 1 is repeated."
            )
        return self.strided(self.offset, (*self.dims[:dim], (as_int(size), 0), *self.dims[dim + 1 :]))

    def expand_dim(self, dim: int) -> Tile:
        """Return a new dimension of size 1 before ``dim``."""
        self._check("expand_dim")
        if not 0 <= dim <= len(self.dims) or (dim == 0 and self._on_chip()):
            self.machine.fault("out-of-bounds", f"No dimension can be put at {dim} of shape {self.shape}.")
        return self.strided(self.offset, (*self.dims[:dim], (1, 0), *self.dims[dim:]))

    def squeeze_dim(self, dim: int) -> Tile:
        """Return the view without a dimension of size 1."""
        self._check("squeeze_dim", dim)
        if self.dims[dim][0] != 1:
            self.machine.fault("out-of-bounds", f"Dimension {dim} has size {self.dims[dim][0]}, not 1.")
        return self.strided(self.offset, (*self.dims[:dim], *self.dims[dim + 1 :]))

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> Tile:
        """Return one dimension split into several; one size may be -1."""
        self._check("reshape_dim", dim, partition=len(shape) > 1)
        num, step = self.dims[dim]
        sizes = self._sizes(shape, num)
        split: list[Dim] = []
        for size in reversed(sizes):
            split.insert(0, (size, step))
            step *= size
        return self.strided(self.offset, (*self.dims[:dim], *split, *self.dims[dim + 1 :]))

    def flatten_dims(self, start_dim: int, end_dim: int) -> Tile:
        """Return a view with the dimensions ``start_dim`` to ``end_dim`` as one."""
        self._check("flatten_dims", start_dim, end_dim)
        joined = merge_dims(self.dims[start_dim : end_dim + 1])
        if joined is None:
            self.machine.fault(
                "unsupported",
                f"Dimensions {start_dim} to {end_dim} of this view do not lie in one row in memory.",
            )
        return self.strided(self.offset, (*self.dims[:start_dim], joined, *self.dims[end_dim + 1 :]))

    def reshape(self, *sizes_or_shape: Any, shape: Any = None) -> Tile:
        """Return the same elements in order, in another shape."""
        wanted = sizes_of(sizes_or_shape, shape)
        if self.positions is not None:
            self.machine.fault(
                "unsupported", "An indirect view cannot be reshaped; reshape before going indirect."
            )
        sizes = self._sizes(wanted, self.size)
        if self._on_chip() and self.dims and (not sizes or sizes[0] != self.dims[0][0]):
            self.machine.fault(
                "unsupported",
                f"A reshape from {self.shape} to {tuple(sizes)} moves data between partitions; keep dimension 0.",
            )
        dims = reshape_dims(self.dims, sizes)
        if dims is None:
            self.machine.fault(
                "unsupported",
                f"This view of shape {self.shape} cannot be seen as {tuple(sizes)} without a copy.",
            )
        return self.strided(self.offset, dims)

    def _sizes(self, shape: Sequence[int], total: int) -> list[int]:
        sizes = [as_int(n) for n in shape]
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = total // max(1, -prod(sizes))
        if prod(sizes) != total:
            self.machine.fault("out-of-bounds", f"{total} elements cannot have the shape {tuple(sizes)}.")
        return sizes

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Tile:
        """``start`` to ``end`` (exclusive) of one dimension."""
        self._check("slice", dim, partition=False)
        if not (0 <= start < end <= self.dims[dim][0] and step > 0):
            self.machine.fault(
                "out-of-bounds",
                f"Dimension {dim} of {self.shape} has no slice from {start} to {end} in steps of {step}.",
            )
        key = [slice(None)] * len(self.dims)
        key[dim] = slice(start, end, step)
        return self[tuple(key)]

    def select(self, dim: int, index: Any) -> Tile:
        """Return one position of a dimension, which goes away. ``index`` is a number, also one of the device, or a
        tensor that holds one."""
        self._check("select", dim, partition=isinstance(index, (Tile, RuntimeNumber)))
        rest = (*self.dims[:dim], *self.dims[dim + 1 :])
        if isinstance(index, (Tile, RuntimeNumber)):
            return self._at_number(self.offset, rest, index, self.dims[dim])
        if index < 0:
            self.machine.fault("out-of-bounds", f"select takes a position from 0 on, not {index}.")
        key: list[Any] = [slice(None)] * len(self.dims)
        key[dim] = index
        return self[tuple(key)]

    def vector_select(self, dim: int, vector_offset: Tile) -> Tile:
        """Return one row of dimension 0 per partition, named by ``vector_offset`` of shape (partitions,
        1)."""
        self._check("vector_select", dim)
        if dim != 0 or self._on_chip():
            self.machine.fault("unsupported", "vector_select works on dimension 0 of a tensor in HBM.")
        dims = ((vector_offset.shape[0], 0), *self.dims[1:])
        return self._indirect(self.offset, dims, vector_offset, self.dims[0])

    def ap(
        self, pattern: Sequence[Sequence[int]], offset: int | None = None, scalar_offset: Any = None,
        vector_offset: Any = None, indirect_dim: int = 0, dtype: Any = None,
    ) -> Tile:  # fmt: skip
        """Return an access pattern on the tensor's own memory: ``[step, number]`` per dimension, in elements.

        With ``scalar_offset`` (a tensor, a register or a scalar) or ``vector_offset`` the values, times the step of
        dimension ``indirect_dim`` of this tensor, are added to the address; a vector replaces the first pair's steps.
        """
        if dtype is not None and as_dtype(dtype) != self.dtype:
            same = self.machine.reinterpret(self.strided(0, self.block.dims), dtype)
            place = same.strided(self.offset * self.dtype.itemsize // same.dtype.itemsize, same.dims)
            assert isinstance(place, NkiTensor)
            return place.ap(pattern, offset, scalar_offset, vector_offset, indirect_dim)
        if self.positions is not None:
            self.machine.fault("unsupported", "An indirect view has no access pattern of its own.")
        start = self.offset + (0 if offset is None else as_int(offset))
        dims = tuple((as_int(num), as_int(step)) for step, num in pattern)
        self._check_pattern(start, dims, vector_offset is not None)
        if vector_offset is not None:
            if scalar_offset is not None or indirect_dim != 0:
                self.machine.fault(
                    "unsupported",
                    "A vector of offsets goes with no scalar_offset, and with indirect_dim=0 alone.",
                )
            dims = ((dims[0][0], 0), *dims[1:])
            return self._indirect(start, dims, vector_offset, self.dims[indirect_dim])
        if scalar_offset is None:
            return self.strided(start, dims)
        scalar_offset = plain(scalar_offset)
        if isinstance(scalar_offset, int):
            return self.strided(start + scalar_offset * self.dims[indirect_dim][1], dims)
        return self._at_number(start, dims, scalar_offset, self.dims[indirect_dim])

    def _at_number(self, start: int, dims: tuple[Dim, ...], index: Any, along: Dim) -> Tile:
        """Return a view ``index`` steps of a dimension further on, where the device knows the number."""
        machine = self.machine
        self._check_direct()
        if isinstance(index, Tile):
            if index.size != 1 or index.block.info.memory is not MemorySpace.SBUF:
                machine.fault("unsupported", f"An offset is one number in SBUF or a register, not {index}.")
            values = machine.index_values(index)
            index = RuntimeNumber(None if values is None else int(values.reshape(-1)[0]), index)
        elif not isinstance(index, RuntimeNumber):
            machine.fault(
                "unsupported", f"An offset is a tensor, a register or a scalar, not {type(index).__name__}."
            )
        if isinstance(index, NkiScalar) and WIDTHS[index.usable().dtype] == 64 and self._on_chip():
            machine.fault("unsupported", "The offset into a tensor on the chip has 32 bits, not 64.")
        at = start + (index.value or 0) * along[1]
        last = at + sum((num - 1) * step for num, step in dims)
        if at >= 0 and last < prod(self.block.shape):
            return self._known_at_run_time(self.strided(at, dims), index)
        if self._on_chip():
            machine.fault(
                "out-of-bounds",
                f"The offset {index.value} leads to element {last}; the tensor has {prod(self.block.shape)}.",
            )
        view = self._known_at_run_time(self.strided(start, dims), index)
        view.positions = self.strided(at, dims).addresses()  # which a transfer may leave out
        return view

    def _check_direct(self) -> None:
        if self.addressing:
            self.machine.fault("unsupported", "An indirect view takes no other number of the device.")

    def _known_at_run_time(self, view: Tile, number: RuntimeNumber) -> Tile:
        assert isinstance(view, NkiTensor)
        view.index, view.addressing = number.origin, "number"
        return view

    def _check_pattern(self, start: int, dims: tuple[Dim, ...], vector: bool) -> None:
        machine = self.machine
        if self._on_chip():
            row = prod(self.block.shape[1:])
            partitions, step = dims[0]
            if partitions > 1 and step != row and not vector:
                machine.fault(
                    "unsupported",
                    f"The pattern steps {step} elements from partition to partition; this tensor has {row} in each.",
                )
        total = prod(self.block.shape)
        last = start + sum((num - 1) * step for num, step in (dims[1:] if vector else dims) if step > 0)
        if start < 0 or last >= total:
            machine.fault(
                "out-of-bounds",
                f"The pattern reaches element {last}; the tensor has {total} (0 to {total - 1}).",
            )

    def _indirect(self, start: int, dims: tuple[Dim, ...], index: Tile, along: Dim) -> Tile:
        """Return a view with an address per partition that depends on the values of ``index``, read now."""
        machine = self.machine
        self._check_direct()
        view = self.strided(start, dims)
        assert isinstance(view, NkiTensor)
        view.index, view.addressing = index, "vector"
        values = machine.index_values(index)
        if values is None:  # shapes only: any address will do
            return view
        rows = (
            values.astype(np.int64).reshape(len(values), -1).T.reshape(-1)
        )  # column by column, as the hardware
        if len(rows) < dims[0][0]:
            machine.fault("out-of-bounds", f"{len(rows)} indices for {dims[0][0]} partitions.")
        moved: Array = rows[: dims[0][0]].reshape(-1, *[1] * (len(dims) - 1))
        view.positions = self.strided(start, dims).addresses() + moved * along[1]
        return view

    def rearrange(
        self, src_pattern: Any, dst_pattern: Any, fixed_sizes: dict[str, int] | None = None
    ) -> Tile:
        """Split, reorder and merge dimensions by name: ``(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})``."""
        self._check("rearrange")
        try:
            dims = rearranged(self.dims, src_pattern, dst_pattern, fixed_sizes or {})
        except ValueError as problem:
            self.machine.fault("unsupported", str(problem))
        if self._on_chip() and dims[0] != self.dims[0]:
            self.machine.fault("unsupported", "On the chip dimension 0 is the partitions and stays as it is.")
        return self.strided(self.offset, dims)

    # What a view is like

    def get_pattern(self) -> list[list[int]]:
        """``[step, number]`` per dimension."""
        return [[step, num] for num, step in self.dims]

    def is_contiguous(self) -> bool:
        """Return True if the elements lie in one row in memory; on the chip, within each partition."""
        free = self.dims[1:] if self._on_chip() else self.dims
        run = 1
        for num, step in reversed(free):
            if num > 1 and step != run:
                return False
            run *= num
        return True

    def is_indirect(self) -> bool:
        return bool(self.addressing)

    def view(self, dtype: Any) -> Tile:
        """Return the bits as another type."""
        if self.addressing:
            self.machine.fault("unsupported", "An indirect view has no view of its bits.")
        return super().view(dtype)

    reinterpret_cast = view

    def indirect(self, index: Any, num_elem: int | None = None) -> Tile:
        """Return the columns of a tensor on the chip that the offsets in ``index`` name, ``num_elem`` of them."""
        self._check("indirect")
        view: Tile = indirect_columns(self, index, num_elem)
        return view


_VIEWS = (
    "permute", "broadcast", "expand_dim", "squeeze_dim", "reshape_dim", "flatten_dims", "slice", "select",
    "vector_select", "ap", "rearrange", "get_pattern", "is_contiguous", "is_indirect", "view", "indirect",
    "reinterpret_cast",
)  # fmt: skip


@represents(NkiTensor, *TENSOR_ATTRIBUTES, "strides", "offset", "name", methods=(*TENSOR_METHODS, *_VIEWS))
class KernelNkiTensor(Handle):
    """A tensor in HBM, SBUF or PSUM, or a view of one, as kernel code holds it."""

    __slots__ = ()


KernelNkiTensor.data = property(handing(NkiTensor.data.fget))  # type: ignore[attr-defined]
