"""Turn the counts and compiler facts of a launch into texts for its lines, quantities and findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from accelopt_profiling.measurement import Finding, LineCost
from accelopt_profiling.quantity import Quantity, compiled, estimated, executed
from accelopt_profiling.triton.capture.session import LaunchExecution
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.compilation.instructions import AssemblyLoop
from accelopt_profiling.triton.estimation.estimate import LaunchEstimate
from accelopt_profiling.triton.interpreter.counting import SECTOR_BYTES, LaunchCounts, LineCounts

#: Below this share of used bytes per sector a line is worth a finding, above this masked share too. Our choice.
POOR_SECTOR_USE = 0.5
MANY_MASKED = 0.25
#: Memory operations of fewer lanes than this are single numbers and flags, whatever their pattern.
FEW_LANES = 32
#: A line with a smaller share of the launch's accesses does not matter, however they lie. Our choice.
FEW_ACCESSES = 0.02
#: The widest access of one thread; narrower ones on lines that matter are mentioned.
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


class Scale:
    """Scales sums over the sampled programs to the whole launch.

    A count of all programs is exact. From a sample it is an estimate, whose interval is that of all programs being
    as light, or as heavy, as the lightest and the heaviest seen.
    """

    def __init__(self, execution: LaunchExecution, counts: LaunchCounts) -> None:
        self.factor = counts.programs / max(1, counts.sampled)
        self.exact = counts.sampled == counts.programs
        program_bytes = execution.program_bytes
        mean = sum(program_bytes) / len(program_bytes) if program_bytes else 0
        self._low, self._high = (min(program_bytes) / mean, max(program_bytes) / mean) if mean else (1.0, 1.0)

    def quantity(self, count: float, unit: str) -> Quantity:
        value = count * self.factor
        return (
            executed(value, unit)
            if self.exact
            else estimated(value, value * self._low, value * self._high, unit)
        )


def launch_quantities(execution: LaunchExecution, counts: LaunchCounts) -> dict[str, Quantity]:
    """Return the totals of a launch: bytes, sectors, operations, masked lanes (%), sector use (%)."""
    scale = Scale(execution, counts)
    lines = counts.lines.values()
    loads, stores = sum(x.load_bytes for x in lines), sum(x.store_bytes for x in lines)
    sectors = sum(x.load_sectors + x.store_sectors for x in lines)
    lanes = sum(x.lanes for x in lines)
    quantities = {
        "programs": executed(counts.programs, "programs"),
        "sampled_programs": executed(counts.sampled, "programs"),
        "load_bytes": scale.quantity(loads, "bytes"),
        "store_bytes": scale.quantity(stores, "bytes"),
        "sectors": scale.quantity(sectors, "sectors"),
        "float_ops": scale.quantity(sum(x.float_ops for x in lines), "operations"),
        "int_ops": scale.quantity(sum(x.int_ops for x in lines), "operations"),
        "special_ops": scale.quantity(sum(x.special for x in lines), "operations"),
        "mma_flops": scale.quantity(sum(sum(x.mma_flops.values()) for x in lines), "flops"),
        "atomics": scale.quantity(sum(x.atomics for x in lines), "operations"),
    }
    quantities = {
        k: q for k, q in quantities.items() if q.value or k in ("programs", "sampled_programs", "load_bytes")
    }
    if lanes:
        quantities["masked_lanes"] = executed(
            100 * sum(x.masked for x in lines) / lanes, "% of the sampled lanes"
        )
    if sectors:
        quantities["sector_use"] = executed(
            min(100.0, 100 * (loads + stores) / (sectors * SECTOR_BYTES)), "% of the sampled bytes"
        )
    return quantities


def line_costs(execution: LaunchExecution, counts: LaunchCounts) -> list[LineCost]:
    """Return one entry per line that moves memory, uses tensor cores or the special function units."""
    scale = Scale(execution, counts)
    sectors = sum(x.load_sectors + x.store_sectors for x in counts.lines.values())
    again = _read_again(execution, counts)
    costs = []
    for number, line in sorted(counts.lines.items()):
        unique = _unique_bytes(execution, counts, number, scale)
        text = _text(line, scale, unique=unique, again=number in again, sampled=counts.sampled)
        if number and text:
            share = (line.load_sectors + line.store_sectors) / sectors if sectors else None
            quantities = _line_quantities(line, scale)
            if unique is not None:
                quantities["unique_bytes"] = scale.quantity(unique / scale.factor, "bytes")
            costs.append(LineCost(number, text, share, quantities))
    return costs


def _read_again(execution: LaunchExecution, counts: LaunchCounts) -> set[int]:
    """Return the lines that only read again what an earlier line read in full, of the same single tensor."""
    readers: dict[str, list[int]] = {}
    for number in sorted(execution.line_tensors):
        for name in execution.line_tensors[number]:
            readers.setdefault(name, []).append(number)
    repeats: set[int] = set()
    for name, numbers in readers.items():
        first, *later = numbers
        if counts.lines[first].load_sectors >= counts.unique_load_sectors.get(name, 0):
            repeats.update(n for n in later if execution.line_tensors[n] == {name})
    return repeats


def _unique_bytes(
    execution: LaunchExecution, counts: LaunchCounts, number: int, scale: Scale
) -> float | None:
    """Return the distinct bytes that a line reads, at most its tensors' size; None where it reads nothing twice."""
    names = execution.line_tensors.get(number)
    if not names:
        return None
    unique = 0.0
    for name in names:
        touched = counts.unique_load_sectors.get(name, 0) * SECTOR_BYTES * scale.factor
        unique += min(touched, counts.tensor_bytes.get(name, touched))
    line = counts.lines[number]
    return unique if unique < 0.95 * line.load_bytes * scale.factor else None


