"""Completion, signature help and hover of NKI and Triton, in text as it is typed."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelopt_lsp.features.completion import completions
from accelopt_lsp.features.operation_hover import operation_hover
from accelopt_lsp.features.signature_help import SignatureHelp, signature_help
from accelopt_lsp.language.cursor import cursor_at
from accelopt_lsp.language.vocabulary import LanguageVersions

ROOT = Path(__file__).parents[2]
NKI = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef k(a):\n"
BETA1 = "from neuronxcc import nki\nimport neuronxcc.nki.language as nl\nfrom neuronxcc.nki.language import par_dim\n"
TRITON = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(p):\n"
TODAY = LanguageVersions(triton=(3, 7))


def at(text: str) -> tuple[str, list[str], int, int]:
    """The text without the mark "|", its lines and the mark's place."""
    before, after = text.split("|")
    lines = (before + after).split("\n")
    return before + after, lines, before.count("\n"), len(before) - (before.rfind("\n") + 1)


def offered(text: str, versions: LanguageVersions = TODAY) -> list[str]:
    return [c.text for c in completions(*at(text), versions)]


def helped(text: str, versions: LanguageVersions = TODAY) -> SignatureHelp:
    help_there = signature_help(*at(text), versions, markdown=True)
    assert help_there is not None
    return help_there


def active(text: str) -> str | None:
    help_there = helped(text)
    return None if help_there.active is None else help_there.parameters[help_there.active]


def test_the_names_of_a_module_follow_the_dialect_and_the_version() -> None:
    today = offered(NKI + "    x = nl.|")
    assert {"exp", "float32", "sbuf", "tile_size", "tiles"} <= set(today)
    assert "loop_reduce" not in today
    assert "par_dim" not in today
    assert "tiles" not in offered(NKI + "    x = nl.|", LanguageVersions("0.6"))
    old = offered(BETA1 + "x = nl.lo|")
    assert {"loop_reduce", "par_dim", "mgrid", "load"} <= set(old)
    assert "tiles" not in old
    assert {"activation", "engine", "nc_matmul"} <= set(offered(NKI + "    nisa.a|\n    y = 1\n"))
    assert offered(NKI + "    nisa.reduce_cmd.|") == [
        "idle",
        "reset",
        "reduce",
        "reset_reduce",
        "load_reduce",
    ]
    assert "pmax" in offered(NKI + "    nl.tile_size.|")
    assert {"exp", "isa"} & set(offered(NKI + "    nki.|")) == {"isa"}
    assert "exp" in offered(NKI + "    nki.language.|")


def test_the_names_of_triton_follow_the_installed_version() -> None:
    assert "make_block_ptr" in offered(TRITON + "    tl.|")
    assert "make_block_ptr" not in offered(TRITON + "    tl.|", LanguageVersions(triton=(3, 9)))
    assert "squeeze" not in offered(TRITON + "    tl.|", LanguageVersions(triton=(3, 6)))


def test_what_a_type_checker_knows_is_left_to_it() -> None:
    typed = LanguageVersions(triton=(3, 7), typed=frozenset(("triton", "nki")))
    assert offered(TRITON + "    tl.|", typed) == []
    assert offered(TRITON + "    tl.load(p, |", typed) == []
    assert offered(TRITON + "    tl.load(p, cache_modifier=|", typed) == ["''", "'.ca'", "'.cg'", "'.cv'"]
    assert offered(NKI + "    nl.|", typed) == []
    assert "nl.float32" in offered(NKI + "    nl.ndarray((1, 2), dtype=|", typed)


@pytest.mark.parametrize(
    ("text", "expected", "unexpected"),
    [
        ("    nisa.activation(|", {"dst=", "op=", "data="}, {"nl.exp"}),
        ("    nisa.activation(y, |", {"nl.exp", "nl.tanh", "op=", "scale="}, {"dst=", "nl.add"}),
        ("    nisa.activation(y, op=nl.|", {"exp", "tanh", "sbuf"}, {"op="}),
        ("    nisa.activation(y, data=x, op=|", {"nl.exp"}, {"scale=", "data="}),
        ("    nisa.tensor_tensor(y, a, b, op=|", {"nl.add", "nl.maximum"}, {"nl.exp"}),
        ("    nisa.nc_transpose(y, x, engine=|", {"nisa.engine.vector"}, {"nl.exp"}),
        ("    nisa.nc_transpose(y, x, engine=nisa.|", {"engine.vector", "activation"}, set()),
        ("    nisa.nc_transpose(y, x, engine=nisa.engine.|", {"vector", "tensor"}, set()),
        ("    x = nl.ndarray((128, 512), |", {"nl.float32", "nl.bfloat16", "buffer="}, {"shape="}),
        ("    x = nl.ndarray((128, |", set(), {"nl.float32", "buffer=", "dtype="}),
        ("    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=|", {"nl.sbuf", "nl.psum"}, {"nl.exp"}),
        ("    nl.matmul(x, y, transpose_x=|", {"True", "False"}, set()),
        ("    nl.load(a + |", set(), {"src=", "dtype="}),
        ('    nl.load("|', set(), {"src="}),
        ("    # nl.|", set(), {"exp"}),
        ("    nl.load(a\n    return nl.|", {"exp"}, {"src="}),
        ("    nl.load(\n        a,\n        |\n    )", {"dtype="}, {"src="}),
        ("    unknown(nl.load(a), |", set(), {"dtype="}),
    ],
)  # fmt: skip
def test_what_an_argument_takes(text: str, expected: set[str], unexpected: set[str]) -> None:
    names = set(offered(NKI + text))
    assert expected <= names
    assert not unexpected & names


