"""The memory that a launch may access: find the tensor of an address and the lanes that leave their tensor."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelopt_profiling.triton_adapter import interpreter as adapter

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Region:
    """The storage behind one tensor argument, as addresses in bytes.

    ``start`` is the tensor's first element.
    """

    name: str
    base: int
    end: int
    start: int
    itemsize: int
    storage: Any = field(compare=False, repr=False, default=None)

    @property
    def nbytes(self) -> int:
        return self.end - self.base

    @property
    def elements(self) -> int:
        return (self.end - self.start) // self.itemsize

    def load(self, addresses: Array, active: Array, filler: Array) -> Array:
        """Return the elements of ``filler``'s type at byte ``addresses``, ``filler`` itself where not ``active``; the
        active addresses lie inside the region.
        """
        items = self._items(addresses, filler.dtype)
        if items is None:
            loaded: Array = adapter.memory.load(addresses, active, filler, filler.dtype)
            return loaded
        memory = self._memory(filler.dtype)
        if bool(active.all()):
            return memory.take(items)
        return np.where(active, memory.take(np.where(active, items, 0)), filler)

    def store(self, addresses: Array, data: Array, active: Array) -> None:
        """Write the ``active`` elements of ``data`` to byte ``addresses``, which lie inside the region; of those for
        one address the last stays.
        """
        items = self._items(addresses, data.dtype)
        if items is None:  # Triton's store asks for arrays that may be written, though it only reads them
            adapter.memory.store(np.require(addresses, requirements="W"), data, active)
        elif bool(active.all()):
            self._memory(data.dtype)[items.reshape(-1)] = data.reshape(-1)
        else:
            self._memory(data.dtype)[items[active]] = data[active]

    def _items(self, addresses: Array, kind: Any) -> Array | None:
        """Return ``addresses`` as indices of elements of the type.

        None where one is no multiple of their size.
        """
        size = kind.itemsize
        offsets = addresses - np.uint64(self.base)
        if size > 1 and int(np.bitwise_or.reduce(offsets, axis=None)) & (size - 1):
            return None
        offsets >>= np.uint64(size.bit_length() - 1)
        items: Array = offsets.view(np.int64)
        return items

    def _memory(self, kind: Any) -> Array:
        whole = self.nbytes // kind.itemsize * kind.itemsize
        return np.frombuffer((ctypes.c_char * whole).from_address(self.base), kind)


@dataclass
class OutOfBounds:
    """An operation (``load``, ``store``, ``atomic``) on a 1-based source ``line`` that left its tensor.

    ``program`` and ``element`` are those of the first bad lane; ``element`` counts from the tensor's first element
    and may be negative. ``lanes`` and ``programs`` are sums over the interpreted programs.
    """

    operation: str
    line: int
    tensor: str
    program: tuple[int, int, int]
    element: int
    size: int
    lanes: int = 0
    programs: int = 0


def regions_of(arguments: Mapping[str, Any]) -> list[Region]:
    """Return the regions of all tensors among a launch's arguments, in tuples and tensor descriptors too."""
    return [r for name, value in arguments.items() for r in _regions(name, value)]


def _regions(name: str, value: Any) -> Iterable[Region]:
    if isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _regions(f"{name}[{index}]", item)
    elif hasattr(value, "block_shape") and hasattr(value, "base"):
        yield from _regions(name, value.base)
    elif hasattr(value, "data_ptr"):
        tensor = value
        for wrapped in ("base", "_base"):  # Triton's reinterpreted tensors, and buffers of other projects
            tensor = tensor if hasattr(tensor, "untyped_storage") else getattr(value, wrapped, None)
        if not hasattr(tensor, "untyped_storage"):
            return  # its accesses are looked up by address
        storage = tensor.untyped_storage()
        base = storage.data_ptr()
        size = value.element_size() if hasattr(value, "element_size") else tensor.element_size()
        yield Region(
            name, base, end=base + storage.nbytes(), start=value.data_ptr(), itemsize=size, storage=storage
        )


class LaunchMemory:
    """The regions of one launch.

    Collects what went out of bounds: one record per line, operation and tensor.
    """

    def __init__(self, regions: Iterable[Region], other: Iterable[Region] = ()) -> None:
        self.regions = {region.name: region for region in regions}
        self._all = [*self.regions.values(), *other]
        self.faults: dict[tuple[str, int, str], OutOfBounds] = {}
        self._last: dict[tuple[str, int, str], tuple[int, int, int]] = {}

    def locate(self, addresses: Array, mask: Array, origin: str | None) -> Region | None:
        """Find the region of a pointer derived from the argument ``origin``.

        By address where the origin is lost.
        """
        if origin is not None and origin in self.regions:
            return self.regions[origin]
        active = addresses[mask]
        if active.size:
            first = int(active.flat[0])
            for region in self._all:
                if region.base <= first < region.end:
                    return region
        return None

    def allowed(self, addresses: Array, mask: Array, itemsize: int, region: Region | None) -> Array | None:
        """Return a mask of the lanes that may be accessed.

        None when every active lane may (the usual case, cheap).
        """
        if region is None:
            return np.zeros(addresses.shape, np.bool_)
        limit = region.end - itemsize
        if limit < region.base:
            return np.zeros(addresses.shape, np.bool_)
        if region.base <= int(addresses.min()) and int(addresses.max()) <= limit:
            return None
        inside = (addresses >= np.uint64(region.base)) & (addresses <= np.uint64(limit))
        return None if bool((inside | ~mask).all()) else mask & inside

    def report(
        self,
        operation: str,
        line: int,
        region: Region | None,
        program: tuple[int, int, int],
        addresses: Array,
        bad: Array,
    ) -> None:
        """Record the ``bad`` lanes of one operation."""
        name = region.name if region else "an unknown pointer"
        key = (operation, line, name)
        fault = self.faults.get(key)
        if fault is None:
            address = int(addresses[bad].flat[0])
            element = ((address - region.start + (1 << 63)) % (1 << 64) - (1 << 63)) if region else address
            size = region.elements if region else 0
            fault = OutOfBounds(
                operation,
                line,
                tensor=name,
                program=program,
                element=element // (region.itemsize if region else 1),
                size=size,
            )
            self.faults[key] = fault
        fault.lanes += int(bad.sum())
        if self._last.get(key) != program:
            self._last[key] = program
            fault.programs += 1
