"""Carries the edit of a pair over to another kernel by a three-way merge.

The base is the slow side as the other kernel would call it, theirs is the fast side, ours the other kernel. The result
follows the lines of the fast side; a line that the edit left alone, changed or moved is taken from the other kernel,
and what only that has stays where it was. It goes over kernel, helpers, launch and module. A merged file that Python
itself could not run is refused: a call that names a keyword twice, a name that is read before anything binds it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accelopt_agent.syntax.token_lines import (
    LogicalLine,
    Token,
    TokenizedFunction,
    TokenizedSource,
    code_lines,
    read_tokens,
)
from accelopt_agent.transfer.kernel_match import KernelMatch, match_kernels
from accelopt_agent.transfer.line_merge import MergedBlock, MergedLine, merge_block
from accelopt_agent.transfer.pair_edit import PairEdit, read_edit
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.name_paths import import_paths
from accelopt_profiling.source_text import syntax_of

#: An edit fits where at least this share of the lines that it changes stand in the other kernel.
LEAST_FIT = 0.6


@dataclass(frozen=True)
class TransferredEdit:
    """``text`` is the other file after the edit.

    ``fit`` is the share (0..1) of the lines which the edit changes that were there; ``whole`` tells that all of its
    parts were merged.
    """

    text: str
    fit: float
    whole: bool


def transfer(
    slow_text: str, fast_text: str, pair_kernel: str, text: str, kernel: str
) -> TransferredEdit | None:
    """Apply the edit of a pair to ``kernel`` in ``text``: all of it, or else those parts that fit wholly; None where
    none fits.

    The result is not known to be right: the gate decides that. It parses, holds the kernel, and reads no name that
    nothing has bound by then.
    """
    try:
        edit, target = read_edit(slow_text, fast_text), read_tokens(text)
        touched = {b.name for b in edit.blocks if any(e.hunk for e in b.lines)}
        match = match_kernels(edit.slow, pair_kernel, target=target, other=kernel, touched=touched)
    except SyntaxError:
        return None
    if match is None or not edit.hunks:
        return None
    for hunks in _attempts(edit, match):
        merged = _merged(edit, match, hunks)
        fit = sum(b.placed for b in merged) / max(1e-9, sum(b.wanted for b in merged))
        if fit < LEAST_FIT or not any(b.changed for b in merged):
            continue
        result = merge_file(edit, match, target=target, merged=merged, hunks=hunks)
        if result is not None and result != text and is_sound(result, text, kernel):
            return TransferredEdit(result, min(1.0, fit), len(hunks) == len(edit.hunks))
    return None


def reproduces(slow_text: str, fast_text: str, kernel: str) -> bool:
    """Return whether a pair's own edit makes its fast side of its slow side, token for token."""
    own = transfer(slow_text, fast_text, pair_kernel=kernel, text=slow_text, kernel=kernel)
    if own is None:
        return False
    result, fast = (code_lines(read_tokens(text).lines) for text in (own.text, fast_text))
    return [(line.depth, line.key) for line in result] == [(line.depth, line.key) for line in fast]


def _attempts(edit: PairEdit, match: KernelMatch) -> Iterator[frozenset[int]]:
    """Yield all hunks, then those whose every line stands in the other kernel."""
    whole = frozenset(edit.hunks)
    yield whole
    fitting = frozenset(hunk for hunk in edit.hunks if _fits(_merged(edit, match, frozenset({hunk}))))
    if fitting and fitting != whole:
        yield fitting
    if len(fitting) > 1:
        for hunk in sorted(fitting):
            yield frozenset({hunk})


def _fits(merged: list[MergedBlock]) -> bool:
    return all(b.placed >= b.wanted for b in merged)


def _merged(edit: PairEdit, match: KernelMatch, hunks: frozenset[int]) -> list[MergedBlock]:
    return [merge_block(block, edit, match, hunks) for block in edit.blocks]


_IMPORTS = ("import", "from")


