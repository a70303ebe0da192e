"""Names that NKI has deprecated for Python's own are written in all of a file, and nothing else is."""

from __future__ import annotations

import pytest

from accelopt_agent.suggestions.text_edit import apply_to_text
from accelopt_lsp.language.newer_names import newer_names

HEAD = "import nki.language as nl\nfrom nki.language import static_range\n\n\n"


@pytest.mark.parametrize(
    ("before", "after", "version"),
    [
        ("for i in nl.affine_range(4):\n    pass\n", "for i in range(4):\n    pass\n", "0.7"),
        ("for i in static_range(0, 8, 2):\n    pass\n", "for i in range(0, 8, 2):\n    pass\n", "0.7"),
        ("é = [nl.sequential_range(\n    4\n)]\n", "é = [range(\n    4\n)]\n", "0.7"),
        ("for i in nl.affine_range(4):\n    pass\n", None, "0.6"),
        ("for i in nl.affine_range(start=0, stop=4):\n    pass\n", None, "0.7"),
        ("range = 3\nfor i in nl.affine_range(4):\n    pass\n", None, "0.7"),
        ("x = nl.load(y)\n", None, "0.7"),
    ],
)
def test_deprecated_names_are_written_as_python_has_them(
    before: str, after: str | None, version: str
) -> None:
    text = HEAD + before
    assert apply_to_text(text, newer_names(text, version)) == HEAD + (before if after is None else after)
