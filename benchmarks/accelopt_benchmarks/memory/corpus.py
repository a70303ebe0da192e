"""Reads the pairs made by hand, and makes renamed and reshaped clones of their slow sides."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass
from pathlib import Path

from accelopt_agent.transfer.pair_edit import edit_id, read_edit
from accelopt_benchmarks.edit_cases import read_edit_cases
from accelopt_memory.features import kernel_features
from accelopt_memory.records import Pair
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

#: The targets that the kernels are profiled for.
TARGETS = {"triton": "h100", "nki": "trn1", "nki of today": "trn2"}


@dataclass(frozen=True)
class OtherKernel:
    """A kernel that an edit is carried over to.

    ``relation`` is "own", "renamed", "reshaped" or "other operator".
    """

    name: str
    relation: str
    text: str

    @property
    def kernel(self) -> str:
        return first_kernel(self.text)


@dataclass(frozen=True)
class CorpusPair:
    """A slow and a fast version of one file, and other kernels with the same fault."""

    name: str
    path: Path
    slow: str
    fast: str
    others: tuple[OtherKernel, ...]

    @property
    def kernel(self) -> str:
        return first_kernel(self.slow)

    @property
    def target(self) -> str:
        dialect = next(k.dialect for k in find_kernels(self.slow).kernels)
        today = dialect == "nki" and "neuronxcc" not in self.slow
        return TARGETS["nki of today" if today else dialect]

    def as_pair(self, ratio: float = 1.5) -> Pair:
        """Return what the memory keeps of it, as a person's.

        ``ratio`` is the speedup that it is taken to have.
        """
        kernels = {k.name: k for k in find_kernels(self.slow).kernels}
        after = {k.name: k.content_hash for k in find_kernels(self.fast).kernels}
        mine = kernels[self.kernel]
        slow, fast = Latency(100.0, 90.0, 110.0, Known.ESTIMATED), 100.0 / ratio
        return Pair(
            kernel=self.kernel,
            dialect=mine.dialect,
            target=self.target,
            slow_text=self.slow,
            fast_text=self.fast,
            slow_hash=mine.content_hash,
            fast_hash=after.get(self.kernel, ""),
            origin="person",
            summary=self.name.replace("_", " "),
            features=kernel_features(self.slow, self.kernel, "memory"),
            slow=slow,
            fast=Latency(fast, 0.9 * fast, 1.1 * fast, Known.ESTIMATED),
            steps=("person",),
            file=str(self.path),
            bound="memory",
            edit=edit_id(read_edit(self.slow, self.fast)),
        )

    def clones(self) -> tuple[OtherKernel, ...]:
        """Return the slow side itself, renamed, and renamed with other sizes and a line more."""
        clone = renamed(self.slow)
        return (
            OtherKernel("own", "own", self.slow),
            OtherKernel("renamed", "renamed", clone),
            OtherKernel("reshaped", "reshaped", reshaped(clone)),
        )


def read_pairs(folder: Path) -> list[CorpusPair]:
    """Return the pairs in ``folder``: a file each: the slow side, and what differs in ``fast`` and ``other_*``.

    Raises:
        ValueError: there is none, or one lacks its fast side.
    """
    pairs = [_read_pair(file) for file in sorted(folder.glob("*.txt"))]
    if not pairs:
        raise ValueError(f"{folder} holds no pair")
    return pairs


def _read_pair(file: Path) -> CorpusPair:
    (case,) = read_edit_cases(file)
    slow = case.lead
    others = tuple(
        OtherKernel(name, "other operator", case.version(name, slow)) for name in case.parts if name != "fast"
    )
    return CorpusPair(file.stem, file.with_suffix(".py"), slow, case.version("fast", slow), others)


def first_kernel(text: str) -> str:
    """Return the name of the first kernel of ``text`` that host code launches."""
    return find_kernels(text).launched[0].name


#: Names by which the profiler finds a problem.
_KEPT = frozenset({"get_inputs", "reference", "entry", "shapes", "tolerance"})


def renamed(text: str) -> str:
    """Return ``text`` with every name that it binds called otherwise, but for those of the problem: ``reference`` and
    ``get_inputs`` stay with their parameters."""
    tree = ast.parse(text)
    own_names = set(_KEPT)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in _KEPT:
            own_names |= {a.arg for a in node.args.args}
    entry = next(
        (n.value.value for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
         and ast.unparse(n.targets[0]) == "entry"),
        None,
    )  # fmt: skip
    own_names |= {str(entry)}
    if entry is not None:
        own_names |= {
            a.arg
            for n in tree.body
            if isinstance(n, ast.FunctionDef) and n.name == entry
            for a in n.args.args
        }
    bound = _bound_names(tree) - own_names - set(dir(builtins))
    names = {name: f"{name[0]}{number}_{name[-1]}" for number, name in enumerate(sorted(bound), 1)}
    changed = [(n.lineno, n.col_offset, old) for n, old in _mentions(tree) if old in names]
    lines = text.splitlines(keepends=True)
    for line, column, old in sorted(changed, reverse=True):
        raw = lines[line - 1]
        at = raw.find(old, column)
        lines[line - 1] = raw[:at] + names[old] + raw[at + len(old) :]
    return "".join(lines)


def _bound_names(tree: ast.Module) -> set[str]:
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return names | {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def _mentions(tree: ast.Module) -> list[tuple[ast.expr | ast.arg | ast.FunctionDef | ast.keyword, str]]:
    """Return every node that says a name, with the name.

    Keywords only where a function of the file is called.
    """
    mentions: list[tuple[ast.expr | ast.arg | ast.FunctionDef | ast.keyword, str]] = []
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            mentions.append((node, node.id))
        elif isinstance(node, ast.arg):
            mentions.append((node, node.arg))
        elif isinstance(node, ast.FunctionDef):
            mentions.append((node, node.name))
        elif isinstance(node, ast.Call):
            called = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            if isinstance(called, ast.Name) and called.id in functions:
                mentions += [(k, k.arg) for k in node.keywords if k.arg]
    return mentions


def reshaped(text: str) -> str:
    """Return ``text`` with powers of two above 32 doubled in the kernels and launches (256 becomes 512, but 128 in an
    NKI kernel, the number of partitions, stays), and a line more in each kernel: a value that nothing uses."""
    tree = ast.parse(text)
    problem = {
        line
        for n in tree.body
        if (isinstance(n, ast.FunctionDef) and n.name in _KEPT) or "shapes" in ast.unparse(n)[:6]
        for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)
    }
    spared = {"128"} if "nki" in text else set()

    def doubled(match: re.Match[str]) -> str:
        number = match.group()
        return number if number in spared else str(2 * int(number))

    pattern = re.compile(r"(?<![\w.])(?:64|128|256|512|1024)(?![\w.])")
    lines = [
        line if number in problem else pattern.sub(doubled, line)
        for number, line in enumerate(text.splitlines(keepends=True), 1)
    ]
    for kernel in sorted(find_kernels(text).kernels, key=lambda k: -k.line):
        node = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno == kernel.line)
        first = node.body[0].lineno
        parameter = node.args.args[-1].arg
        lines.insert(first - 1, f"    spare = {parameter}\n")
    return "".join(lines)
