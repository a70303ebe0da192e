"""``nki.collectives``: rank 0 of the groups runs here.

What it gets from one rank, itself, is defined. Each of several others is taken to hold what this one does, as a finding
says; of what goes between cores no time is counted but that of the transfer here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, copy_values, operation_name, real
from accelopt_profiling.nki.current.language import NKIObject
from accelopt_profiling.nki.current.runtime_numbers import NkiScalar, Register, RuntimeNumber
from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.nki.current.view_dims import merge_dims
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.binding import refuse

_HBM, _SBUF = MemorySpace.HBM, MemorySpace.SBUF
_REDUCTIONS = ("add", "minimum", "maximum")


class ReplicaGroup(NKIObject):
    """Groups of ranks that take part in a collective; no rank is in two."""

    def __init__(self, groups: Sequence[Sequence[int]] = ()) -> None:
        super().__init__()
        self.groups = groups
        ranks = [rank for group in groups for rank in group]
        if len(set(ranks)) < len(ranks):
            refuse(f"The groups of a ReplicaGroup do not overlap; these do: {list(groups)}.")

    def own(self) -> list[int]:
        """Return the group of the rank that runs here."""
        for group in self.groups:
            if 0 in group:
                return [int(rank) for rank in group]
        return refuse(f"Rank 0 runs here, and is in none of the groups {list(self.groups)}: not emulated.")


def all_reduce(srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = None) -> None:
    """Reduce the ranks' tensors into each rank's ``dsts``."""
    machine, ranks = _checked("all_reduce", replica_group, priority)
    name = _reduction(machine, op)
    for src, dst in _pairs(machine, "all_reduce", srcs, dsts):
        _check_shape(machine, dst, src.shape)
        machine.transfers.transfer(dst, [src], _reduced, False, (name, len(ranks)))


def reduce_scatter(
    srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, op: Any, priority: Any = None
) -> None:
    """Reduce the ranks' tensors, and give each rank its part of the result."""
    machine, ranks = _checked("reduce_scatter", replica_group, priority)
    name = _reduction(machine, op)
    _check_dim(machine, collective_dim, (0,))
    for src, dst in _pairs(machine, "reduce_scatter", srcs, dsts):
        part = _part(machine, src, ranks)
        _check_shape(machine, dst, part.shape)
        machine.transfers.transfer(dst, [part], _reduced, False, (name, len(ranks)))


def all_gather(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = None) -> None:
    """Put the ranks' tensors side by side in each rank's ``dsts``."""
    machine, ranks = _checked("all_gather", replica_group, priority)
    for src, dst in _pairs(machine, "all_gather", srcs, dsts):
        on_chip = src.block.info.memory is _SBUF
        _check_dim(machine, collective_dim, (0, 1) if on_chip else (0,))
        if on_chip and len(src.shape) != 2:
            machine.fault("unsupported", f"Collectives on SBUF are of two dimensions, not of {src.shape}.")
        _repeat(machine, dst, src, ranks, int(collective_dim))


def all_to_all(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = None) -> None:
    """Give each rank its part of every rank's tensor."""
    machine, ranks = _checked("all_to_all", replica_group, priority)
    _check_dim(machine, collective_dim, (0,))
    for src, dst in _pairs(machine, "all_to_all", srcs, dsts, (_HBM,)):
        _check_shape(machine, dst, src.shape)
        _repeat(machine, dst, _part(machine, src, ranks), ranks, 0)


def all_gather_v(
    srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: bool = False,
    has_rdispls: bool = False, priority: Any = None,
) -> None:  # fmt: skip
    """Give each rank a chunk of every rank's tensor, as long as the metadata says."""
    machine, ranks = _checked("all_gather_v", replica_group, priority)
    if has_rdispls:
        machine.fault("unsupported", "all_gather_v takes no has_rdispls=True yet (AWS's page).")
    if prod(machine.grid) != 2 or len(ranks) != 4:
        machine.fault("unsupported", "all_gather_v is for LNC=2, kernel[2], and four ranks in each group.")
    _chunks(machine, "all_gather_v", srcs, dsts, metadata_tensor, ranks, 0, recv_counts_known, False)


