"""Divide the inner dimension of a product among programs where its tiles are too few to fill the device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.block_size import grid_axes
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel
from accelopt_agent.rules.analysis.triton.launch_sizes import options_edits
from accelopt_agent.rules.analysis.triton.product_tiles import ProductTiles, open_product
from accelopt_agent.rules.analysis.triton.storage import addressed
from accelopt_profiling.targets import UnknownTargetError, load_gpu

#: Parts that are tried where nothing was measured, and the most: their sums are added up in memory.
_USUAL, _MOST = 4, 8
#: Each part goes over at least so many blocks of the inner dimension.
_LEAST_BLOCKS = 4


@dataclass(frozen=True)
class InnerLoop:
    """The loop over the inner dimension: its end and step as written, the pointers that it advances with their steps,
    and the accumulator with the store of it."""

    loop: cst.For
    end: str
    step: str | None
    pointers: list[tuple[cst.AugAssign, str]]
    store: cst.Call
    accumulator: str
    conversion: cst.SimpleStatementLine | None


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1 or kernel.calls("num_programs"):
        return
    launch = kernel.launches[0]
    product = open_product(kernel.subject, launch)
    loop = _inner_loop(kernel, product) if product is not None else None
    parts = _parts(kernel.subject, product) if product is not None else 0
    if product is None or loop is None or parts < 2 or {"SPLIT_K", "split"} & _names(kernel):
        return
    outside = _launch_edits(kernel, launch, loop, parts)
    axes = grid_axes(kernel, launch)
    if outside is None or axes is None or kernel.spell("atomic_add") is None:
        return
    summary = f"Divide the inner dimension among {parts} programs per tile, which add up their parts."
    yield Rewrite(tuple(_kernel_edits(kernel, loop, len(axes[0]))), summary, tuple(outside))


def _names(kernel: TritonKernel) -> set[str]:
    return {*kernel.parameters, *(n.value for n in kernel.flow.names)}


def _parts(subject: RuleContext, product: ProductTiles) -> int:
    """Return how many programs share a tile: as many as the device has room for, a power of two; 1 where
    tiles fill it."""
    quantities = subject.measurement.quantities if subject.measurement is not None else {}
    programs = quantities["programs"].value if "programs" in quantities else None
    flops = quantities["mma_flops"].value if "mma_flops" in quantities else None
    if not programs or not flops:
        return _USUAL
    try:
        units = load_gpu(subject.target or "h100")["multiprocessors"]
    except UnknownTargetError:
        return 1
    rows, columns, inner = product.sizes
    blocks = flops / (2 * programs * rows * columns * inner)
    most = min(units / programs, blocks / _LEAST_BLOCKS, _MOST)
    return int(2 ** math.floor(math.log2(most))) if most >= 2 else 1


def _inner_loop(kernel: TritonKernel, product: ProductTiles) -> InnerLoop | None:
    """Return the loop, if each of its iterations adds one product to an accumulator that is only stored after
    it."""
    source = kernel.source
    loops = {loop for d in product.sides[2].dimensions for loop in d.loops}
    loop = loops.pop() if len(loops) == 1 else None
    bounds = _range(kernel, loop) if loop is not None else None
    if (
        loop is None
        or bounds is None
        or len(kernel.calls("dot")) != 1
        or kernel.calls("advance", "atomic_add")
    ):
        return None
    names = [s.target_name for s in kernel.flow.simple() if loop in s.loops and _adds_product(kernel, s.node)]
    steps = [a for a in source.walk(loop.body, cst.AugAssign) if not list(_dots(kernel, a))]
    dots = [a for a in source.walk(loop.body, cst.AugAssign) if list(_dots(kernel, a))]
    names += [source.code(a.target) for a in dots]
    stores = kernel.calls("store")
    varying = kernel.flow.varying(loop)
    if len(names) != 1 or names[0] is None or len(stores) != 1 or loop in source.parents(stores[0]):
        return None
    if any(
        not isinstance(s.operator, cst.AddAssign) or kernel.flow.variables(s.value) & varying for s in steps
    ):
        return None
    stored = _stored(kernel, stores[0], names[0], loop)
    pointers = [(s, source.code(s.value)) for s in steps]
    end, step = bounds
    return (
        InnerLoop(
            loop,
            end,
            step=step,
            pointers=pointers,
            store=stores[0],
            accumulator=names[0],
            conversion=stored[0],
        )
        if stored is not None
        else None
    )


def _range(kernel: TritonKernel, loop: cst.For) -> tuple[str, str | None] | None:
    """End and step of ``range(end)``, ``range(0, end)`` or ``range(0, end, step)``."""
    call = loop.iter
    if not isinstance(call, cst.Call) or any(a.keyword is not None for a in call.args):
        return None
    if kernel.source.code(call.func) != "range":
        return None
    texts = [kernel.source.code(a.value) for a in call.args]
    if len(texts) > 1 and texts[0] != "0":
        return None
    return (texts[0] if len(texts) == 1 else texts[1]), (texts[2] if len(texts) == 3 else None)


def _dots(kernel: TritonKernel, node: cst.CSTNode) -> Iterator[cst.Call]:
    return (c for c in kernel.source.walk(node, cst.Call) if kernel.is_call(c, "dot"))


def _adds_product(kernel: TritonKernel, node: cst.CSTNode) -> bool:
    """Return whether a statement is ``acc = tl.dot(a, b, acc)`` or ``acc = acc + tl.dot(a, b)``."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    if not isinstance(small, cst.Assign):
        return False
    name, value = kernel.source.code(small.targets[0].target), small.value
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        sides = (value.left, value.right)
        return any(kernel.source.code(s) == name for s in sides) and any(
            kernel.is_call(s, "dot") for s in sides
        )
    return kernel.is_call(value, "dot") and name in kernel.flow.variables(value)