def test_the_argument_that_is_written_is_marked() -> None:
    assert active(NKI + "    nisa.activation(|") == "dst"
    assert active(NKI + "    nisa.activation(y, nl.exp, |x)") == "data"
    assert active(NKI + "    nisa.activation(y, nl.exp, x, scale=|2)") == "scale=1.0"
    assert active(NKI + "    nisa.activation(y, nl.exp, x, scale=2, |") is None
    assert active(NKI + "    nisa.activation(y, nl.exp, nl.load(a, |") == "dtype=None"
    assert active(NKI + "    nl.ndarray((128, [1, 2|") == "shape"
    assert active(BETA1 + "par_dim(|") == "*size"
    assert active(TRITON + "    tl.load(p, m, o, |") == "boundary_check=()"
    assert active(TRITON + "    tl.device_print('x', 1, |2)") == "*args"
    newest = helped(TRITON + "    tl.load(|", LanguageVersions(triton=(3, 9)))
    assert "pointer, mask=None, other=None, *, cache_modifier" in newest.signature
    assert signature_help(*at(NKI + "    print(|"), TODAY, markdown=True) is None
    assert signature_help(*at(NKI + "    nl.load(a) + |"), TODAY, markdown=True) is None


def test_a_hover_says_what_the_function_takes_and_is_limited_by() -> None:
    text = operation_hover(*at(NKI + "    nisa.max8(y, nl.e|xp(x))"), TODAY, markdown=True)
    assert text is not None
    assert "nl.exp(x, dtype=None)" in text
    text = operation_hover(*at(NKI + "    nisa.m|ax8(y, nl.exp(x))"), TODAY, markdown=False)
    assert text is not None
    assert text.startswith("nisa.max8(dst, src, name=None)")
    for part in ("- engines: vector", "elements 16384", "- type: that of dst", "nki.isa.max8.html"):
        assert part in text
    text = operation_hover(*at(TRITON + "    tl.squ|eeze(x, 0)"), TODAY, markdown=True)
    assert text is not None
    assert "since: Triton 3.7" in text
    assert "*" not in str(operation_hover(*at(TRITON + "    tl.lo|ad(x, 0)"), TODAY, markdown=False))
    for nothing in ("    x.l|oad(a)", "    # nl.e|xp", "    'nl.e|xp'", "    n|l.exp(x)", "    y.nl.e|xp(x)"):
        assert operation_hover(*at(NKI + nothing), TODAY, markdown=True) is None, nothing


def test_a_file_without_nki_or_triton_gets_nothing() -> None:
    for text in ("import numpy as nl\nnl.|", "nl.|", "import os as tl\ntl.load(|", "|"):
        assert offered(text) == []
        assert signature_help(*at(text), TODAY, markdown=True) is None


def kernels() -> Iterator[str]:
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield path.read_text()


def test_no_cut_of_a_text_ends_an_answer() -> None:
    """Every prefix of a line, and texts with pieces cut out or doubled, as a person types, pastes and deletes."""
    draw = random.Random(7)
    pieces = [
        "(",
        ")",
        '"',
        "'''",
        "#",
        "\\",
        ",",
        "=",
        ".",
        "nl.",
        "tl.load(",
        "\n",
        "\t",
        "é",
        "\r\n",
        "[",
        "@",
        "def ",
    ]
    cuts = 0
    for text in kernels():
        for _ in range(60):
            start = draw.randrange(len(text))
            end = min(len(text), start + draw.choice((0, 1, 5, 80)))
            changed = text[:start] + draw.choice([*pieces, ""]) + text[end:]
            lines = changed.split("\n")
            for line in (changed.count("\n", 0, start), draw.randrange(len(lines) + 2)):
                width = len(lines[line]) if line < len(lines) else 0
                for column in {0, width // 2, width, width + 3}:
                    completions(changed, lines, line, column, TODAY)
                    signature_help(changed, lines, line, column, TODAY, markdown=True)
                    operation_hover(changed, lines, line, column, TODAY, markdown=False)
                    cuts += 1
    assert cuts > 1000


def test_in_whole_kernels_every_known_call_is_seen_at_its_bracket() -> None:
    """What the characters say agrees with what the parser says, for each call of examples and tasks."""
    seen = 0
    tasks = sorted((ROOT / "nkibench/nkibench/tasks").glob("[a-m]*/*.py"))
    for text in (*kernels(), *(path.read_text() for path in tasks)):
        lines = text.split("\n")
        for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
            if not isinstance(call.func, (ast.Name, ast.Attribute)) or call.func.end_col_offset is None:
                continue
            name = ast.unparse(call.func)
            if not name.replace(".", "").isidentifier() or not text.isascii():
                continue
            cursor = cursor_at(lines, (call.func.end_lineno or 1) - 1, call.func.end_col_offset + 1)
            assert cursor is not None
            assert cursor.call is not None
            assert cursor.call.function == name
            for index, argument in enumerate(call.args):
                if isinstance(argument, ast.Starred):
                    break
                cursor = cursor_at(lines, argument.lineno - 1, argument.col_offset)
                assert cursor is not None
                assert cursor.call is not None
                assert (cursor.call.function, cursor.call.position) == (name, index)
                seen += 1
    assert seen > 1000
