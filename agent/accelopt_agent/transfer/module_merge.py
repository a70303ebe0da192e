"""Writes the file after a merge: changed functions, and new lines of the module where the fast side has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelopt_agent.syntax.token_lines import LogicalLine, Token, TokenizedFunction, TokenizedSource
from accelopt_agent.transfer.kernel_match import KernelMatch
from accelopt_agent.transfer.line_merge import MergedBlock, MergedLine
from accelopt_agent.transfer.pair_edit import PairEdit

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
    inserted = _insertions(edit, match, target, new, module, hunks)
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
