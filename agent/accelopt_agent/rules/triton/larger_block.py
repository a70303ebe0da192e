"""Let each program of an element-wise kernel take more elements than a warp or two can keep busy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.block_size import BlockSize, grid_blocks, meaning, passed
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.masked_lanes import access
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value
from accelopt_profiling.triton.functions.table import functions_of

#: Blocks to try, in elements: 4 warps move 16 bytes per lane and request with 512 to 1024 of them.
_SIZES = (1024, 4096, 512)
#: Operations that combine lanes: what they give depends on the block.
_ACROSS_LANES = functions_of("reduction", "scan", "order", "normalization", "product", "shape")


@dataclass(frozen=True)
class _Blocks:
    """Each program takes elements ``start`` to ``start`` + ``size``, at ``offsets``, of those before ``end``."""

    axis: int
    name: str | None
    size: int | None
    offsets: Value


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1:
        return
    if kernel.calls(*_ACROSS_LANES) or any(s.loops for s in kernel.flow.statements):
        return
    if kernel.heuristics is None:
        return
    launch = kernel.launches[0]
    values = Evaluation(kernel)
    values.walk(kernel.subject.function.body.body)
    blocks = _blocks(kernel, values)
    sized_block = _sized(kernel, launch, values, blocks) if blocks is not None else None
    if sized_block is None:
        return
    block, inside = sized_block
    for value in _SIZES:
        if value >= block.value * 2:
            warps = _warps(kernel, launch, value)
            edits = [*inside(value), *block.edits(kernel, value)]
            own_edits = [e for e in edits if kernel.subject.start <= e.start < kernel.subject.end]
            outside = [e for e in edits if e not in own_edits]
            what = f"{value} elements per program instead of {block.value}"
            yield Rewrite(tuple(own_edits), f"Work on {what}.", (*outside, *warps))


def _blocks(kernel: TritonKernel, values: Evaluation) -> _Blocks | None:
    """Return the one way in which all accesses of the kernel split elements into blocks; None where there is
    another."""
    lanes: set[Value] = set()
    for call in kernel.calls("arange"):
        value = values.of(call)
        if value is None or value.op != "call" or len(value.args) != 3:
            return None
        lanes.add(value)
    if len(lanes) != 1:
        return None
    (lane,) = lanes
    low, high = (arg[1] for arg in lane.args[1:] if isinstance(arg, tuple))
    if not isinstance(low, Value) or not isinstance(high, Value) or low.number != 0:
        return None
    name = str(high.args[0]) if high.op == "parameter" and high.args[0] in kernel.constexprs else None
    size = high.number if isinstance(high.number, int) else None
    programs = {v for call in kernel.calls("program_id") if (v := values.of(call)) is not None}
    if (name is None and size is None) or not programs:
        return None
    for program in programs:
        start = values.product(program, high)
        offsets = values.total({**values.terms(start), (lane,): 1})
        axis = program.args[0]
        number = axis.number if isinstance(axis, Value) else None
        accesses = _accesses(kernel)
        if isinstance(number, int) and all(
            _within(kernel, values, call=call, offsets=offsets, lane=lane, program=program)
            for call in accesses
        ):
            return _Blocks(number, name, size, offsets)
    return None


def _accesses(kernel: TritonKernel) -> list[cst.Call]:
    return kernel.calls(*functions_of("load", "store", "atomic"))


def _within(
    kernel: TritonKernel,
    values: Evaluation,
    call: cst.Call,
    offsets: Value,
    lane: Value,
    program: Value,
) -> bool:
    """Return whether the access depends on lane and program only through the offsets, which its mask bounds."""
    pointer, mask = access(values, call)
    if pointer is None:
        return False
    terms = values.terms(pointer)
    with_lanes = [p for p in terms if any(lane in v.parts() for v in p)]
    with_program = [p for p in terms if any(program in v.parts() for v in p)]
    if not with_lanes and not with_program:
        return kernel.is_call(call, "load")
    base = {p: n for p, n in terms.items() if p not in with_lanes and p not in with_program}
    stride = _stride(values, with_lanes, lane)
    if stride is None:
        return _only_offsets(values, pointer, offsets) and mask is not None and _bounded(mask, offsets)
    again = values.total({**base, **values.terms(values.product(stride, offsets))})
    return again is pointer and mask is not None and _bounded(mask, offsets)


def _stride(values: Evaluation, with_lanes: list[tuple[Value, ...]], lane: Value) -> Value | None:
    """Return what the lanes are multiplied by in an address: one product."""
    if len(with_lanes) != 1 or with_lanes[0].count(lane) != 1:
        return None
    rest = [v for v in with_lanes[0] if v is not lane]
    if any(lane in v.parts() for v in rest):
        return None
    return values.total({tuple(rest): 1})


def _only_offsets(values: Evaluation, pointer: Value, offsets: Value) -> bool:
    """Return whether lanes and programs enter a value through ``offsets`` alone, as in ``offsets // n``."""
    todo = [pointer]
    while todo:
        at = todo.pop()
        if at is offsets:
            continue
        if at.op in ("program_id", "unknown", "iteration") or (at.op == "call" and at.args[0] == "arange"):
            return False
        todo += [v for arg in at.args for v in _values(arg)]
    return True