def _text(line: LineCounts, scale: Scale, unique: float | None, again: bool, sampled: int) -> str:
    parts = []
    about = "" if scale.exact else "~"
    if line.load_bytes and not line.atomics:
        read = f"read {about}{size(line.load_bytes * scale.factor)}"
        read += " again" if again else f" ({size(unique)} unique)" if unique is not None else ""
        parts.append(read)
    if line.store_bytes and not line.atomics:
        parts.append(f"wrote {about}{size(line.store_bytes * scale.factor)}")
    if line.atomics:
        parts.append(f"{about}{amount(line.atomics * scale.factor)} atomics")
    if line.lanes and line.masked / line.lanes >= 0.01:
        parts.append(f"masked {100 * line.masked / line.lanes:.0f} %")
    use = sector_use(line)
    if use is not None and use < 0.9 and line.widest >= FEW_LANES:
        parts.append(f"{100 * use:.0f} % of sectors used")
    for dtype, flops in line.mma_flops.items():
        parts.append(f"{about}{amount(flops * scale.factor)}FLOP {dtype}")
    if line.special >= FEW_LANES * sampled and not parts:
        parts.append(f"{about}{amount(line.special * scale.factor)} special operations")
    return ", ".join(parts)


def _line_quantities(line: LineCounts, scale: Scale) -> dict[str, Quantity]:
    quantities = {
        "load_bytes": scale.quantity(line.load_bytes, "bytes"),
        "store_bytes": scale.quantity(line.store_bytes, "bytes"),
        "sectors": scale.quantity(line.load_sectors + line.store_sectors, "sectors"),
        "float_ops": scale.quantity(line.float_ops, "operations"),
        "special_ops": scale.quantity(line.special, "operations"),
        "mma_flops": scale.quantity(sum(line.mma_flops.values()), "flops"),
        "atomics": scale.quantity(line.atomics, "operations"),
    }
    quantities = {name: quantity for name, quantity in quantities.items() if quantity.value}
    if line.lanes:
        quantities["masked_lanes"] = executed(100 * line.masked / line.lanes, "% of the sampled lanes")
    use = sector_use(line)
    if use is not None:
        quantities["sector_use"] = executed(100 * use, "% of the sampled bytes")
    return quantities


def sector_use(line: LineCounts) -> float | None:
    """Return useful bytes over the bytes of the 32-byte sectors touched. None where none are."""
    sectors = line.load_sectors + line.store_sectors
    return min(1.0, (line.load_bytes + line.store_bytes) / (sectors * SECTOR_BYTES)) if sectors else None


def line_findings(counts: LaunchCounts) -> list[Finding]:
    """Return the findings ``uncoalesced`` and ``masked-lanes``, for operations wide and frequent enough to matter.

    Lines with the same share of masked lanes have one finding, on the first.
    """
    findings = []
    few = FEW_ACCESSES * sum(line.lanes for line in counts.lines.values())
    masked: dict[int, list[int]] = {}
    for number, line in sorted(counts.lines.items()):
        if not number or line.widest < FEW_LANES:
            continue
        use = sector_use(line)
        if use is not None and use < POOR_SECTOR_USE and line.lanes >= few:
            message = (
                f"Only {100 * use:.0f} % of the bytes of the 32-byte sectors this line touches are used; let "
                "neighbouring lanes access neighbouring elements."
            )
            findings.append(Finding("uncoalesced", number, "warning", message))
        if line.masked == line.lanes or (line.masked / line.lanes >= MANY_MASKED and line.lanes >= few):
            share = 100 if line.masked == line.lanes else min(99, round(100 * line.masked / line.lanes))
            masked.setdefault(share, []).append(number)
    for percent, numbers in masked.items():
        more = len(numbers) - 1
        where = f" here and on {more} more line{'s' * (more > 1)}" if more else ""
        message = (
            f"All lanes{where} are masked off in the sampled programs: with these arguments nothing is done there."
            if percent == 100
            else f"{percent} % of the lanes{where} are masked off in the sampled programs; where a size masks "
            "them, a block size that divides it would not start them."
        )
        findings.append(Finding("masked-lanes", numbers[0], "information", message))
    return findings


def size(nbytes: float) -> str:
    """Format bytes in decimal units: "11.8 MB"."""
    return f"{amount(nbytes)}B"


