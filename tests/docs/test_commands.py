"""Runs the commands that README, tutorials and how-to pages show, and compares what they print."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.pages import PAGES, Comparison, blocks, commands, run_page

#: What a command may need that a test does not have; ``test_names.py`` checks that its commands and options exist.
NEEDS = {"network", "host", "cluster", "gpu", "trainium", "model", "display", "data", "minutes"}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.runs for b in blocks(p))], ids=lambda p: p.stem)
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    fresh = run_page(page, tmp_path, Path(sys.executable).parent)
    assert page.read_text(encoding="utf-8") == fresh, (
        "`python scripts/figures.py` writes what is printed today"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_command_stands_in_a_block_that_is_run_or_says_what_it_needs(page: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            assert block.option("needs") is None or block.option("needs") in NEEDS, (page, block.line)
            assert commands(block)
        else:
            stray = re.findall(r"^(?:\$ |accelopt ).*", block.text, re.MULTILINE)
            assert stray == [], (page, block.line)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_what_a_workflow_does_is_run_by_the_page_too(page: Path) -> None:
    run = {command for block in blocks(page) if block.runs for command, _ in commands(block)}
    yaml_lines = [
        line for block in blocks(page) if block.language == "yaml" for line in block.text.splitlines()
    ]
    steps = [line.partition("- run:")[2].strip() for line in yaml_lines if "accelopt " in line]
    assert set(steps) <= run


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_packages_are_installed_within_the_bounds_of_the_project(page: Path) -> None:
    """``pip install torch triton`` takes versions that nobody has tried."""
    installs = re.findall(r"(?:pip|uv tool|uv) install ([^#\n]*)", page.read_text(encoding="utf-8"))
    assert [line for line in installs if re.search(r"(?:^| )(?:torch|triton)(?: |$)", line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_sample_of_an_editor_sets_no_target(page: Path) -> None:
    """Whoever copies it would see every kernel on that hardware."""
    samples = [block for block in blocks(page) if block.language in ("lua", "toml", "elisp")]
    assert [block.line for block in samples if re.search(r"\btarget\b", block.text)] == []


@pytest.mark.parametrize(
    ("expected", "printed", "fresh"),
    [
        ("est. 36.2-126 us  24 %", "est. 30-1,400 us   20 %", "est. 30-1,400 us   20 %"),
        ("1.86x ... (36.2-126)", "1.9x by estimate (30-140)", "1.9x ... (30-140)"),
        ("pairs 3 x", " pairs    3 x ", "pairs 3 x"),
        ("took 3 s", "took 3 files", None),
        ("7 rewrites", "8 rewrites", None),
        ("...\nlast 2 %", "first\nsecond\nlast 3 %", "...\nlast 3 %"),
        ("...\nlast", "last\nfurther", None),
        ("by ... rules", "by two rules", "by ... rules"),
        ("id e1e2f03d4012", "id 0123456789ab", "id e1e2f03d4012"),
        ("passed", "failed", None),
    ],
)
def test_only_quantities_are_written_anew(expected: str, printed: str, fresh: str | None) -> None:
    if fresh is not None:
        assert Comparison().refreshed(expected, printed) == f"{fresh}\n"
    else:
        with pytest.raises(AssertionError, match="expected"):
            Comparison().refreshed(expected, printed)


def test_an_identifier_of_the_page_stands_for_the_one_that_was_printed() -> None:
    comparison = Comparison()
    comparison.refreshed("e1e2f03d4012  gate_kernel", "0123456789ab gate_kernel")
    assert comparison.command("accelopt accept e1e2f03d4012") == "accelopt accept 0123456789ab"
