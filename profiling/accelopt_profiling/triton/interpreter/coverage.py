"""Track which elements are known after only a sample of a launch's programs ran.

Everything starts known. A launch of which only some programs ran makes every element of the tensors it stores to
unknown, except those that its programs wrote from known values. Unknown floats are set to NaN, so that
results that PyTorch computes from them are NaN too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from accelopt_profiling.comparison.leaves import flattened
from accelopt_profiling.triton.interpreter.memory_bounds import Region

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class WrittenItems:
    """What a launch writes of one storage: a bool for each item of the region's size. ``shared`` items are written by
    more than one program.
    """

    region: Region
    touched: Array
    shared: Array


@dataclass
class _Knowledge:
    storage: Any  # kept alive, so that its address is not reused
    itemsize: int
    known: Array  # bool per item of the storage


@dataclass
class SampleCoverage:
    """The knowledge about all storages of a session.

    Call ``begin_launch``, then per program, then ``end_launch``.
    """

    _storages: dict[int, _Knowledge] = field(default_factory=dict)
    sampled: bool = False  # some launch ran only a sample
    asks_what_is_stored: ClassVar[bool] = False
    orders: tuple[bool, bool] = (True, True)  # whether the atomic operation under way acquires, and releases
    stored: Mapping[int, WrittenItems] | None = None  # what a launch writes, where somebody asked
    _regions: dict[int, Region] = field(default_factory=dict)
    _written: list[tuple[int, Array]] = field(default_factory=list)
    _unsure: list[tuple[int, Array]] = field(default_factory=list)
    _program: list[tuple[int, Array]] = field(default_factory=list)
    _accumulated: dict[int, list[Array]] = field(default_factory=dict)
    _tainted: bool = False
    _exchanged: bool = False

    @property
    def side_by_side(self) -> bool:
        """True while everything is known: accesses of many programs may then be noted as those of one."""
        return not self._storages

    def partly_known(self) -> list[int]:
        """Return the addresses of the storages of which not every element is known."""
        return [base for base, knowledge in self._storages.items() if not knowledge.known.all()]

    def begin_launch(self, warps: int = 4) -> None:
        """Begin a launch with so many ``warps`` in each program."""
        self._regions, self._written, self._unsure, self._program = {}, [], [], []
        self._accumulated, self._exchanged = {}, False

    def begin_program(self) -> None:
        self._program, self._tainted = [], False

    def begin_batch(self) -> None:
        """Begin programs that run side by side."""
        self.begin_program()

    def undo_batch(self) -> None:
        """Take back what the batch that began last accessed: its stores were undone."""
        self.begin_program()

    def follows(self, kind: str, region: Region) -> bool:
        """Return whether an access tells anything: loads of what is known do not."""
        return kind != "load" or region.base in self._storages

    def barrier(self) -> None:
        """Lanes that wait for one another tell nothing about what is known."""

    def atomic_order(self, acquires: bool, releases: bool) -> None:
        """Note how the atomic operation that comes orders the accesses of several programs."""
        self.orders = acquires, releases

    def access(
        self, kind: str, region: Region, addresses: Array, itemsize: int, active: Array | None = None
    ) -> None:
        """Note one access of the running program at byte ``addresses`` of ``region``."""
        if not addresses.size:
            return
        if kind != "store":
            knowledge = self._storages.get(region.base)
            if knowledge is not None:
                items = (addresses.reshape(-1) - np.uint64(region.base)) // np.uint64(knowledge.itemsize)
                self._tainted = self._tainted or not bool(knowledge.known[items].all())
        if kind == "load":
            return
        self._regions.setdefault(region.base, region)
        flat = addresses.reshape(-1)
        if kind == "exchange":
            self._exchanged = True
        if kind == "store":
            self._program.append((region.base, flat))
        else:
            self._accumulated.setdefault(region.base, []).append(flat)
            if self._tainted:
                self._unsure.append((region.base, flat))

    @property
    def asks_what_changes(self) -> bool:
        """True after a store was noted whose values are of interest: ``changes`` is told them."""
        return False

    def changes(self, region: Region, before: Array, after: Array) -> None:
        """Take the values that the active lanes of a store overwrite, and those that they store."""

    def end_program(self) -> None:
        (self._unsure if self._tainted else self._written).extend(self._program)
        self._program = []

    def doubt_launch(self) -> None:
        """Take what the launch's programs wrote so far for unknown."""
        self._unsure += self._written
        self._written = []

    def end_launch(self, complete: bool, written: Mapping[int, WrittenItems] | None = None) -> None:
        """Mark what the programs wrote as known, and unless ``complete`` (all programs ran) the rest as unknown: what
        any program has ``written`` (see ``footprint``), or everything where that was not found.
        """
        for base, writes in (written or {}).items():
            self._regions.setdefault(base, writes.region)
        for base, region in self._regions.items():
            if complete and base not in self._storages and not any(b == base for b, _ in self._unsure):
                continue
            knowledge = self._storages.get(base)
            if knowledge is None or knowledge.itemsize > region.itemsize:
                items = max(1, region.nbytes // region.itemsize)
                mask = np.ones(items, np.bool_)
                if knowledge is not None:
                    mask = np.repeat(knowledge.known, knowledge.itemsize // region.itemsize)[:items]
                knowledge = self._storages[base] = _Knowledge(region.storage, region.itemsize, mask)
            by_any = (written or {}).get(base)
            if not complete and written is None:
                knowledge.known[:] = False
            elif not complete and by_any is not None:
                _forget(knowledge, by_any.region, by_any.touched)
            self._mark(knowledge, base, complete)
            if not complete and by_any is not None:
                _forget(knowledge, by_any.region, by_any.shared)
            if not complete:
                self.sampled = True
        self.begin_launch()

    def _mark(self, knowledge: _Knowledge, base: int, complete: bool) -> None:
        def items(addresses: Array) -> Array:
            indices: Array = (addresses - np.uint64(base)) // np.uint64(knowledge.itemsize)
            return indices

        if complete or not self._exchanged:
            for where, addresses in self._written:
                if where == base:
                    knowledge.known[items(addresses)] = True
        if not complete:
            for addresses in self._accumulated.get(base, ()):
                knowledge.known[items(addresses)] = False
        for where, addresses in self._unsure:
            if where == base:
                knowledge.known[items(addresses)] = False

    def poison(self, tensors: list[Any]) -> None:
        """Set the unknown elements behind floating-point ``tensors`` (a launch's arguments) to NaN.

        Written through a tensor of its own on the same storage, so that autograd does not take it for a change that
        the user made.
        """
        import torch

        for tensor in tensors:
            knowledge = self._storages.get(tensor.untyped_storage().data_ptr())
            if knowledge is None or knowledge.known.all() or not tensor.is_floating_point():
                continue
            if knowledge.itemsize == tensor.element_size():
                flat, nan = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()), float("nan")
                if flat.element_size() == 1:  # torch fills no fp8 tensors
                    nan = torch.tensor([nan]).to(tensor.dtype).view(torch.uint8).item()
                    flat = flat.view(torch.uint8)
                flat.masked_fill_(torch.from_numpy(~knowledge.known[: flat.numel()]), nan)

    def known(self, tensor: Any) -> Any:
        """Return a bool tensor of the shape of ``tensor``: True where an element is known; None when all are.

        A storage whose items are of another size than the tensor's gives False everywhere.
        """
        import torch

        knowledge = self._storages.get(tensor.untyped_storage().data_ptr())
        if knowledge is None:
            return None
        if knowledge.itemsize != tensor.element_size():
            return torch.zeros(tensor.shape, dtype=torch.bool)
        return torch.from_numpy(knowledge.known).as_strided(
            tensor.size(), tensor.stride(), tensor.storage_offset()
        )


def _forget(knowledge: _Knowledge, region: Region, touched: Array) -> None:
    """Mark as unknown what was ``touched``, a bool for each item of the region's size."""
    times = region.itemsize // knowledge.itemsize
    if times:
        wide = np.repeat(touched, times) if times > 1 else touched
    else:
        wide = np.logical_or.reduceat(
            touched, np.arange(0, touched.size, knowledge.itemsize // region.itemsize)
        )
    size = min(wide.size, knowledge.known.size)
    knowledge.known[:size] &= ~wide[:size]


def known_elements(coverage: SampleCoverage, outputs: list[Any]) -> dict[int, Array]:
    """Return a mask for each tensor in ``outputs`` (by number, lists flattened) of which only some elements are known.

    Of tensors that PyTorch computed from what kernels left, unknown floats are NaN; of its integers nothing is known.
    """
    import torch

    masks: dict[int, Array] = {}
    if not coverage.sampled:
        return masks
    for number, (_, value) in enumerate(flattened(outputs)):
        if isinstance(value, torch.Tensor):
            mask = coverage.known(value)
            if mask is None and value.is_floating_point():
                mask = ~value.isnan()
            elif mask is None:
                mask = torch.zeros(value.shape, dtype=torch.bool)
            masks[number] = mask.numpy()
    return masks
