"""Read a source file as text, and parse Python text into a syntax tree; nothing is imported or executed."""

from __future__ import annotations

import ast
import codecs
import io
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from typing import TypeVar

_Answer = TypeVar("_Answer")

#: The size up to which a file is read.
MAX_BYTES = 16 << 20
#: Stands for a module that is imported by a computed name.
COMPUTED_IMPORT = "*"
#: How often a parse that CPython spoiled itself is repeated; one repeat is enough unless it is spoiled again.
ATTEMPTS = 10
#: Texts of which answers are kept, and the characters of the longest: its tree takes some 100 bytes for each.
_TEXTS, _LONGEST = 32, 40_000


_LINE_END = re.compile(r"\r\n|\n|\r")


class UnreadableFileError(Exception):
    """A file that cannot be used as text.

    ``why`` ends a sentence that starts with the file's name; ``code`` is the code of the finding to report. ``data``
    are the bytes that are no text, from 1-based ``line`` on.
    """

    def __init__(self, code: str, why: str, data: bytes = b"", line: int = 1) -> None:
        super().__init__(why)
        self.code, self.why, self.data, self.line = code, why, data, line


def read_text(path: Path) -> str:
    """Return the text of a file, line ends as they are, without a byte order mark.

    Raises:
        UnreadableFileError: it is missing, a folder, not allowed to be read, too large, or not in the encoding that
            it declares (``decode_source``).
    """
    try:
        if path.is_dir():
            raise UnreadableFileError("problem-invalid", "is a folder; name a Python or JSON file")
        data = read_regular(path)
    except UnusableFileError as error:
        raise UnreadableFileError("problem-invalid", str(error)) from None
    except FileNotFoundError:
        raise UnreadableFileError("problem-missing", "does not exist") from None
    except OSError as error:
        raise UnreadableFileError("problem-invalid", f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UnreadableFileError("problem-invalid", "has a name that no file can have") from None
    try:
        return decode_source(data)[0]
    except UnicodeDecodeError as error:
        why = f"is not {error.encoding.upper()} text (byte 0x{data[error.start]:02x} at {error.start})"
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFileError("not-text", why, data, line) from None
    except (SyntaxError, LookupError) as error:
        why = f"declares no encoding that Python knows ({error})"
        raise UnreadableFileError("not-text", why, data) from None


def decode_source(data: bytes) -> tuple[str, str]:
    """Return a file's text without a byte order mark, and its encoding as Python reads it: by that mark or a coding
    line (PEP 263), otherwise UTF-8.

    Raises:
        UnicodeDecodeError: it is not in that encoding.
        SyntaxError, LookupError: Python knows no such encoding of text.
    """
    import tokenize  # most files need no more than its first lines

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        data.decode("utf-8")  # where that is the reason, it says so better
        raise
    return data.decode(encoding), encoding


def encode_source(text: str) -> bytes:
    """Return the bytes that Python reads as ``text``, whatever its coding line says. Where that encoding does not have
    the text, they are bytes that Python refuses."""
    import tokenize

    data = text.encode()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if encoding.startswith("utf-8"):
            return data
        encoded = text.encode(encoding)
        if encoded.decode(encoding) == text:
            return encoded
    except (SyntaxError, LookupError, UnicodeError):
        pass
    return codecs.BOM_UTF8 + data  # a mark of UTF-8 beside the line of another encoding


def source_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends, as Python and editors count them: a form feed ends none."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


class UnusableFileError(OSError):
    """A file of a kind or size that is not read. The message goes on after its name."""


def read_regular(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes.

    A link to a device, a pipe and what grows meanwhile are not read: they may have no end.

    Raises:
        UnusableFileError: it is something else, or larger.
        OSError: it cannot be read.
    """
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise UnusableFileError("is not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise UnusableFileError(f"is larger than {most >> 20} MiB")
    return data


def resolve_links(path: Path) -> Path:
    """Follow the links of a path as far as they lead.

    Return it as it is where no file can have such a name.
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a zero byte, or half a surrogate pair
        return path


def parse_python(text: str) -> ast.Module:
    """``ast.parse(text)``, repeated where CPython up to 3.12 fails without a fault of the text.

    Those versions count the depth of the tree they build in one place for all threads, so a parse during which
    another thread parses may end in ``SystemError: AST constructor recursion depth mismatch``
    (python/cpython#106905; once in some thousand parses of three busy threads on 3.11.7).

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse``.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def by_text(answer: Callable[[str], _Answer]) -> Callable[[str], _Answer]:
    """Keep what a pure function answers about the latest texts, unless they are long.

    Everyone gets the same object for the same text, and changes nothing of it.
    """
    cache = lru_cache(maxsize=_TEXTS)(answer)

    @wraps(answer)
    def of(text: str) -> _Answer:
        return cache(text) if len(text) <= _LONGEST else answer(text)

    return of


@by_text
def syntax_of(text: str) -> ast.Module:
    """Return the syntax of ``text``, to be read only.

    ``parse_python`` is for who changes it.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse``.
    """
    return parse_python(text)


def parse_expression(text: str) -> ast.expr:
    """Return the syntax of the one expression that ``text`` holds, perhaps over several lines; columns count from 1.

    Raises:
        SyntaxError: it is no expression. Others as ``parse_python``.
    """
    body = parse_python(f"({text}\n)").body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise SyntaxError(f"{text!r} is no expression")
    return body[0].value


@dataclass(frozen=True)
class ParsedPython:
    """Python text with its syntax tree.

    Where it does not parse, ``tree`` is empty and ``fault`` says why.

    ``line`` is the 1-based line of the fault.
    """

    text: str
    tree: ast.Module
    fault: str = ""
    line: int = 1

    @cached_property
    def imports(self) -> list[tuple[str, int]]:
        """Dotted names that the file may import, each with the level of a relative import (0 when absolute).

        ``COMPUTED_IMPORT`` is among them where the file imports a module by a name that it computes.
        """
        names: list[tuple[str, int]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names += [(alias.name, 0) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                names.append((base, node.level))
                names += [
                    (f"{base}.{alias.name}".lstrip("."), node.level)
                    for alias in node.names
                    if alias.name != "*"
                ]
            elif isinstance(node, ast.Call) and node.args and _imports_by_name(node.func):
                names.append(_named_module(node.args[0]))
        return names


def _imports_by_name(function: ast.expr) -> bool:
    """Return True for ``importlib.import_module``, ``import_module`` and ``__import__``."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def _named_module(argument: ast.expr) -> tuple[str, int]:
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        return COMPUTED_IMPORT, 0
    name = argument.value.lstrip(".")
    return name, len(argument.value) - len(name)


def try_parse(text: str) -> ParsedPython:
    """Parse ``text``; a text that Python cannot parse is described, not raised."""
    try:
        return ParsedPython(text, syntax_of(text))
    except SyntaxError as error:
        return ParsedPython(text, ast.Module([], []), str(error.msg), error.lineno or 1)
    except ValueError as error:
        return ParsedPython(text, ast.Module([], []), str(error))
    except (RecursionError, MemoryError):  # the parser's own bounds: the second comes without a message
        return ParsedPython(text, ast.Module([], []), "it is nested more deeply than Python reads")


def is_main_guard(node: ast.stmt) -> bool:
    """Return True for the statement ``if __name__ == "__main__":``."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))
    )
