"""The compiler's facts as short texts on source lines: what a loop does each time round, how wide an access is."""

from __future__ import annotations

from accelopt_profiling.measurement import LineCost
from accelopt_profiling.quantity import Quantity, compiled
from accelopt_profiling.triton.compiled import CompiledFacts
from accelopt_profiling.triton.listing import Loop

ACCESSES = {
    "global_load": "load",
    "global_store": "store",
    "async_copy": "async copy",
    "bulk_copy": "bulk copy",
}
NARROW = 4  # bytes: a thread that moves less in one access needs many of them


def compiled_lines(facts: CompiledFacts) -> list[LineCost]:
    """One entry per line that has something to say; texts such as "8 async copies of 16 B", "40 spills".

    Accesses are instructions of one thread, each counted once however often its loop runs. Texts on a loop's line are
    for one time round. Empty where the kernel does not compile.
    """
    texts: dict[int, list[str]] = {}
    quantities: dict[int, dict[str, Quantity]] = {}

    def say(line: int, text: str, name: str, value: float, unit: str) -> None:
        texts.setdefault(line, []).append(text)
        quantities.setdefault(line, {})[name] = compiled(value, unit)

    for loop in facts.loops:
        if text := _loop_text(loop, facts):
            tensor = loop.counts.get("tensor", 0)
            say(loop.line, text, "loop_tensor_instructions", tensor, "instructions per iteration")
    for line, counts in facts.lines.items():
        width = facts.access_bytes.get(line)
        for kind, name in ACCESSES.items():
            if count := counts.get(kind, 0):
                size = f" of {width} B" + (", narrow" if width < NARROW else "") if width else ""
                say(line, f"{_many(count, name)}{size}", f"{kind}_instructions", count, "instructions")
        if spills := counts.get("spill_load", 0) + counts.get("spill_store", 0):
            say(line, _many(spills, "spill"), "spill_instructions", spills, "instructions")
    for line, count in facts.convert_layouts.items():
        say(line, _many(count, "layout conversion"), "layout_conversions", count, "conversions")
    return [LineCost(line, ", ".join(texts[line]), None, quantities[line]) for line in sorted(texts) if line]


def _loop_text(loop: Loop, facts: CompiledFacts) -> str:
    parts = []
    if tensor := loop.counts.get("tensor", 0):
        parts.append(f"{tensor} {facts.matrix_unit or 'tensor'}")
    for kind, name in (("async_copy", "async copy"), ("bulk_copy", "bulk copy"), ("barrier", "barrier")):
        if count := loop.counts.get(kind, 0):
            parts.append(_many(count, name))
    if spills := loop.counts.get("spill_load", 0) + loop.counts.get("spill_store", 0):
        parts.append(_many(spills, "spill"))
    if not parts:
        return ""
    depth = f", {facts.pipeline_depth} tiles in flight" if tensor and facts.pipeline_depth > 1 else ""
    return f"each time round: {', '.join(parts)}{depth}"


def _many(count: int, name: str) -> str:
    if count == 1:
        return f"1 {name}"
    return f"{count} {name[:-1]}ies" if name.endswith("copy") else f"{count} {name}s"
