"""Names that are put together at run time are read as what they are."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.gate.reading.constants import plain_spelling
from accelopt_profiling.gate.reading.facts import Facts
from accelopt_profiling.gate.reading.read import read

PLAIN = {
    "getattr(torch, 'al' + 'lclose')": "torch.allclose",
    "getattr(error, 'tb_' + 'frame', None)": "error.tb_frame",
    "vars(torch)['x' + 'y']": "torch.xy",
    "torch.__dict__['xy']": "torch.xy",
    "operator.attrgetter('nn.' + 'functional')(torch)": "torch.nn.functional",
    "''.join(['sub', 'process'])": "'subprocess'",
    "'emarf_bt'[::-1]": "'tb_frame'",
    "f'tb_{\"frame\"}'": "'tb_frame'",
    "'{}_{}'.format('tb', 'frame')": "'tb_frame'",
    "'tb-frame'.replace('-', '_')": "'tb_frame'",
    "'TB'.lower() + chr(95)": "'tb_'",
    "getattr(torch, 'float' + str(16))": "torch.float16",
    "globals()['run']": "run",
}
AS_IT_IS = [
    "getattr(torch, name)",
    "vars(torch)[key]",
    "table['x']",
    "f'{n:>4}'",
    "'{}'.format(n)",
    "'a b'.join(parts)",
    "getattr(torch, 'no name')",
    "x['a'] + 'b'",
]


def plain(text: str) -> str:
    return ast.unparse(plain_spelling(Facts((), ast.parse(text))).tree)


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_put_together_from_constants(text: str) -> None:
    assert plain(f"it = {text}") == f"it = {PLAIN[text]}"


@pytest.mark.parametrize("text", AS_IT_IS)
def test_what_is_not_known_stays(text: str) -> None:
    assert plain(text) == ast.unparse(ast.parse(text))


def test_a_name_that_holds_a_text_is_that_text() -> None:
    once = "part = 'al'\nname = part + 'lclose'\ngetattr(torch, name)"
    assert plain(once).endswith("torch.allclose")
    twice = "name = 'allclose'\nname = other()\ngetattr(torch, name)"
    assert plain(twice).endswith("getattr(torch, name)")


@given(st.text(alphabet="abcdef_", min_size=2, max_size=12).filter(str.isidentifier), st.integers(1, 11))
def test_a_name_in_two_pieces_is_the_name(name: str, at: int) -> None:
    text = f"getattr(thing, {name[:at]!r} + {name[at:]!r})"
    assert plain(text) == f"thing.{name}"


def test_every_reader_sees_the_plain_spelling() -> None:
    text = "import os as system\n\ndef run(x):\n    NAME = 'fo' + 'rk'\n    getattr(system, NAME)()\n    return x\n"
    assert ("background-work", 5, True) in [(f.code, f.line, f.certain) for f in read(text)]
