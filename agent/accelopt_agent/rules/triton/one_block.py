"""Keep a row that fits into one block in registers.

The kernel reads it again in loop after loop.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.block_size import meaning, passed
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.single_iteration import (
    RowLoop,
    loop_region,
    row_loops,
    single_iteration,
)
from accelopt_agent.rules.analysis.triton.storage import apart
from accelopt_agent.rules.analysis.triton.values import Evaluation
from accelopt_profiling.source_text import source_lines

#: Elements of a row per warp that leave registers for the rest: 64 of 32 bits in each lane.
_PER_WARP = 2048
_FLAG = "ONE_BLOCK"


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or not kernel.launches:
        return
    values = Evaluation(kernel, apart(kernel))
    values.walk(kernel.subject.function.body.body)
    for loops in row_loops(kernel, values):
        region = loop_region(kernel, loops)
        lines = single_iteration(kernel, loops, region) if region is not None else None
        condition = _condition(kernel, loops[0]) if lines is not None else None
        if region is None or lines is None or condition is None:
            continue
        word, decorated = condition
        edits = (_branch(kernel, region, lines, word), *decorated)
        summary = f"Load a row that fits into one block once instead of {len(loops)} times"
        for warps in (None, 8):
            launched = _launched(kernel, loops[0], warps)
            if launched is not None:
                wider = f", with {warps} warps" if warps else ""
                yield Rewrite(edits, f"{summary}{wider}.", tuple(launched))


def _condition(kernel: TritonKernel, loop: RowLoop) -> tuple[str, list[ByteEdit]] | None:
    """Return what is true where the row fits, and its declaration.

    It is known at compile time.
    """
    if loop.length.op != "parameter" or loop.block.op != "parameter":
        return None
    length, block = str(loop.length.args[0]), str(loop.block.args[0])
    if any(name in s.writes for s in kernel.flow.statements for name in (length, block)):
        return None
    if length in kernel.constexprs:
        return f"{length} <= {block}", []
    if length in (kernel.heuristics or {}):
        return None
    edits = _with_flag(kernel, f'args["{length}"] <= args["{block}"]')
    return (_FLAG, edits) if edits is not None else None


def _with_flag(kernel: TritonKernel, expression: str) -> list[ByteEdit] | None:
    """Declare the flag, computed by ``expression`` of ``args`` at each launch.

    None where its name is taken, the kernel's heuristics are not written out, or its file has no name for them.
    """
    names, decorators = kernel.names, [d.decorator for d in kernel.function.decorators]
    jit = decorators[-1].func if isinstance(decorators[-1], cst.Call) else decorators[-1]
    word = names.spelled("triton.heuristics")
    if word is None or kernel.spell("constexpr") is None or kernel.heuristics is None:
        return None
    if names.path(jit) not in ("triton.jit", "triton.runtime.jit"):
        return None
    if kernel.function.params.star_kwarg is not None or _FLAG in kernel.parameters:
        return None
    entry = f'"{_FLAG}": lambda args: {expression}'
    declared = kernel.declared([_FLAG], "False")
    for decorator in decorators:
        if isinstance(decorator, cst.Call) and names.path(decorator.func) == "triton.heuristics":
            table = decorator.args[0].value
            last = table.elements[-1] if isinstance(table, cst.Dict) and table.elements else None
            if isinstance(last, cst.DictElement):
                first, end = kernel.source.start(last.key), kernel.source.end(last.value)
                return [*declared, *kernel.source.added(first, end, [entry])]
    return [*declared, kernel.source.before(kernel.function.decorators[-1], f"@{word}({{{entry}}})")]


def _branch(kernel: TritonKernel, region: list[Statement], straight: list[str], condition: str) -> ByteEdit:
    """Return the straight text, and the old one where no row fits."""
    source = kernel.source
    start = source.line_start(source.start(region[0].node))
    end = min(source.block_end(region[-1].node), kernel.subject.end)
    indent = source.indent(region[0].node)
    written = source.data[start:end].decode().replace("\r\n", "\n")
    deeper = "".join(f"{source.step}{line}\n" if line.strip() else "\n" for line in source_lines(written))
    lines = [
        f"{indent}{source.step}{line}" for text in straight for line in text.replace("\r\n", "\n").split("\n")
    ]
    body = "\n".join(lines)
    return ByteEdit(start, end, f"{indent}if {condition}:\n{body}\n{indent}else:\n{deeper}")


def _launched(kernel: TritonKernel, loop: RowLoop, warps: int | None) -> list[ByteEdit] | None:
    """Return the edits that launch with a block for the whole row.

    They hold where it fits, with ``warps`` if more than there are.

    None where the launch cannot be told to, or there is nothing to change for ``warps``.
    """
    length, block = str(loop.length.args[0]), str(loop.block.args[0])
    power = kernel.names.spelled("triton.next_power_of_2")
    edits: list[ByteEdit] = []
    for launch in kernel.launches:
        keyword = launch.keyword("num_warps")
        present = 4 if keyword is None else integer(keyword.value)
        if warps is not None:
            if present is None or present >= warps or not launch.call.args:
                return None
            edits += kernel.keyword_edits(launch.call, "num_warps", str(warps))
        number = passed(kernel, launch, block)
        argument, size = launch.arguments.get(block), launch.arguments.get(length)
        if number is None or argument is None:
            computed = (
                (kernel.heuristics or {}).get(block)
                if argument is None
                else meaning(kernel, launch, argument)
            )
            if computed is None or "next_power_of_2" not in kernel.source.code(computed):
                return None
            continue
        if (
            power is None
            or size is None
            or kernel.hides("min")
            or not _is_known_at(kernel, launch, size, number)
        ):
            return None
        most = _PER_WARP * min(warps or present or 4, 8)
        text = f"min({power}({kernel.source.code(size)}), {max(most, integer(number) or 0)})"
        edits.append(kernel.source.replace(number, text))
    return list(dict.fromkeys(edits))


def _is_known_at(
    kernel: TritonKernel, launch: KernelLaunch, size: cst.BaseExpression, place: cst.CSTNode
) -> bool:
    """Return whether the row's length is known where the block's is."""
    source = kernel.source
    if source.start(launch.call) <= source.start(place) <= source.end(launch.call):
        return True
    if launch.function is None or not any(p is launch.function for p in source.parents(place)):
        return False
    if any(source.start(p) <= source.start(place) <= source.end(p) for p in [launch.function.params]):
        return False
    at = source.start(place)
    for name in {n.value for n in source.walk(size, cst.Name)}:
        for assign in source.walk(launch.function.body, cst.Assign):
            binds = any(n.value == name for t in assign.targets for n in source.walk(t.target, cst.Name))
            if binds and source.start(assign) > at:
                return False
    return True