def merge_file(
    edit: PairEdit,
    match: KernelMatch,
    target: TokenizedSource,
    merged: Sequence[MergedBlock],
    hunks: frozenset[int],
) -> str | None:
    """Return the other file with its merged blocks.

    None where they use something that it does not import and cannot be given.
    """
    writer = _Writer(target, edit)
    blocks = {b.target_name: b for b in merged if b.target_name is not None}
    new = {b.name: b for b in merged if b.target_name is None and b.lines is not None}
    module = blocks.get("")
    inserted = _insertions(edit, match, target=target, new=new, module=module, hunks=hunks)
    rewritten = {id(m.own): m for m in (module.lines or ()) if m.own is not None} if module else {}
    starts = {f.position: f for f in target.functions}
    used = {t.text for b in merged for m in (b.lines or ()) for t in m.tokens if b.name and t.kind == "local"}
    module_lines = set(target.module)
    parts: list[str] = []
    at = 0
    while at < len(target.lines):
        function = starts.get(at)
        parts += writer.additions(inserted.get(at, ()), apart=at - 1 not in module_lines)
        if function is not None:
            block = blocks.get(function.name)
            if block is None or (block.lines is None and not block.gone):
                parts.append(writer.raw(function))
            elif not block.gone:
                parts.append(writer.block(block.lines or []))
            at += len(function.lines)
            continue
        line = target.lines[at]
        if module is None or module.lines is None or line.is_text:
            parts.append(writer.raw_line(line))
        elif (now := rewritten.get(id(line))) is not None:
            parts.append(writer.line(now))
        elif line.tokens[0].text in used:
            parts.append(writer.raw_line(line))
        at += 1
    parts += writer.additions(inserted.get(len(target.lines), ()), apart=True)
    if writer.missing is None:
        return None
    end = target.lines[-1].end if target.lines else 0
    rest = target.newline.join(target.physical[end:])
    imports = "".join(f"{line}{target.newline}" for line in sorted(writer.missing))
    return writer.with_imports("".join(parts) + rest, imports)


def _insertions(
    edit: PairEdit,
    match: KernelMatch,
    target: TokenizedSource,
    new: dict[str, MergedBlock],
    module: MergedBlock | None,
    hunks: frozenset[int],
) -> dict[int, list[MergedLine | list[MergedLine]]]:
    """Return new lines and functions of the module by the line of the target (a position among its lines) before which
    they stand: the one that matches what follows them on the fast side."""
    places: dict[int, list[MergedLine | list[MergedLine]]] = {}
    functions = {f.name: f for f in target.functions}
    positions = [k for k in target.module if not target.lines[k].is_text]
    entries = _module_order(edit)
    additions = [m for m in (module.lines or ()) if m.own is None] if module else []
    module_match = match.blocks[""]
    block = edit.block("")
    assert block is not None
    slow_of = {e.fast: e.slow for e in block.lines if e.fast is not None}
    fresh = [e.fast for e in block.lines if e.fast is not None and e.slow is None and e.hunk in hunks]
    by_fast = dict(zip(fresh, additions, strict=False))
    waiting: list[MergedLine | list[MergedLine]] = []
    for kind, value in entries:
        at: int | None = None
        if isinstance(value, str):
            if value in new:
                waiting.append(new[value].lines or [])
                continue
            if value in match.blocks:
                at = functions[match.blocks[value].target_name].position
        else:
            if value in by_fast:
                if by_fast[value].tokens[0].text not in _IMPORTS:
                    waiting.append(by_fast[value])
                continue
            slow = slow_of.get(value)
            there = module_match.lines.get(slow) if slow is not None else None
            at = positions[there] if there is not None else None
        if at is not None and waiting and kind != "import":
            places.setdefault(at, []).extend(waiting)
            waiting = []
    if waiting:
        places.setdefault(len(target.lines), []).extend(waiting)
    return places


def _module_order(edit: PairEdit) -> list[tuple[str, str | int]]:
    """Return what the fast side consists of, in order: its functions by name, its other lines by their number."""
    order: list[tuple[int, str, str | int]] = [(f.position, "function", f.name) for f in edit.fast.functions]
    code = [k for k in edit.fast.module if not edit.fast.lines[k].is_text]
    for number, position in enumerate(code):
        text = edit.fast.lines[position].tokens[0].text
        order.append((position, "import" if text in _IMPORTS else "line", number))
    return [(kind, value) for _, kind, value in sorted(order, key=lambda entry: entry[0])]


