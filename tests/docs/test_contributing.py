"""What the pages for contributors add to the project works: each is carried out in a copy of the checkout."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, Block, blocks, run_page

PAGES = sorted((ROOT / "docs/contributing").glob("*.md"))
#: The longest that a page may be, in lines without its code.
LINES = 40
ROOMS = ("accelopt_lsp", "agent", "profiling", "memory_db", "nkibench", "tests", "scripts")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what a contributor changes."""
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules", "out")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    written = (
        "vscode-extension/package.json",
        "vscode-extension/package.nls.json",
        "docs/reference/accelopt.schema.json",
    )
    for file in written:  # by scripts/generated.py
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    return copy


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_page_works(page: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(page):
        if block.language == "diff":
            apply_lines(checkout, block)
    rooms = os.pathsep.join(str(checkout / room) for room in ROOMS[:5])
    assert run_page(page, checkout.parent, Path(sys.executable).parent, checkout, rooms)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short(page: Path) -> None:
    text = page.read_text("utf-8")
    code = sum(block.text.count("\n") for block in blocks(page))
    assert text.count("\n") - code <= LINES


def apply_lines(checkout: Path, block: Block) -> None:
    """Change a file as a block of lines that stay (" "), go ("-") and come ("+") says; it has no line numbers."""
    assert block.file is not None
    file = checkout / block.file
    lines = block.text.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = file.read_text("utf-8")
    assert text.count(before) == 1, f"{block.file}:\n{before}"
    file.write_text(text.replace(before, after), encoding="utf-8")