def all_to_all_v(
    srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: bool = False,
    has_rdispls: bool = False, priority: Any = None,
) -> None:  # fmt: skip
    """Give each rank its own chunk of every rank's tensor, as long as the metadata says."""
    machine, ranks = _checked("all_to_all_v", replica_group, priority)
    if has_rdispls and machine.limits.generation < 4:
        machine.fault("unsupported", "has_rdispls=True is for instances with a NeuronSwitch, trn3 today.")
    if machine.limits.generation > 3 and (prod(machine.grid) != 2 or len(ranks) % 4):
        machine.fault(
            "unsupported", "On trn3 all_to_all_v is for LNC=2, kernel[2], and whole devices of four ranks."
        )
    mine = ranks.index(0)
    _chunks(machine, "all_to_all_v", srcs, dsts, metadata_tensor, ranks, mine, recv_counts_known, has_rdispls)


def collective_permute(srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = None) -> None:
    """Send from rank to rank as the pairs say; who is no target keeps what it holds."""
    machine = current()
    _check_priority(machine, priority)
    pairs: list[Any] = list(source_target_pairs) if isinstance(source_target_pairs, (list, tuple)) else [0]
    if not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        machine.fault("unsupported", f"source_target_pairs are pairs of ranks, not {source_target_pairs!r}.")
    _told(machine, "collective_permute", max(len({int(rank) for pair in pairs for rank in pair}), 1))
    ((src, dst),) = _pairs(machine, "collective_permute", srcs, dsts, (_HBM,), several=False)
    _check_shape(machine, dst, src.shape)
    if any(int(target) == 0 for _, target in pairs):
        machine.transfers.transfer(dst, [src], copy_values, False)


def collective_permute_implicit(
    srcs_by_channel: Any, dsts_by_channel: Any, replica_group: Any, channel_ids: Any = (0,), priority: Any = None
) -> None:  # fmt: skip
    """Send to the successor in the ring, and receive from the predecessor."""
    machine, _ = _checked("collective_permute_implicit", replica_group, priority)
    for src, dst in _channels(machine, channel_ids, srcs_by_channel, dsts_by_channel):
        _check_shape(machine, dst, src.shape)
        machine.transfers.transfer(dst, [src], copy_values, False)


def collective_permute_implicit_reduce(
    srcs0_by_channel: Any, srcs1_by_channel: Any, dsts_by_channel: Any, replica_group: Any, op: Any,
    channel_ids: Any = (0,), priority: Any = None,
) -> None:  # fmt: skip
    """Send ``op`` of two tensors to the successor in the ring, and receive the predecessor's."""
    machine, _ = _checked("collective_permute_implicit_reduce", replica_group, priority)
    name = _reduction(machine, op)
    for left, right, dst in _channels(
        machine, channel_ids, srcs0_by_channel, srcs1_by_channel, dsts_by_channel
    ):
        _check_shape(machine, right, left.shape)
        _check_shape(machine, dst, left.shape)
        machine.transfers.transfer(dst, [left, right], _paired, False, (name,))


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: Any, replica_group: Any, channel_id: Any = 0
) -> RuntimeNumber:
    """Return the rank whose data an iteration in the ring works on: its own first, then its predecessors'."""
    machine, ranks = _checked("collective_permute_implicit", replica_group, None)
    if not 0 <= int(channel_id) < 4:
        machine.fault("out-of-bounds", f"There are channels 0 to 3, no {channel_id}.")
    return _number(machine, ranks[(ranks.index(0) - int(plain(iteration_id))) % len(ranks)])


def rank_id() -> RuntimeNumber:
    """Return the number of the rank that runs here: 0."""
    return _number(current(), 0)


def _number(machine: Machine, value: int) -> RuntimeNumber:
    before = change("names", "nki.isa.NkiScalar", machine.version) is not None
    return Register(value) if before else NkiScalar(value, np.int32)


