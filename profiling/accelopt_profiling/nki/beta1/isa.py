"""``neuronxcc.nki.isa``: one function per hardware instruction; each returns the tile it writes."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki import rules
from accelopt_profiling.nki.dtypes import as_dtype
from accelopt_profiling.nki.instruction import DMA, GPSIMD, SCALAR, TENSOR, VECTOR, Memory
from accelopt_profiling.nki.machine import Machine, current
from accelopt_profiling.nki.movement import multiplied, same, turned
from accelopt_profiling.nki.operations import ACTIVATIONS, BINARY, PREDICATES, REDUCTIONS, operation_name
from accelopt_profiling.nki.tile import Tile
from accelopt_profiling.nki.tokens import MOVABLE, reduce
from accelopt_profiling.nki.work import Step


class Engine(Enum):
    tensor = TENSOR
    vector = VECTOR
    scalar = SCALAR
    gpsimd = GPSIMD
    dma = DMA
    unknown = ""


def _engines(machine: Machine, engine: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The engines an instruction may run on: the developer's choice, or those the compiler would choose from."""
    if engine is None or engine is Engine.unknown:
        return usual
    chosen = engine.value if isinstance(engine, Engine) else str(engine)
    allowed = (*usual, GPSIMD)
    if chosen not in allowed:
        machine.fault(
            "unsupported", f"This instruction cannot run on {chosen}; it runs on {', '.join(allowed)}."
        )
    return (chosen,)


def _kind(dtype: Any) -> np.dtype[Any] | None:
    return None if dtype is None else as_dtype(dtype)


def _binary(machine: Machine, op: Any) -> Any:
    name = operation_name(op)
    if name not in BINARY:
        machine.fault(
            "unsupported", f"The operation {name or op!r} is not one of {', '.join(sorted(BINARY))}."
        )
    function = BINARY[name]
    if name in PREDICATES:
        return lambda *operands: function(*operands).astype(np.float32)
    return function


