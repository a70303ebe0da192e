"""A parse that CPython spoils itself is repeated; a text that does not parse is not."""

from __future__ import annotations

import ast

import pytest

from accelopt_profiling.source_text import ATTEMPTS, parse_python


def spoil(monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    asked: list[str] = []
    parse = ast.parse

    def spoiled(text: str) -> ast.Module:
        asked.append(text)
        if len(asked) <= times:
            raise SystemError("AST constructor recursion depth mismatch (before=27, after=24)")
        return parse(text)

    monkeypatch.setattr(ast, "parse", spoiled)
    return asked


def test_a_spoiled_parse_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, 2)
    assert isinstance(parse_python("x = 1").body[0], ast.Assign)


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = spoil(monkeypatch, 1000)
    with pytest.raises(SystemError):
        parse_python("x = 1")
    assert len(asked) == ATTEMPTS


def test_a_text_that_does_not_parse_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = spoil(monkeypatch, 0)
    with pytest.raises(SyntaxError):
        parse_python("x = (")
    assert asked == ["x = ("]