# Checks


def _checked(name: str, replica_group: Any, priority: Any) -> tuple[Machine, list[int]]:
    """Return the machine, and the ranks of the group."""
    machine = current()
    if not isinstance(replica_group, ReplicaGroup):
        machine.fault("unsupported", f"{name}'s replica_group is a ReplicaGroup, not {replica_group!r}.")
    _check_priority(machine, priority)
    ranks = replica_group.own()
    _told(machine, name, len(ranks))
    return machine, ranks


def _told(machine: Machine, name: str, ranks: int) -> None:
    if ranks > 1:
        machine.diagnostics.report(
            "stand-in",
            f"nki.collectives.{name} is of {ranks} ranks, of which one runs here: the others are taken to hold what it "
            "holds, and the time between cores is not counted.",
            "warning",
        )


def _check_priority(machine: Machine, priority: Any) -> None:
    if priority is None:
        return
    if machine.limits.generation < 4:
        machine.fault("unsupported", "The priority of a collective needs trn3.")
    if priority not in (0, 1, 2, 3):
        machine.fault("unsupported", f"A priority is 0 to 3, not {priority!r}.")


def _reduction(machine: Machine, op: Any) -> str:
    name = operation_name(op)
    if name not in _REDUCTIONS:
        machine.fault(
            "unsupported", f"A collective reduces with nl.add, nl.minimum or nl.maximum, not with {name}."
        )
    return name


def _check_dim(machine: Machine, dim: Any, allowed: tuple[int, ...]) -> None:
    if dim not in allowed:
        machine.fault("unsupported", f"collective_dim is {' or '.join(map(str, allowed))} here, not {dim!r}.")


def _check_shape(machine: Machine, tile: Tile, shape: tuple[int, ...]) -> None:
    if tile.shape != tuple(shape):
        machine.fault(
            "out-of-bounds", f"A tensor of this collective has the shape {tile.shape}, not {tuple(shape)}."
        )


def _pairs(
    machine: Machine, name: str, srcs: Any, dsts: Any, memories: tuple[MemorySpace, ...] = (_HBM, _SBUF),
    several: bool = True,
) -> list[tuple[Tile, Tile]]:  # fmt: skip
    """Return the tensors of a collective, checked: lists of as many, in one memory, each pair of one type."""
    for what, tiles in (("srcs", srcs), ("dsts", dsts)):
        if not isinstance(tiles, (list, tuple)) or not all(isinstance(t, Tile) for t in tiles) or not tiles:
            machine.fault("unsupported", f"{name}'s {what} are a list of tensors.")
    if len(srcs) != len(dsts):
        machine.fault("unsupported", f"{name} has {len(srcs)} srcs and {len(dsts)} dsts.")
    places = {t.block.info.memory for t in (*srcs, *dsts)}
    if len(places) > 1 or not places.issubset(memories):
        choices = " or ".join(m.value.upper() for m in memories)
        machine.fault("unsupported", f"The tensors of {name} all lie in {choices}.")
    if len(srcs) > 1 and (not several or _SBUF in places):
        machine.fault("unsupported", f"{name} takes one tensor{'' if not several else ' of SBUF'} at a time.")
    for src, dst in zip(srcs, dsts, strict=True):
        if src.dtype != dst.dtype:
            machine.fault("unsupported", f"{name} does not cast: {src.dtype.name} and {dst.dtype.name}.")
    return list(zip(srcs, dsts, strict=True))


def _channels(machine: Machine, channel_ids: Any, *tiles: Any) -> list[tuple[Tile, ...]]:
    """Return the tensors of each channel: one in each list, channels from 0 on, four at most."""
    ids = list(channel_ids)
    if ids != list(range(len(ids))) or not 1 <= len(ids) <= 4:
        machine.fault("unsupported", f"Channels are 0, 1 and so on, four at most, not {ids}.")
    for channels in tiles:
        whole = isinstance(channels, (list, tuple)) and all(isinstance(c, (list, tuple)) for c in channels)
        if not whole or len(channels) != len(ids) or any(len(c) != 1 for c in channels):
            machine.fault("unsupported", "There is a list with one tensor for each channel.")
    inner = [tuple(c[0] for c in one) for one in zip(*tiles, strict=True)]
    for one in inner:
        for tile in one[:-1]:
            _pairs(machine, "collective_permute_implicit", [tile], [one[-1]])
    return inner


