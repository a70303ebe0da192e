"""What the compiled code says about single lines: spills, copies, access widths, and what one loop iteration does."""

from __future__ import annotations

import dataclasses

from accelopt_profiling.measurement import LineCost
from accelopt_profiling.quantity import Quantity, compiled
from accelopt_profiling.triton.compiled import CompiledFacts
from accelopt_profiling.triton.listing import Loop

#: The widest access of one thread; narrower ones on lines that matter are worth a word.
FULL_ACCESS_BYTES = 16
MATTERS = 0.05

_LOOP_WORDS = {
    "tensor": "tensor instructions",
    "async_copy": "async copies",
    "bulk_copy": "bulk copies",
    "global_load": "global loads",
    "barrier": "barriers",
    "spill_load": "spill loads",
    "spill_store": "spill stores",
}


def with_code(lines: list[LineCost], facts: CompiledFacts) -> list[LineCost]:
    """``lines`` with what the compiler made of them, and further lines that only the compiler can tell about."""
    if facts.problem is not None:
        return lines
    merged = {cost.line: cost for cost in lines}
    for number, counts in facts.lines.items():
        if number:
            _add(merged, number, *_line(facts, number, counts, merged.get(number)))
    for number, count in facts.convert_layouts.items():
        if number:
            text = f"{count} layout conversion{'' if count == 1 else 's'}"
            _add(merged, number, text, {"layout_conversions": compiled(count, "conversions")})
    for loop in facts.loops:
        if loop.line:
            _add(merged, loop.line, *_loop(loop, facts))
    return [merged[number] for number in sorted(merged)]


def _add(merged: dict[int, LineCost], number: int, text: str, quantities: dict[str, Quantity]) -> None:
    if not text:
        return
    before = merged.get(number, LineCost(number, ""))
    joined = f"{before.text}, {text}" if before.text else text
    merged[number] = dataclasses.replace(before, text=joined, quantities={**before.quantities, **quantities})


def _line(
    facts: CompiledFacts, number: int, counts: dict[str, int], cost: LineCost | None
) -> tuple[str, dict[str, Quantity]]:
    parts, quantities = [], {}
    width = facts.access_bytes.get(number, 0)
    copies = counts.get("async_copy", 0)
    if copies:
        parts.append(f"{copies}x{width} B async copies" if width else f"{copies} async copies")
        quantities["async_copy_instructions"] = compiled(copies, "instructions")
    elif width and width < FULL_ACCESS_BYTES and cost is not None and (cost.share or 0) >= MATTERS:
        parts.append(f"{width} B per access")
    if width:
        quantities["access_width"] = compiled(width, "bytes per thread")
    spills = counts.get("spill_load", 0) + counts.get("spill_store", 0)
    if spills and facts.detail == "machine code":
        parts.append(f"spills: {spills}")
        quantities["spill_instructions"] = compiled(spills, "instructions")
    return ", ".join(parts), quantities


def _loop(loop: Loop, facts: CompiledFacts) -> tuple[str, dict[str, Quantity]]:
    words = {**_LOOP_WORDS, "tensor": facts.matrix_unit or _LOOP_WORDS["tensor"]}
    parts = [f"{loop.counts[kind]} {word}" for kind, word in words.items() if loop.counts.get(kind)]
    if not parts:
        return "", {}
    text = f"per iteration {', '.join(parts)}"
    if facts.pipeline_depth > 1 and (loop.counts.get("async_copy") or loop.counts.get("bulk_copy")):
        text += f"; {facts.pipeline_depth}-stage pipelined"
    quantities = {
        f"iteration_{kind}": compiled(count, "instructions")
        for kind, count in loop.counts.items()
        if kind in _LOOP_WORDS
    }
    return text, quantities
