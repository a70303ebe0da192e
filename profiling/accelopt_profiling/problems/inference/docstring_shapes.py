"""Read the shapes of arguments from docstrings, from comments beside parameters, and from annotations."""

from __future__ import annotations

import ast
import re

from accelopt_profiling.source_text import source_lines

_SHAPE = re.compile(r"[\[(]\s*([A-Za-z_0-9][\w ]*(?:[*/+\-] ?[\w]+ ?)*(?:,\s*[\w*/+\- ]*)+)[\])]")
_VECTOR = re.compile(r"^\W*\[\s*([A-Z]\w*(?: ?[*/+] ?\w+)*)\s*\]")
#: ``of shape [N]``, in the middle of a sentence.
_NAMED_VECTOR = re.compile(r"\bshape:? [\[(]\s*([A-Za-z_]\w*)\s*[\])]")
_PARAMETER = re.compile(
    r"^\s*(?:[-*]\s+)?[`*]*(\w+(?:\s*(?:,|/|and)\s*\w+)*)[`*]*\s*(?:\([^)]*\))?\s*[`*]*\s*:(.*)$"
)
_NO_SIZES = frozenset(
    ("optional", "tensor", "int", "float", "bool", "str", "none", "torch", "default", "or", "e", "i")
)


def docstring_shapes(function: ast.FunctionDef) -> dict[str, list[list[str]]]:
    """Return the dimensions by argument that the function's docstring states, ``x: [B, T, H, K]`` in its many ways; all
    of them in order where it offers several, ``(M, N) or (B, M, N)``."""
    text = ast.get_docstring(function) or ""
    names = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    shapes: dict[str, list[list[str]]] = {}
    current: list[str] = []
    for line in source_lines(text):
        matched = _PARAMETER.match(line)
        listed = re.split(r"\s*(?:,|/|and)\s*", matched[1]) if matched else []
        if matched and any(n in names for n in listed):
            current, rest = [n for n in listed if n in names], matched[2]
            typed = line[: line.index(":")]
            rest = (
                rest if parse_shapes(rest) else f"{rest} {typed[typed.find('(') :] if '(' in typed else ''}"
            )
        elif not line.strip() or re.match(r"\s*(Returns?|Args|Parameters|Raises|Examples?|Note)\b", line):
            current, rest = [], ""
        else:
            rest = line
        if current and (stated := parse_shapes(rest)):
            for name in current:
                shapes.setdefault(name, stated)
    return shapes


#: ``n: int``, ``n (int): ...``, and the type of a tensor, ``idx: (K, 1) uint32``.
_NUMBER = re.compile(
    r"^\s*(?:[-*]\s+)?`*(\w+)`*\s*(?:\((int|float|bool)\b[^)]*\)\s*:|:\s*(int|float|bool)\b)"
)
_INTEGERS = re.compile(
    r"^\s*(?:[-*]\s+)?`*(\w+)`*\s*(?:\([^)]*\))?\s*:.*[\])]\s*,?\s*(?:of )?(u?int(?:8|16|32))\b"
)


def docstring_types(function: ast.FunctionDef) -> dict[str, str]:
    """Return the types by argument that the docstring states: of numbers, and of tensors of whole numbers."""
    lines = source_lines(ast.get_docstring(function) or "")
    numbers = {match[1]: match[2] or match[3] for line in lines if (match := _NUMBER.match(line))}
    return {match[1]: match[2] for line in lines if (match := _INTEGERS.match(line))} | numbers


def comment_shapes(text: str, function: ast.FunctionDef) -> dict[str, list[list[str]]]:
    """Return the dimensions that comments beside the parameters state: ``x: torch.Tensor,  # [M, K]``."""
    lines = source_lines(text)
    shapes: dict[str, list[list[str]]] = {}
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        line = lines[argument.lineno - 1] if argument.lineno <= len(lines) else ""
        at = line.find("#")
        if at >= 0 and (stated := parse_shapes(line[at:])):
            shapes[argument.arg] = stated
        if isinstance(argument.annotation, ast.Subscript) and (dims := _annotated(argument.annotation)):
            shapes[argument.arg] = [dims]
    return shapes


def _annotated(annotation: ast.Subscript) -> list[str]:
    """``Float[Tensor, "batch heads dim"]``."""
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
    words = [p.value.split() for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
    return words[0] if words and all(w.isidentifier() or w.isdigit() for w in words[0]) else []


def parse_shapes(text: str) -> list[list[str]]:
    """Return the dimensions of each shape in ``text``, in order. Braces and "..." give none."""
    shapes: list[list[str]] = []
    vector = _VECTOR.match(text) or _NAMED_VECTOR.search(text)
    if vector is not None and _is_dimension(vector[1]):
        shapes.append([vector[1]])
    for matched in _SHAPE.finditer(text):
        dims = [_whole(d.strip()) for d in matched[1].split(",")]
        dims = dims[:-1] if dims and not dims[-1] else dims
        if dims and all(_is_dimension(d) for d in dims):
            shapes.append(
                [d.replace(" ", "_") if " " in d and not re.search(r"[*/+\-]", d) else d for d in dims]
            )
    return shapes


def _whole(dimension: str) -> str:
    """Return a dimension in whole numbers.

    The number of a size's blocks as the size, which is enough of any block.
    """
    return re.sub(r"(?<!/)/(?!/)", "//", re.sub(r"\s*//?\s*\w*block\w*", "", dimension, flags=re.IGNORECASE))


def _is_word(text: str) -> bool:
    """Tell that a name is a word of a sentence.

    ``e`` and ``i`` stand in "e.g.", ``E`` and ``I`` are sizes.
    """
    return text.lower() in _NO_SIZES and not (len(text) == 1 and text.isupper())


def _is_dimension(text: str) -> bool:
    words = re.findall(r"[A-Za-z_]\w*", text)
    if not text or any(_is_word(w) for w in words) or "**" in text or "//" in text.replace(" // ", ""):
        return bool(text) and "//" in text and not any(_is_word(w) for w in words)
    return bool(re.fullmatch(r"[\w ]+(\s*[*/+\-]{1,2}\s*\w+)*", text)) and len(words) <= 3
