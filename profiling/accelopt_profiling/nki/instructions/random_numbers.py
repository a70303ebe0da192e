"""``nki.isa``: random numbers.

AWS documents how the numbers are distributed and that a seed or a state repeats them, not their values: here they come
from a generator of NumPy's for each lane, whose state is a hidden tensor of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import copy_values
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation, cut
from accelopt_profiling.nki.instructions.operands import engines, on_chip, same_size, scalar_like

#: Words in the state of one lane of an engine.
_WORDS = {VECTOR: 24, GPSIMD: 6}


def rng(dst: Any, engine: Any) -> None:
    """Write 32 random bits to each element, or as many as it has."""
    machine = current()
    where = engines(machine, engine, (VECTOR,), (GPSIMD,) if machine.limits.generation > 2 else ())
    target = on_chip(machine, dst, "dst")
    _check_reach(machine, where[0], target)
    told_random(machine, "nisa.rng")
    draw(machine, where[0], target, _bits, params=(target.dtype,))


def rand2(dst: Any, min: Any, max: Any) -> None:
    """Write numbers that are distributed evenly from ``min`` to ``max``, each a number or one for each partition."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    limits = [scalar_like(machine, value, target, name) for name, value in (("min", min), ("max", max))]
    if not any(isinstance(limit, Tile) for limit in limits) and not limits[0] < limits[1]:
        machine.fault("unsupported", f"rand2 draws from min to max; min is {min} and max {max}.")
    told_random(machine, "nisa.rand2")
    draw(machine, VECTOR, target, _between, *limits)


def dropout(dst: Any, data: Any, prob: Any) -> Any:
    """Replace elements by 0, each with the probability ``prob``, a number or one for each partition."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    same_size(machine, target, tile, "data")
    likely = scalar_like(machine, prob, tile, "prob")
    if isinstance(likely, Tile):
        whole = tile.dtype.kind in "iu"
        if likely.dtype != np.float32 if whole else not is_float(likely.dtype):
            kind = "float32 beside integers" if whole else "a float"
            machine.fault("unsupported", f"dropout's prob is {kind}, not {likely.dtype.name}.")
    if isinstance(likely, Tile) or 0 < likely < 1:
        told_random(machine, "nisa.dropout")
    if not isinstance(target, Allocation):
        draw(machine, VECTOR, target, _dropped, tile, likely, opcode="tensor_scalar")
        return target
    result = machine.fresh_tile(tile.shape, target.dtype or tile.dtype, MemorySpace.SBUF)
    box, (tile, *rest) = cut(machine, target, tile, *[likely] if isinstance(likely, Tile) else [])
    inside = result if box is None else result.within(box)
    draw(machine, VECTOR, inside, _dropped, tile, rest[0] if rest else likely, opcode="tensor_scalar")
    result.valid, result.fresh = box, False
    return result


def set_rng_seed(src_seeds: Any) -> None:
    """Let VectorE's numbers begin anew with a seed."""
    machine = current()
    seed = on_chip(machine, src_seeds, "src_seeds")
    if seed.size != 1:
        machine.fault("out-of-bounds", f"A seed is a tensor of one element, not of shape {seed.shape}.")
    _write_state(machine, VECTOR, machine.limits.partitions, seed, _expanded)


def rand_set_state(src_seeds: Any, engine: Any) -> None:
    """Set the state of the lanes of an engine."""
    machine = current()
    where, tile = _engine_of_state(machine, engine), on_chip(machine, src_seeds, "src_seeds")
    _check_words(machine, where, tile, "src_seeds")
    _write_state(machine, where, tile.shape[0], tile, copy_values)


def rand_get_state(dst: Any, engine: Any) -> None:
    """Store the state of the lanes of an engine."""
    machine = current()
    where, target = _engine_of_state(machine, engine), on_chip(machine, dst, "dst")
    _check_words(machine, where, target, "dst")
    _check_reach(machine, where if machine.limits.generation > 3 else GPSIMD, target)
    told_random(machine, "nisa.rand_get_state")
    lanes = _lanes(_state(machine, where), target.shape[0])
    instruction = machine.stream.emit("rand", (where,), target)
    instruction.writes.append(target.region())
    machine.write(target, machine.defer(copy_values, lanes))


def told_random(machine: Machine, name: str) -> None:
    """Tell that values are random."""
    machine.diagnostics.report(
        "stand-in",
        f"{name} is random: AWS documents the distribution of its values and no values, so that what depends on them "
        "compares with nothing. The emulator draws its own, the same in every run.",
        "warning",
    )


