"""Every finding has a page that the diagnostic links to, and every page a finding."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import accelopt_lsp
import accelopt_profiling
from accelopt_lsp.server.convert import finding_page

CODES = set(json.loads((Path(accelopt_profiling.__file__).parent / "findings.json").read_text()))
PAGES = Path(accelopt_lsp.__file__).parent / "pages"


def test_pages_and_findings_are_the_same() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == CODES


def test_a_diagnostic_links_to_its_page() -> None:
    for code in CODES:
        path = Path(finding_page(code).removeprefix("file://"))
        assert f"`{code}`" in path.read_text()


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_says_in_one_line_when_to_ignore_it(code: str) -> None:
    (line,) = [x for x in (PAGES / f"{code}.md").read_text().splitlines() if "When to ignore it" in x]
    assert re.fullmatch(r"\*\*When to ignore it\.\*\* [A-Z].{10,}\.", line)
    assert len(line) <= 180