def amount(value: float) -> str:
    """Format a number with a decimal prefix and a space before it: "11.8 M", "640 "."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {prefix}"
    return f"{value:.0f} "


def with_code(lines: list[LineCost], facts: CompiledFacts) -> list[LineCost]:
    """Add the compiler's facts to ``lines``, and lines that only the compiler knows about."""
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


def with_hints(
    lines: list[LineCost], counts: LaunchCounts, facts: CompiledFacts | None, estimate: LaunchEstimate
) -> list[LineCost]:
    """Give each counted line its share of what limits the kernel, and its cause. A launch that is limited by its own
    overhead has no such parts."""
    if estimate.bound in ("launch", "program starts") or estimate.latency.us is None:
        return lines
    of_line = _AMOUNTS.get(estimate.bound, _sectors)
    amounts = {number: of_line(line) for number, line in counts.lines.items()}
    if estimate.bound == "memory":
        amounts |= {c.line: _from_memory(c, counts.lines[c.line]) for c in lines if c.line in counts.lines}
    if estimate.bound == "latency":
        amounts = {
            number: estimate.waits_us.get(number, 0.0) for number in {*counts.lines, *estimate.waits_us}
        }
    if estimate.bound == "integer":
        amounts = {number: estimate.integers_us.get(number, 0.0) for number in counts.lines}
        lines = _with_integers(lines, counts, amounts)
    if not any(amounts.values()):
        amounts = {number: _sectors(line) for number, line in counts.lines.items()}
    total = sum(amounts.values())
    hinted = []
    for cost in lines:
        line = counts.lines.get(cost.line)
        if line is not None and total:
            share = amounts[cost.line] / total
            waits = estimate.bound == "latency" and share > 0
            cause = "waits for load" if waits else _cause(cost, line, facts)
            cost = dataclasses.replace(cost, share=share, cause=cause)
        hinted.append(cost)
    return hinted


def _with_integers(lines: list[LineCost], counts: LaunchCounts, amounts: dict[int, float]) -> list[LineCost]:
    """Add the lines that have much of the integer operations and nothing else worth telling."""
    merged = {cost.line: cost for cost in lines}
    per_program = counts.programs / counts.sampled
    for number, part in amounts.items():
        if number and part >= MATTERS * sum(amounts.values()) and number not in merged:
            done = counts.lines[number].int_ops * per_program
            _add(merged, number, f"~{amount(done).strip()} integer operations", {})
    return [merged[number] for number in sorted(merged)]


def latency_cause(estimate: LaunchEstimate) -> str:
    """Return what a launch bound by latency waits for longest: ``programs wait for the load on line 12``; empty for
    other launches."""
    if estimate.bound != "latency" or not estimate.waits_us:
        return ""
    line = max(estimate.waits_us, key=lambda number: estimate.waits_us[number])
    return f"programs wait for the load on line {line}" if line else "programs wait for their first loads"


def _sectors(line: LineCounts) -> float:
    return line.load_sectors + line.store_sectors


def _from_memory(cost: LineCost, line: LineCounts) -> float:
    """Return the sectors that a line gets from memory or sends there: what it reads twice comes from a cache."""
    unique = cost.quantities.get("unique_bytes")
    moved = line.load_bytes and cost.quantities["load_bytes"].value
    part = (unique.value or 0.0) / moved if unique is not None and moved else 1.0
    return line.load_sectors * part + line.store_sectors


#: What a line has a share of, by what limits the kernel; memory where nothing else is said.
_AMOUNTS: dict[str, Callable[[LineCounts], float]] = {
    "tensor core": lambda line: sum(line.mma_flops.values()),
    "fp32": lambda line: line.float_ops,
    "fp64": lambda line: line.double_ops,
    "atomics": lambda line: line.atomics,
    "special functions": lambda line: line.special,
    "integer": lambda line: line.int_ops,
}


def _cause(cost: LineCost, line: LineCounts, facts: CompiledFacts | None) -> str:
    """Return in a word or two why a line costs what it costs: the worst thing about it, else what it does."""
    compiled_line = facts.lines.get(cost.line, {}) if facts is not None else {}
    if compiled_line.get("spill_load", 0) + compiled_line.get("spill_store", 0):
        return "spills"
    if line.atomics:
        return "atomics"
    use = sector_use(line)
    if use is not None and use < POOR_SECTOR_USE and line.widest >= FEW_LANES:
        return "strided"
    if line.lanes and line.masked / line.lanes >= MANY_MASKED:
        return f"masked {100 * line.masked / line.lanes:.0f} %"
    if line.mma_flops:
        return f"dot {next(iter(line.mma_flops))}"
    if line.load_bytes or line.store_bytes:
        return "read" if not line.store_bytes else "write" if not line.load_bytes else "read, write"
    return "special functions" if line.special else "arithmetic"


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


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _loop(loop: AssemblyLoop, facts: CompiledFacts) -> tuple[str, dict[str, Quantity]]:
    words = {**_LOOP_WORDS, "tensor": facts.matrix_unit or _LOOP_WORDS["tensor"]}
    counted = [(loop.counts.get(kind, 0), word) for kind, word in words.items()]
    parts = [f"{count} {_singular(word) if count == 1 else word}" for count, word in counted if count]
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