def draw(
    machine: Machine, engine: str, target: Tile, op: Callable[..., Any], *operands: Any, params: tuple[Any, ...] = (),
    opcode: str = "rand",
) -> None:  # fmt: skip
    """Let an engine write ``op`` of ``params``, the shape of ``target``, its random lanes and the operands' values."""
    machine.recorder.forbid_replay()  # each draw takes the state further
    state = _lanes(_state(machine, engine), target.shape[0])
    instruction = machine.stream.emit(opcode, (engine,), target)
    instruction.reads.extend(o.region() for o in operands if isinstance(o, Tile))
    instruction.writes.append(target.region())
    machine.write(target, machine.defer(op, state, *operands, params=(*params, target.shape)))
    machine.write(state, machine.defer(_advanced, state))


def uniform(shape: tuple[int, ...], lanes: Array) -> Array:
    """Return numbers from 0 to 1, below 1, those of each partition from its lane."""
    size = prod(shape[1:])
    rows = [np.random.default_rng(lane).random(size, np.float32) for lane in lanes[: shape[0]]]
    return np.stack(rows).reshape(shape)


def _bits(dtype: np.dtype[Any], shape: tuple[int, ...], lanes: Array) -> Array:
    size, word = prod(shape[1:]), np.dtype(f"u{dtype.itemsize}")
    rows = [np.random.default_rng(lane).integers(0, 1 << 32, size, np.uint32) for lane in lanes[: shape[0]]]
    return np.stack(rows).astype(word).view(dtype).reshape(shape)


def _between(shape: tuple[int, ...], lanes: Array, low: Any, high: Any) -> Array:
    low, high = (
        v.reshape(-1, *[1] * (len(shape) - 1)) if isinstance(v, np.ndarray) else v for v in (low, high)
    )
    return np.asarray(low + (high - low) * uniform(shape, lanes), np.float32)


def _dropped(shape: tuple[int, ...], lanes: Array, x: Array, likely: Any) -> Array:
    if isinstance(likely, np.ndarray):
        likely = likely.reshape(-1, *[1] * (len(shape) - 1))
    return np.where(uniform(shape, lanes) < likely, x.dtype.type(0), x.reshape(shape))


def _advanced(lanes: Array) -> Array:
    words = lanes.shape[1]
    return np.stack(
        [np.random.default_rng((*lane, 1)).integers(0, 1 << 32, words, np.uint32) for lane in lanes]
    )


def _expanded(seed: Array) -> Array:
    """Return the state of all lanes that a seed stands for."""
    bits = int(np.ascontiguousarray(seed).reshape(-1).view(np.uint32)[0])
    return np.random.default_rng(bits).integers(0, 1 << 32, (128, _WORDS[VECTOR]), np.uint32)


def _initial(words: int) -> Array:
    return np.arange(128 * words, dtype=np.uint32).reshape(128, words)


def _state(machine: Machine, engine: str) -> Tile:
    """Return the hidden tensor with the state of an engine's lanes."""
    if engine not in machine.random_states:
        words = _WORDS[engine]
        state = machine.memory.allocate((128, words), np.dtype(np.uint32), MemorySpace.HBM)
        machine.write(state, machine.defer(_initial, params=(words,)))
        machine.random_states[engine] = state
    return machine.random_states[engine]


def _lanes(state: Tile, count: int) -> Tile:
    return state.within(((0, count), (0, state.shape[1])))


def _write_state(machine: Machine, engine: str, lanes: int, source: Tile, op: Callable[..., Any]) -> None:
    machine.recorder.forbid_replay()
    instruction = machine.stream.emit("rand", (engine,), source)
    instruction.reads.append(source.region())
    machine.write(_lanes(_state(machine, engine), lanes), machine.defer(op, source))


def _engine_of_state(machine: Machine, engine: Any) -> str:
    return engines(machine, engine, (GPSIMD,), (VECTOR,) if machine.limits.generation > 3 else ())[0]


def _check_words(machine: Machine, engine: str, tile: Tile, what: str) -> None:
    if len(tile.shape) != 2 or tile.shape[1] != _WORDS[engine]:
        machine.fault(
            "out-of-bounds",
            f"{what} holds {_WORDS[engine]} words for each lane of {engine}; its shape is {tile.shape}.",
        )


def _check_reach(machine: Machine, engine: str, target: Tile) -> None:
    if engine == GPSIMD and target.block.info.memory is MemorySpace.PSUM:
        machine.fault("unsupported", "GpSimdE cannot reach PSUM; let it write to SBUF.")