def _values(arg: object) -> list[Value]:
    if isinstance(arg, Value):
        return [arg]
    return [v for part in arg for v in _values(part)] if isinstance(arg, tuple) else []


def _bounded(mask: Value, offsets: Value) -> bool:
    """Return whether a mask lets through only offsets before some end."""
    todo = [mask]
    while todo:
        at = todo.pop()
        if at.op == "LessThan" and at.args[0] is offsets:
            return True
        if at.op == "BitAnd":
            todo += [v for v in at.args if isinstance(v, Value)]
    return False


def _sized(
    kernel: TritonKernel, launch: KernelLaunch, values: Evaluation, blocks: _Blocks
) -> tuple[BlockSize, Callable[[int], list[ByteEdit]]] | None:
    if blocks.name in (kernel.heuristics or {}):
        return None
    number = passed(kernel, launch, blocks.name) if blocks.name is not None else None
    size = integer(number) if blocks.name is not None else blocks.size
    if size is None or size > 512 or size & (size - 1):
        return None
    block = grid_blocks(kernel, launch, axis=blocks.axis, name=blocks.name, number=number, size=size)
    if block is None or block.covered is None:
        return None
    if not _covers(kernel, launch, block=block, blocks=blocks, values=values):
        return None
    literals = _literals(kernel, values, size) if blocks.name is None else []
    if literals is None:
        return None

    def inside(value: int) -> list[ByteEdit]:
        return [kernel.source.replace(node, str(value)) for node in literals]

    return block, inside


def _covers(
    kernel: TritonKernel, launch: KernelLaunch, block: BlockSize, blocks: _Blocks, values: Evaluation
) -> bool:
    """Return whether the masks end where what the grid splits ends."""
    assert block.covered is not None
    ends = set()
    for comparison in kernel.source.walk(kernel.function.body, cst.Comparison):
        value = values.of(comparison)
        if value is not None and value.op == "LessThan" and value.args[0] is blocks.offsets:
            ends.add(value.args[1])
    for end in ends:
        if not isinstance(end, Value) or end.op != "parameter":
            return False
        argument = launch.arguments.get(str(end.args[0]))
        if argument is None:
            return False
        one, other = meaning(kernel, launch, argument), meaning(kernel, launch, block.covered)
        if not kernel.source.same(argument, block.covered) and not kernel.source.same(one, other):
            return False
    return bool(ends)


def _literals(kernel: TritonKernel, values: Evaluation, size: int) -> list[cst.Integer] | None:
    """Return the numbers in the kernel that are the block's size: in its ranges and beside its place in the
    grid."""
    literals = []
    for node in kernel.source.walk(kernel.function.body, cst.Integer):
        if integer(node) != size:
            continue
        parent = kernel.source.parent(node)
        call = kernel.source.parent(parent) if isinstance(parent, cst.Arg) else None
        if kernel.is_call(call, "arange"):
            literals.append(node)
        elif isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Multiply):
            other = parent.left if parent.right is node else parent.right
            value = values.of(other)
            if value is None or value.op != "program_id":
                return None
            literals.append(node)
        else:
            return None
    return literals


def _warps(kernel: TritonKernel, launch: KernelLaunch, size: int) -> list[ByteEdit]:
    """Four warps where the launch asks for fewer: a warp alone would hold too many of the elements."""
    keyword = launch.keyword("num_warps")
    present = integer(keyword.value) if keyword is not None else None
    if keyword is None or present is None or present >= 4 or size < 512:
        return []
    return [kernel.source.replace(keyword.value, "4")]