class _Writer:
    def __init__(self, target: TokenizedSource, edit: PairEdit) -> None:
        self._target = target
        self._unit = next((x.indent for x in target.lines if x.depth == 1 and x.indent), "    ")
        self._given = {path: name for side in (edit.slow, edit.fast) for path, name in side.imports.items()}
        self.missing: set[str] | None = set()

    def raw(self, function: TokenizedFunction) -> str:
        return "".join(self.raw_line(line) for line in function.lines)

    def raw_line(self, line: LogicalLine) -> str:
        texts = self._target.physical[line.lead : line.end]
        return "".join(text + self._target.newline for text in texts)

    def block(self, lines: Sequence[MergedLine]) -> str:
        return "".join(self.line(line) for line in lines)

    def additions(self, pieces: Sequence[MergedLine | list[MergedLine]], *, apart: bool) -> Iterator[str]:
        """Yield new lines and functions of the module. ``apart``: blank lines stand before them."""
        for piece in pieces:
            function = isinstance(piece, list)
            yield (self._target.newline * 2 if function or apart else "") + self.block(
                piece if isinstance(piece, list) else [piece]
            )
            apart = function

    def line(self, line: MergedLine) -> str:
        own = line.own
        if own is not None and line.depth == own.depth and line.tokens == list(own.tokens):
            return self.raw_line(own)
        indent = self._unit * line.depth
        texts = self._lead(own, line.depth) if own is not None else []
        code = ""
        for k, token in enumerate(line.tokens):
            space = token.space if k else ""
            code += ("" if space == " " and code[-1] in "([{" else space) + self._text(token)
        if own is not None and own.tail:
            code += own.tail if own.tail.startswith("\\") else f"  {own.tail.lstrip()}"
        texts += [indent + code]
        return "".join(t.replace("\n", self._target.newline) + self._target.newline for t in texts)

    def _lead(self, own: LogicalLine, depth: int) -> list[str]:
        texts = self._target.physical[own.lead : own.first]
        return [t if not t.strip() else self._unit * depth + t.lstrip() for t in texts]

    def _text(self, token: Token) -> str:
        """Return the token as this file says it. An import that it lacks is noted."""
        if not token.imported:
            return token.text
        name = self._target.imports.get(token.value)
        if name is not None:
            return name
        roots = {path.split(".")[0] for path in self._target.imports}
        if token.value.split(".")[0] not in roots or token.text in self._target.imports.values():
            self.missing = None
        elif self.missing is not None:
            head, _, last = token.value.rpartition(".")
            statement = f"import {token.value} as {token.text}" if head else f"import {token.value}"
            self.missing.add(f"from {head} import {last}" if head and last == token.text else statement)
        return token.text

    def with_imports(self, text: str, imports: str) -> str:
        """Return ``text`` with further imports behind its last one."""
        if not imports:
            return text
        lines = [x for x in self._target.lines if x.tokens[0].text in _IMPORTS and not x.depth]
        if not lines:
            return imports + text
        before = "".join(t + self._target.newline for t in self._target.physical[: lines[-1].end])
        return before + imports + text[len(before) :] if text.startswith(before) else imports + text


_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_sound(result: str, before: str, kernel: str) -> bool:
    """Return whether ``result`` parses, still holds the kernel in its dialect, and reads no name too early that
    ``before`` does not read too early as well."""
    try:
        if _repeats(syntax_of(result)):
            return False
        unbound = _unbound(result) - _unbound(before)
    except SyntaxError:
        return False
    dialects = {k.name: k.dialect for k in find_kernels(before).kernels}
    return (
        not unbound
        and {k.name: k.dialect for k in find_kernels(result).kernels}.get(kernel) == dialects[kernel]
    )


def _repeats(tree: ast.AST) -> bool:
    """Return whether a call names a keyword twice, or a function a parameter, which the parser lets pass."""
    groups = [[k.arg for k in n.keywords if k.arg] for n in ast.walk(tree) if isinstance(n, ast.Call)]
    groups += [
        [a.arg for a in ast.walk(n.args) if isinstance(a, ast.arg)]
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef)
    ]
    return any(len(names) != len(set(names)) for names in groups)


def _unbound(text: str) -> set[tuple[str, str]]:
    """Return the names that a function reads before something binds them, each with its function."""
    tree = syntax_of(text)
    outside = set(dir(builtins)) | {"__file__", "__name__"}
    for statement in tree.body:
        outside |= _bound(statement, inside=not isinstance(statement, (*_Function, ast.ClassDef)))
    reads: set[tuple[str, str]] = set()
    for statement in tree.body:
        name = getattr(statement, "name", "")
        inside = _bound(statement, inside=True)
        reader = _BoundNameReader(outside - inside | {name}, outside | inside)
        if isinstance(statement, _Function):
            reader.read_function(statement)
        else:
            reader.known |= inside
            reader.visit(statement)
        reads |= {(name, early) for early in reader.early}
    return reads


class _BoundNameReader(ast.NodeVisitor):
    """Reads a function in the order in which it runs, every branch taken and every loop once. ``known`` are the names
    bound so far, ``ever`` those that are bound anywhere, which is all that what runs later asks for."""

    def __init__(self, names: set[str], ever: set[str]) -> None:
        self.known, self.ever, self.early = names, ever, set[str]()

    def read_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.known |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        self._each(*node.body)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self.known:
            self.early.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.known.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._each(node.value, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each(node.annotation, node.value)
        if node.value is not None:
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        self._each(node.value, node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._each(node.value, node.target)

    def visit_For(self, node: ast.For) -> None:
        self._each(node.iter, node.target, *node.body, *node.orelse)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.known |= _bound(node, inside=False)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.known |= _bound(node, inside=False)

    visit_ImportFrom = visit_Import

    def _later(self, node: ast.AST) -> None:
        """Read what runs later, or binds names of its own: any name bound somewhere will do."""
        self.known |= _bound(node, inside=False)
        self.early |= {
            n.id
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in self.ever
        }

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _later
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Match = _later

    def _each(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)


def _bound(statement: ast.AST, *, inside: bool) -> set[str]:
    """Return the names that a statement binds, those bound ``inside`` of it too."""
    names: set[str] = set()
    nodes = ast.walk(statement) if inside else iter([statement])
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= import_paths(node).keys()
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names