# Values, where each rank holds what this one does


def _part(machine: Machine, src: Tile, ranks: list[int]) -> Tile:
    """Return the part of a tensor, cut along dimension 0, that belongs to this rank."""
    rows, rest = divmod(src.shape[0], len(ranks))
    if rest:
        machine.fault("out-of-bounds", f"{src.shape[0]} rows are not divided among {len(ranks)} ranks.")
    at = ranks.index(0) * rows
    return src.within(((at, at + rows), *((0, n) for n in src.shape[1:])))


def _repeat(machine: Machine, dst: Tile, src: Tile, ranks: list[int], dim: int) -> None:
    """Put a tensor once for each rank side by side along a dimension."""
    shape = tuple(n * len(ranks) if axis == dim else n for axis, n in enumerate(src.shape))
    _check_shape(machine, dst, shape)
    machine.transfers.transfer(dst, [src], _repeated, False, (len(ranks), dim))


def _repeated(count: int, dim: int, x: Array) -> Array:
    return np.concatenate([x] * count, axis=dim)


def _reduced(name: str, ranks: int, x: Array) -> Array:
    return (
        np.asarray(real(x) * np.float32(ranks) if x.dtype.kind == "f" else x * x.dtype.type(ranks))
        if (name == "add" and ranks > 1)
        else x
    )


def _paired(name: str, x: Array, y: Array) -> Array:
    return BINARY[name](x, y)


def _chunks(
    machine: Machine, name: str, srcs: Any, dsts: Any, metadata: Any, ranks: list[int], column: int, known: bool,
    displaced: bool,
) -> None:  # fmt: skip
    """Copy this rank's chunk of every rank's flat tensor to its slot, and note unknown counts in row 2."""
    ((src, dst),) = _pairs(machine, name, srcs, dsts, (_HBM,), several=False)
    rows, count = 4 if displaced else 3, len(ranks)
    shape = (rows, count)
    if not isinstance(metadata, Tile) or metadata.dtype != np.uint32:
        machine.fault("unsupported", f"{name}'s metadata_tensor is of uint32.")
    expected = shape if metadata.block.info.memory is _HBM else (1, *shape)
    _check_shape(machine, metadata, expected)
    values = machine.index_values(metadata)
    if values is None:  # shapes only: whole slots
        values = np.zeros(shape, np.uint32)
        values[0] = dst.size // count
    table = values.reshape(shape).astype(np.int64)
    length, start = int(table[0, column]), int(table[1, column])
    chunk = _flat(machine, src, start, length)
    for rank in range(count):
        at = int(table[3, rank]) if displaced else dst.size // count * rank
        if length:
            machine.transfers.transfer(_flat(machine, dst, at, length), [chunk], copy_values, False)
    if not known:
        row = metadata.within((*[(0, 1)] * (len(expected) - 2), (2, 3), (0, count)))
        machine.write(row, machine.defer(_counted, params=(row.shape, length)))


def _counted(shape: tuple[int, ...], length: int) -> Array:
    return np.full(shape, length, np.uint32)


def _flat(machine: Machine, tile: Tile, start: int, length: int) -> Tile:
    """Return some elements of a tensor as one row."""
    row = merge_dims(tile.dims) if tile.positions is None else None
    if row is None or (row[0] > 1 and row[1] != 1):
        machine.fault("unsupported", "The tensors of this collective lie in one row in memory.")
    if not 0 <= start <= start + length <= tile.size:
        machine.fault(
            "out-of-bounds", f"Elements {start} to {start + length} of a tensor that has {tile.size}."
        )
    return tile.strided(tile.offset + start, ((1, 0), (length, 1)))