def _stored(
    kernel: TritonKernel, store: cst.Call, accumulator: str, loop: cst.For
) -> tuple[cst.SimpleStatementLine | None] | None:
    """Return the statement that converts the accumulator for the store, if any.

    None where something else changes it.
    """
    placed = [a for a in store.args if a.keyword is None]
    if len(placed) < 2:
        return None
    value = placed[1].value
    after = [
        n for n in kernel.flow.occurrences(accumulator) if kernel.source.start(n) > kernel.source.end(loop)
    ]
    if len(after) != 1:
        return None
    if _converted(kernel, value, accumulator):
        return (None,)
    definition = kernel.flow.definition(value) if isinstance(value, cst.Name) else None
    if (
        definition is None
        or definition.value is None
        or not _converted(kernel, definition.value, accumulator)
    ):
        return None
    node, name = definition.node, kernel.source.code(value)
    only = len(kernel.flow.occurrences(name)) == 2
    return (node,) if only and isinstance(node, cst.SimpleStatementLine) else None


def _converted(kernel: TritonKernel, node: cst.BaseExpression, accumulator: str) -> bool:
    """Return whether ``node`` is the accumulator or ``accumulator.to(...)``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "to":
        node = node.func.value
    return isinstance(node, cst.Name) and node.value == accumulator


def _kernel_edits(kernel: TritonKernel, loop: InnerLoop, axis: int) -> list[ByteEdit]:
    source = kernel.source
    lines = [f"split = {kernel.spell('program_id')}({axis})"]
    lines += [f"{source.code(step.target)} += split * {_factor(text)}" for step, text in loop.pointers]
    first = f"split * {loop.step}" if loop.step else "split"
    step = f"{loop.step} * SPLIT_K" if loop.step else "SPLIT_K"
    edits = [
        source.before(loop.loop, "\n".join(lines)),
        source.replace(loop.loop.iter, f"range({first}, {loop.end}, {step})"),
        *(source.replace(s.value, f"{_factor(text)} * SPLIT_K") for s, text in loop.pointers),
        source.replace(loop.store.func, str(kernel.spell("atomic_add"))),
        *kernel.declared(["SPLIT_K"], "1"),
    ]
    value = [a for a in loop.store.args if a.keyword is None][1].value
    if source.code(value) != loop.accumulator:
        edits.append(source.replace(value, loop.accumulator))
    return [*edits, *([source.without(loop.conversion)] if loop.conversion is not None else [])]


def _factor(text: str) -> str:
    return f"({text})" if "+" in text or "-" in text else text


def _launch_edits(
    kernel: TritonKernel, launch: KernelLaunch, loop: InnerLoop, parts: int
) -> list[ByteEdit] | None:
    """Start the result at zero in float32, give the grid an axis for the parts, and convert the sum afterwards."""
    source = kernel.source
    address = kernel.flow.variables(loop.store.args[0].value)
    output = _output(kernel, launch, loop)
    if output is None or not address:
        return None
    assign = kernel.assigned(launch, output)
    statement = next((p for p in source.parents(launch.call) if isinstance(p, cst.SimpleStatementLine)), None)
    allocation = _allocation(kernel, assign.value) if assign is not None else None
    grid = _grid_tuple(kernel, launch)
    if allocation is None or statement is None or grid is None:
        return None
    edits, dtype = allocation
    last = grid.elements[-1]
    edits += [ByteEdit(source.end(last.value), source.end(last.value), f", {parts}")]
    edits += options_edits(kernel, launch.call, {"SPLIT_K": str(parts)})
    if dtype is not None:
        edits.append(source.after(statement, f"{output} = {output}.to({dtype})"))
    return edits


def _output(kernel: TritonKernel, launch: KernelLaunch, loop: InnerLoop) -> str | None:
    stored = addressed(kernel, loop.store)
    argument = launch.arguments.get(stored.pop()) if len(stored) == 1 else None
    if not isinstance(argument, cst.Name):
        return None
    passed = [n for n, v in launch.arguments.items() if isinstance(v, cst.Name) and v.value == argument.value]
    return argument.value if len(passed) == 1 else None


def _allocation(kernel: TritonKernel, value: cst.BaseExpression) -> tuple[list[ByteEdit], str | None] | None:
    """Return the edits that allocate float32 zeros instead, and the type that the result had."""
    source = kernel.source
    if not isinstance(value, cst.Call) or not value.args:
        return None
    path = kernel.names.path(value.func) or ""
    kinds = {
        "torch.empty": "zeros",
        "torch.zeros": "zeros",
        "torch.empty_like": "zeros_like",
        "torch.zeros_like": "zeros_like",
    }
    if path not in kinds:
        return None
    edits = [source.replace(value.func, f"{source.code(value.func).rpartition('.')[0]}.{kinds[path]}")]
    torch = source.code(value.func).rpartition(".")[0]
    dtype_argument = next(
        (a for a in value.args if a.keyword is not None and a.keyword.value == "dtype"), None
    )
    if not torch:
        return None
    if dtype_argument is None and path.endswith("_like"):
        edits += options_edits(kernel, value, {"dtype": f"{torch}.float32"})
        return edits, f"{source.code(value.args[0].value)}.dtype"
    if dtype_argument is None:
        return edits, None
    written = source.code(dtype_argument.value)
    if written == f"{torch}.float32":
        return edits, None
    return [*edits, source.replace(dtype_argument.value, f"{torch}.float32")], written


def _grid_tuple(kernel: TritonKernel, launch: KernelLaunch) -> cst.Tuple | None:
    """Return the tuple of the grid, where it stands in the launch, in a variable or in a lambda."""
    grid = kernel.grid_expression(launch)
    body = grid.body if isinstance(grid, cst.Lambda) else grid
    return body if isinstance(body, cst.Tuple) and len(body.elements) < 3 else None
