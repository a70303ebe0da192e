from __future__ import annotations

from pathlib import Path

from accelopt_lsp.cli.main import COMMANDS
from accelopt_lsp.cli.page import page


def test_the_page_is_what_the_commands_say() -> None:
    written = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written == page(), "run `python -m accelopt_lsp.cli.page > docs/reference/cli.md`"


def test_the_page_has_a_section_for_every_command() -> None:
    assert [name for name in COMMANDS if f"## accelopt {name}\n" not in page()] == []