def nc_matmul(
    stationary: Any, moving: Any, *, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False, mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``stationary[K, M].T @ moving[K, N]`` on TensorE into PSUM, in float32.

    With ``is_transpose`` the moving operand is the identity and the result is the stationary one, transposed.
    """
    machine = current()
    left, right = machine.operand(stationary, "stationary operand"), machine.operand(moving, "moving operand")
    rules.check_operand(machine, left, "nc_matmul")
    rules.check_operand(machine, right, "nc_matmul")
    rules.check_matmul(machine, left, right)
    rows, columns = prod(left.shape[1:]), prod(right.shape[1:])
    shape = (rows, *right.shape[1:])
    box, where = machine._mask(mask, shape) if mask is not None else (None, None)
    if where is not None:
        machine.fault("unsupported", "nc_matmul takes masks that cut off whole rows or columns only.")
    moving_box = None
    if box is not None:
        moving_box = ((0, right.shape[0]), *box[1:])
        columns = prod(high - low for low, high in box[1:])
    instruction = machine.emit("nc_matmul", (TENSOR,), right)
    instruction.free, instruction.stationary, instruction.partitions = columns, rows, right.shape[0]
    instruction.transpose = is_transpose
    instruction.onezero = is_moving_onezero or is_stationary_onezero
    instruction.flops = 2 * left.shape[0] * rows * columns
    for tile in (left, right):
        instruction.reads.append((tile.block.place, tile.box()))
    step = None
    if box is None or all(low < high for low, high in box):
        a, b = machine.seen(left), machine.seen(right, moving_box)
        if a is not None and b is not None:
            step = Step(turned if is_transpose else multiplied, (a,) if is_transpose else (a, b))
            if box is not None:
                step = Step(_part(step.function, box), step.inputs)
    left.fresh = right.fresh = False
    dtype = left.dtype if is_transpose else np.dtype(np.float32)
    return machine._finish(instruction, shape, dtype, Memory.PSUM, step, box, None)


def _part(function: Any, box: Any) -> Any:
    """A product of which a mask leaves the rows and columns of ``box``; the columns are cut off already."""
    (low, high), *free = box

    def compute(*values: Any) -> Any:
        product = function(*values)[low:high]
        return product.reshape([high - low, *(end - start for start, end in free)])

    return compute


def nc_transpose(
    data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = None, **unused: Any
) -> Tile:
    """Swap partition and free dimension: on TensorE into PSUM, or on VectorE for at most 32x32."""
    machine = current()
    tile = machine.operand(data)
    rules.check_operand(machine, tile, "nc_transpose")
    rows, columns = tile.shape[0], prod(tile.shape[1:])
    if engine is Engine.vector:
        if max(rows, columns) > 32:
            machine.fault("capacity", f"VectorE transposes at most 32x32; this tile is {rows}x{columns}.")
        return machine.run(
            "nc_transpose",
            (VECTOR,),
            [tile],
            turned,
            _kind(dtype),
            None,
            (columns, rows),
        )
    if columns > 128 or rows > 128:
        machine.fault("capacity", f"TensorE transposes at most 128x128; this tile is {rows}x{columns}.")
    result = machine.run(
        "nc_matmul",
        (TENSOR,),
        [tile],
        turned,
        _kind(dtype),
        mask,
        (columns, rows),
        Memory.PSUM,
    )
    assert result.producer is not None
    result.producer.transpose = result.producer.onezero = True
    result.producer.free, result.producer.stationary = rows, columns
    result.producer.flops = 2 * rows * rows * columns
    return result


def activation(
    op: Any, data: Any, *, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None, reduce_res: Any = None,
    reduce_cmd: Any = None, mask: Any = None, dtype: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``op(data * scale + bias)`` on ScalarE; ``scale`` and ``bias`` are numbers or one value per partition."""
    machine = current()
    name = operation_name(op)
    if name not in ACTIVATIONS:
        machine.fault(
            "unsupported", f"ScalarE has no function {name or op!r}; it has {', '.join(sorted(ACTIVATIONS))}."
        )
    function = ACTIVATIONS[name]
    operands: list[Any] = [data]
    scaled = isinstance(scale, Tile) or scale != 1.0
    if scaled:
        operands.append(scale)
    biased = isinstance(bias, Tile) or (bias is not None and bias != 0)
    if biased:
        operands.append(bias)

    def compute(x: Any, *rest: Any) -> Any:
        if scaled:
            x = x * _number(rest[0])
        if biased:
            x = x + _number(rest[-1])
        return function(x if x.dtype.kind == "f" else x.astype(np.float32))

    cost = machine.operand(data)
    result = machine.run("activation", (SCALAR,), operands, compute, _kind(dtype), mask, cost=cost)
    if reduce_op is not None and reduce_res is not None:
        _reduce_into(machine, reduce_op, result, reduce_res)
    return result


def _number(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.float32(value)


def _reduce_into(machine: Machine, op: Any, result: Tile, place: Any) -> None:
    producer = result.producer
    assert producer is not None
    producer.opcode = "activation_reduce"
    target = machine.operand(place)
    producer.writes.append((target.block.place, target.box()))
    name = operation_name(op)
    if name not in REDUCTIONS:
        machine.fault("unsupported", f"activation_reduce cannot reduce with {name!r}.")
    function = REDUCTIONS[name]
    total = machine.later(lambda x: function(x, axis=tuple(range(1, x.ndim))).reshape(target.shape), result)
    machine.write(target, total)


def activation_reduce(
    op: Any, data: Any, *, reduce_op: Any = None, reduce_res: Any = None, bias: Any = None, scale: Any = 1.0,
    mask: Any = None, dtype: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``activation`` that also reduces its result along the free dimensions into ``reduce_res``."""
    return activation(
        op,
        data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op or "add",
        reduce_res=reduce_res,
        mask=mask,
        dtype=dtype,
    )


def tensor_tensor(
    data1: Any, data2: Any, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = None, **unused: Any
) -> Tile:
    """``data1 op data2`` element by element on VectorE or GpSimdE."""
    machine = current()
    engines = _engines(machine, engine, (VECTOR,))
    return machine.run("tensor_tensor", engines, [data1, data2], _binary(machine, op), _kind(dtype), mask)


def tensor_scalar(
    data: Any, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None, operand1: Any = None,
    reverse1: bool = False, *, dtype: Any = None, mask: Any = None, engine: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``(data op0 operand0) op1 operand1``; operands are numbers or one value per partition. The second is free."""
    machine = current()
    first = _binary(machine, op0)
    second = None if op1 is None else _binary(machine, op1)
    operands = [data, operand0] if second is None else [data, operand0, operand1]

    def compute(x: Any, a: Any, b: Any = None) -> Any:
        a = _like(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        if second is not None:
            b = _like(b, x)
            x = second(b, x) if reverse1 else second(x, b)
        return x

    cost = machine.operand(data)
    divides = "divide" in (operation_name(op0), operation_name(op1))
    opcode, usual = ("divide_scalar", (VECTOR,)) if divides else ("tensor_scalar", MOVABLE)
    return machine.run(
        opcode, _engines(machine, engine, usual), operands, compute, _kind(dtype), mask, cost=cost
    )


def _like(value: Any, data: Any) -> Any:
    """A scalar operand in the computation's own type: float32 for floats."""
    if isinstance(value, np.ndarray):
        return value
    return np.float32(value) if data.dtype.kind == "f" else value


def tensor_reduce(
    op: Any, data: Any, axis: Any, *, dtype: Any = None, negate: bool = False, keepdims: bool = False,
    mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """Reduce along free dimensions on VectorE."""
    machine = current()
    name = operation_name(op)
    if name not in REDUCTIONS:
        machine.fault("unsupported", f"tensor_reduce cannot reduce with {name or op!r}.")
    return reduce(machine, name, data, axis, dtype, mask, keepdims, negate)


def reciprocal(data: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    return current().run("reciprocal", (VECTOR,), [data], np.reciprocal, _kind(dtype), mask)


def tensor_copy(src: Any, *, dtype: Any = None, mask: Any = None, engine: Any = None, **unused: Any) -> Tile:
    """Copy within SBUF and PSUM."""
    machine = current()
    engines = _engines(machine, engine, (VECTOR, SCALAR))
    return machine.run("tensor_copy", engines, [src], same, _kind(dtype), mask)


def tensor_copy_predicated(
    src: Any,
    dst: Any,
    predicate: Any,
    *,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
    **unused: Any,
) -> None:
    """Copy ``src`` into ``dst`` where ``predicate`` is not zero (or is zero, with ``reverse_pred``); on VectorE."""
    machine = current()
    target = machine.operand(dst, "destination")

    def compute(x: Any, old: Any, p: Any) -> Any:
        return np.where((p != 0) != reverse_pred, x, old)

    kind = _kind(dtype) or target.dtype
    result = machine.run("tensor_copy_predicated", (VECTOR,), [src, target, predicate], compute, kind, mask)
    machine.assign(target, result)


def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = None, **unused: Any
) -> Tile:
    """A tile filled with a number."""
    machine = current()
    sizes = tuple(int(n) for n in shape)
    tile = machine.fresh(sizes, as_dtype(dtype), Memory.SBUF)
    tile.step = machine.later(np.asarray, value)
    machine.write(tile, tile.step)
    tile.producer = machine.emit("memset", _engines(machine, engine, (VECTOR,)), tile)
    tile.producer.writes.append((tile.block.place, tile.box()))
    return tile


def iota(expr: Any, dtype: Any, *, mask: Any = None, **unused: Any) -> Tile:
    """The values of an index expression, computed on GpSimdE."""
    machine = current()
    values = np.asarray(expr)
    tile = machine.fresh(values.shape, as_dtype(dtype), Memory.SBUF)
    tile.step = machine.later(np.asarray, values)
    machine.write(tile, tile.step)
    tile.producer = machine.emit("iota", (GPSIMD,), tile)
    tile.producer.writes.append((tile.block.place, tile.box()))
    return tile


def affine_select(
    pred: Any, on_true_tile: Any, on_false_value: Any, *, dtype: Any = None, mask: Any = None, **unused: Any
) -> Tile:
    """``on_true_tile`` where the predicate on indices holds, else a number; on GpSimdE."""
    machine = current()
    tile = machine.operand(on_true_tile)
    chosen = _truth(pred, tile.shape)
    return machine.run(
        "affine_select",
        (GPSIMD,),
        [tile],
        lambda x: np.where(chosen, x, x.dtype.type(on_false_value)),
        _kind(dtype),
        mask,
    )


def _truth(pred: Any, shape: tuple[int, ...]) -> Any:
    from accelopt_profiling.nki.index import Mask

    mask = Mask.of(pred)
    if mask is None:
        return np.ones(shape, dtype=bool)
    box, inside = mask.resolve(shape)
    chosen = np.zeros(shape, dtype=bool)
    area = tuple(slice(low, high) for low, high in box)
    chosen[area] = True if inside is None else inside
    return chosen


def tensor_tensor_scan(
    data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False, reverse1: bool = False, *,
    dtype: Any = None, mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``r[i] = op1(op0(data0[i], r[i-1]), data1[i])`` along the free dimension on VectorE."""
    machine = current()
    first, second = _binary(machine, op0), _binary(machine, op1)

    def compute(a: Any, b: Any, start: Any) -> Any:
        # one column after another; transposed so that each step reads contiguous memory
        left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
        out = np.empty_like(left)
        state = np.broadcast_to(np.asarray(start, dtype=left.dtype).reshape(-1), left.shape[1:]).copy()
        for i in range(len(left)):
            state = first(state, left[i]) if reverse0 else first(left[i], state)
            state = second(right[i], state) if reverse1 else second(state, right[i])
            out[i] = state
        return np.ascontiguousarray(out.T)

    shape = machine.operand(data0).shape
    return machine.run(
        "tensor_tensor_scan", (VECTOR,), [data0, data1, initial], compute, _kind(dtype), mask, shape
    )


def scalar_tensor_tensor(
    *, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False, reverse1: bool = False,
    dtype: Any = None, mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``(data op0 operand0) op1 operand1`` where ``operand1`` is a tile: two operations in one VectorE instruction."""
    machine = current()
    first, second = _binary(machine, op0), _binary(machine, op1)

    def compute(x: Any, a: Any, b: Any) -> Any:
        a = _like(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        return second(b, x) if reverse1 else second(x, b)

    cost = machine.operand(data)
    return machine.run(
        "scalar_tensor_tensor", (VECTOR,), [data, operand0, operand1], compute, _kind(dtype), mask, cost=cost
    )


def dma_copy(*, dst: Any, src: Any, mask: Any = None, **unused: Any) -> None:
    """Move data between HBM and SBUF, or within one of them."""
    machine = current()
    source, target = machine.operand(src), machine.operand(dst)
    if source.block.place.memory is Memory.HBM:
        loaded = machine.load(source, target.dtype, mask)
        if target.block.place.memory is Memory.HBM:
            machine.store(target, loaded, mask)
        else:
            machine.assign(target, loaded)
    else:
        machine.store(target, source, mask)


def bn_stats(data: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Count, mean and centred sum of squares per partition, in the six columns of the hardware's layout:
    the statistics of the even elements, then those of the odd ones."""
    machine = current()
    tile = machine.operand(data)
    if prod(tile.shape[1:]) > 512:
        machine.fault(
            "capacity", f"bn_stats takes at most 512 values per partition, not {prod(tile.shape[1:])}."
        )

    def compute(x: Any) -> Any:
        x = x.reshape(x.shape[0], -1)
        columns = []
        for half in (x[:, 0::2], x[:, 1::2]):
            count = half.shape[1]
            mean = half.mean(axis=1) if count else np.zeros(len(x), x.dtype)
            spread = ((half - mean[:, None]) ** 2).sum(axis=1)
            columns += [np.full(len(x), count, x.dtype), mean, spread]
        return np.stack(columns, axis=1)

    return machine.run("bn_stats", (VECTOR,), [tile], compute, _kind(dtype), mask, (tile.shape[0], 6))


def bn_aggr(data: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Mean and variance per partition from the columns of ``bn_stats``."""
    machine = current()
    tile = machine.operand(data)

    def compute(x: Any) -> Any:
        parts = x.reshape(x.shape[0], -1, 3)
        count, mean, spread = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
        total = count.sum(axis=1)
        centre = (count * mean).sum(axis=1) / total
        square = (spread + count * (mean - centre[:, None]) ** 2).sum(axis=1)
        return np.stack([centre, square / total], axis=1)

    return machine.run("bn_aggr", (VECTOR,), [tile], compute, _kind(dtype), mask, (tile.shape[0], 2))


class NcVersion(Enum):
    gen2 = 2
    gen3 = 3


def get_nc_version() -> NcVersion:
    """The generation of the core that is emulated."""
    return NcVersion.gen3 if current().limits.sbuf_bytes > (192 << 10) else NcVersion.gen2


def names() -> dict[str, Any]:
    """The module's content."""
    functions = (
        nc_matmul, nc_transpose, activation, activation_reduce, tensor_tensor, tensor_scalar, tensor_reduce, reciprocal,
        tensor_copy, tensor_copy_predicated, memset, iota, affine_select, tensor_tensor_scan, scalar_tensor_tensor,
        dma_copy, bn_stats, bn_aggr, get_nc_version,
    )  # fmt: skip
    table: dict[str, Any] = {f.__name__: f for f in functions}
    table.update({f"{member.name}_engine": member for member in Engine}, engine=Engine, nc_version=NcVersion)
    return table
