"""Sources are read, written and split into lines as Python does; a parse that CPython spoils itself is repeated."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.source_text import (
    ATTEMPTS,
    decode_source,
    encode_source,
    parse_python,
    read_text,
    source_lines,
    try_parse,
)


def spoil(monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    texts: list[str] = []
    parse = ast.parse

    def spoiled(text: str) -> ast.Module:
        texts.append(text)
        if len(texts) <= times:
            raise SystemError("AST constructor recursion depth mismatch (before=27, after=24)")
        return parse(text)

    monkeypatch.setattr(ast, "parse", spoiled)
    return texts


def test_a_spoiled_parse_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, 2)
    assert isinstance(parse_python("x = 1").body[0], ast.Assign)


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = spoil(monkeypatch, 1000)
    with pytest.raises(SystemError):
        parse_python("x = 1")
    assert len(texts) == ATTEMPTS


def test_a_text_that_does_not_parse_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = spoil(monkeypatch, 0)
    with pytest.raises(SyntaxError):
        parse_python("x = (")
    assert texts == ["x = ("]


#: Text in the encodings that a coding line may name; of the last two Python takes none.
CODINGS = ["latin-1", "cp1252", "utf-8", "ascii", "shift_jis", "utf-7", "utf-16", "rot13"]


@given(coding=st.sampled_from(CODINGS), rest=st.text())
def test_python_reads_what_was_written_or_refuses_it(coding: str, rest: str) -> None:
    rest = "".join(c for c in rest if c not in "\r\n\0\x0c" and not 0xD800 <= ord(c) < 0xE000)
    text = f"# coding: {coding}\nSAID = {rest!r}  # {rest}\n"
    data = encode_source(text)
    try:
        tree = ast.parse(data)
    except SyntaxError:
        return
    assert ast.dump(tree) == ast.dump(ast.parse(text))
    assert decode_source(data)[0] == text


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"# coding: latin-1\nx = '\xe9'\n", "# coding: latin-1\nx = 'é'\n", "iso-8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n# \x80", None, "cp1252"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n", "utf-8-sig"),
        ("x = 'é'\n".encode(), "x = 'é'\n", "utf-8"),
    ],
)
def test_a_file_is_read_as_it_says(data: bytes, text: str | None, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_bytes(data)
    expected = data.decode(encoding) if text is None else text
    assert decode_source(data) == (expected, encoding)
    assert read_text(tmp_path / "k.py") == expected


@given(st.text(alphabet="ab\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029'# "))
def test_lines_are_those_of_python(text: str) -> None:
    lines = source_lines(text)
    assert lines == [line.rstrip("\r\n") for line in io.StringIO(text, newline="").readlines()]


#: Files whose lines are of other texts than sources: what tools print, files of the system, answers, pages, journals.
OTHER_TEXTS = {
    "accelopt_lsp/accelopt_lsp/cli/terminal.py", "accelopt_lsp/accelopt_lsp/installation.py",
    "accelopt_lsp/accelopt_lsp/features/explanation.py", "accelopt_lsp/accelopt_lsp/server/memory_view.py",
    "accelopt_lsp/accelopt_lsp/server/searches.py", "agent/accelopt_agent/suggestions/foreign_pairs.py",
    "nkibench/nkibench/journal.py", "nkibench/nkibench/kernel_sets/flashinfer_output.py",
    "nkibench/nkibench/kernel_sets/tasks.py", "profiling/accelopt_profiling/hosts/ray_bridge.py",
    "profiling/accelopt_profiling/hosts/worker_connection.py",
    "profiling/accelopt_profiling/problems/layouts/gpumode.py",
    "profiling/accelopt_profiling/recording/call_log.py", "profiling/accelopt_profiling/trainium/tools.py",
    "profiling/accelopt_profiling/triton/compilation/assembly.py",
    "profiling/accelopt_profiling/triton/compilation/compile.py",
    "profiling/accelopt_profiling/triton/compilation/machine_code.py",
    "profiling/accelopt_profiling/triton/compilation/ttgir.py",
    "profiling/accelopt_profiling/worker/handshake.py", "profiling/accelopt_profiling/worker/limits.py",
}  # fmt: skip


def test_no_source_is_split_at_what_ends_no_line() -> None:
    """``str.splitlines`` ends lines at form feeds and seven others more than Python does."""
    root = Path(__file__).parents[2]
    rooms = ("profiling", "agent", "accelopt_lsp", "nkibench", "memory_db")
    places = {
        str(path.relative_to(root))
        for room in rooms
        for path in (root / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    }
    assert places - OTHER_TEXTS == set(), "use source_text.source_lines"
    assert OTHER_TEXTS - places == set()


#: Texts beyond what Python's parser takes, which says so with errors of three kinds, one without a message.
UNREADABLE = {
    "parentheses": "x = " + "(" * 5000 + ")" * 5000,
    "sums": "x = " + "1 + " * 20_000 + "1",
    "signs": "x = " + "-" * 20_000 + "1",
    "attributes": "x = y" + ".a" * 20_000,
    "conditions": "x = " + "1 if 0 else " * 3000 + "1",
    "blocks": "".join("  " * n + "if 1:\n" for n in range(200)) + "  " * 200 + "pass",
    "null bytes": "x = 'a\0b'",
    "half a surrogate pair": "x = '\ud800'",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_text_that_cannot_be_read_says_why(text: str) -> None:
    parsed = try_parse(text)
    assert parsed.fault
    assert not parsed.tree.body
