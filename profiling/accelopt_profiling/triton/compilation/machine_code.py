"""NVIDIA machine code: ``nvdisasm`` on a cubin, read into instructions with source lines and loops.

This is what runs: spills, the real loads and the tensor instructions after ``ptxas`` has scheduled them. It takes
0.3 to 0.6 s, so it comes after the facts from PTX. Scheduling moves some tensor and wait instructions to neighbouring
lines: memory accesses and spills are true per line, tensor instructions only per loop or kernel.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from accelopt_profiling.triton.compilation.instructions import AssemblyInstruction, Listing, sass_class

_POSITION = re.compile(r'//## File "([^"]+)", line (\d+)(?: inlined at "([^"]+)", line (\d+))?')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)(.*)$")
_LABEL = re.compile(r"^(\.L_x?_?\d+|\.L_x_\d+):")
_GOAL = re.compile(r"`\((\.L_\w+)\)")
_SIZE = re.compile(r"\.(U?8|S8|U16|S16|64|128|256)(?=\.|$)")


class DisassemblyError(RuntimeError):
    """``nvdisasm`` could not read a cubin; with its message."""


def disassemble(cubin: bytes, nvdisasm: str, *, timeout: float = 30.0) -> str:
    """Return the text of ``nvdisasm -c -gi`` for a cubin.

    ``nvdisasm`` is the program's path.

    Raises:
        DisassemblyError: the program is missing, failed, or took longer than ``timeout`` seconds.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run(
                [nvdisasm, "-c", "-gi", file.name],
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DisassemblyError(f"nvdisasm did not finish: {error}") from error
    if done.returncode != 0:
        raise DisassemblyError(
            f"nvdisasm failed with exit code {done.returncode}: {done.stderr.strip()[:500]}"
        )
    return done.stdout


def parse_sass(text: str, file: str, ptx: Listing | None = None) -> Listing:
    """Read ``nvdisasm -c -gi`` text.

    ``file`` is the user's source file; only its last part is compared. ``ptx`` is the listing of the PTX the binary
    was made from: Triton 3.7 writes no inlining chain into the cubin, so it says where code of other files belongs
    (a position inlined from several lines gets line 0), and which lines are those of inline assembly.
    """
    inlined, misplaced = (ptx.inlined, ptx.misplaced) if ptx is not None else ({}, {})
    user_file = PurePath(file).name
    blocks: list[list[AssemblyInstruction]] = [[]]
    labels: dict[str, int] = {}
    goals: dict[int, list[str]] = {}
    falls_through: dict[int, bool] = {}
    chain: list[tuple[str, int]] = []
    line = 0
    for row in text.splitlines():
        if position := _POSITION.search(row):
            chain.append((PurePath(position[1]).name, int(position[2])))
            if position[3]:
                chain.append((PurePath(position[3]).name, int(position[4])))
        elif label := _LABEL.match(row):
            if blocks[-1]:
                blocks.append([])
            labels[label[1]] = len(blocks) - 1
        elif match := _INSTRUCTION.match(row):
            if chain:
                line = _resolve(chain, user_file, inlined)
                chain = []
            _, predicate, opcode, operands = match.groups()
            kind = sass_class(opcode)
            true_line = misplaced.get((kind, line), line)
            blocks[-1].append(
                AssemblyInstruction(opcode, kind, line=true_line, loops=(), bytes=_bytes(opcode, kind))
            )
            if kind == "branch":
                here = len(blocks) - 1
                goals[here] = _GOAL.findall(operands)
                ends = opcode.startswith(("EXIT", "BRA", "JMP", "RET"))
                uniform = ".U" in opcode or " UP" in operands
                falls_through[here] = not ends or predicate is not None or uniform
                blocks.append([])
    return _with_loops(blocks, labels, goals, falls_through)


def machine_code(cubin: bytes, nvdisasm: str | Path, file: str, ptx: Listing | None = None) -> Listing:
    """Disassemble a cubin and parse the text.

    Raises:
        DisassemblyError: see ``disassemble``.
    """
    return parse_sass(disassemble(cubin, str(nvdisasm)), file, ptx)


def _resolve(chain: list[tuple[str, int]], user_file: str, inlined: Mapping[str, frozenset[int]]) -> int:
    for name, line in chain:
        if name == user_file:
            return line
    for name, line in chain:
        callers = inlined.get(f"{name}:{line}", frozenset())
        if len(callers) == 1:
            return next(iter(callers))
    return 0


def _with_loops(
    blocks: list[list[AssemblyInstruction]],
    labels: Mapping[str, int],
    goals: Mapping[int, list[str]],
    falls_through: Mapping[int, bool],
) -> Listing:
    successors: list[list[int]] = []
    for number in range(len(blocks)):
        following = [labels[goal] for goal in goals.get(number, []) if goal in labels]
        if falls_through.get(number, True) and number + 1 < len(blocks):
            following.append(number + 1)
        successors.append(following)
    loops = natural_loops(successors)
    outermost_first = sorted(loops, key=lambda header: -len(loops[header]))
    lines: dict[str, int] = {}
    for header, body in loops.items():
        for number in sorted(body):
            if header in successors[number] and blocks[number] and blocks[number][-1].line:
                lines[str(header)] = blocks[number][-1].line
    whole: list[AssemblyInstruction] = []
    for number, block in enumerate(blocks):
        nest = tuple(str(header) for header in outermost_first if number in loops[header])
        whole.extend(replace(instruction, loops=nest) for instruction in block)
    return Listing(tuple(whole), lines)


def _bytes(opcode: str, kind: str) -> int:
    """Return the bytes that one thread moves in one global access: 4 unless the opcode says otherwise."""
    if kind not in ("global_load", "global_store", "async_copy"):
        return 0
    size = _SIZE.search(opcode)
    return 4 if size is None else int(re.sub(r"\D", "", size[1])) // 8


def natural_loops(successors: Sequence[Sequence[int]]) -> dict[int, frozenset[int]]:
    """Find the loops of a control flow graph with entry block 0: for each header the blocks of its loop, itself
    included.

    A loop is what can reach an edge into a block that dominates the edge's origin (Aho, Lam, Sethi and Ullman,
    "Compilers", section 9.6). Blocks that cannot be reached from the entry belong to no loop.
    """
    count = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for block, following in enumerate(successors):
        for other in following:
            predecessors[other].append(block)
    dominators = _dominators(successors, predecessors)
    loops: dict[int, set[int]] = {}
    for block, following in enumerate(successors):
        for header in following:
            if block in dominators and header in dominators[block]:
                body = loops.setdefault(header, {header})
                waiting = [block]
                while waiting:
                    inside = waiting.pop()
                    if inside not in body:
                        body.add(inside)
                        waiting.extend(p for p in predecessors[inside] if p in dominators)
    return {header: frozenset(body) for header, body in loops.items()}


def _dominators(
    successors: Sequence[Sequence[int]], predecessors: Sequence[Sequence[int]]
) -> dict[int, set[int]]:
    reached: list[int] = []
    waiting, visited = [0] if successors else [], {0}
    while waiting:
        block = waiting.pop()
        reached.append(block)
        for other in successors[block]:
            if other not in visited:
                visited.add(other)
                waiting.append(other)
    everything = set(reached)
    dominators = {block: {block} if block == 0 else set(everything) for block in reached}
    changed = True
    while changed:
        changed = False
        for block in reached:
            if block == 0:
                continue
            above = [dominators[p] for p in predecessors[block] if p in dominators]
            new = {block} | set.intersection(*above)
            if new != dominators[block]:
                dominators[block], changed = new, True
    return dominators
