"""The generated pages of docs/reference are what the code generates."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from accelopt_lsp.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts/reference.py"))


@pytest.mark.parametrize("name", SCRIPT["PAGES"])
def test_a_page_is_what_the_code_generates(name: str) -> None:
    assert (SCRIPT["FOLDER"] / name).read_text("utf-8") == SCRIPT["page"](name), "run scripts/reference.py"


def test_the_reference_has_a_section_for_every_command() -> None:
    text = SCRIPT["commands"]()
    assert [name for name in COMMANDS if f"## accelopt {name}\n" not in text] == []


def test_the_extension_explains_every_setting_as_the_server_does() -> None:
    settings = json.loads((ROOT / "accelopt_lsp/accelopt_lsp/settings/schema.json").read_text("utf-8"))[
        "settings"
    ]
    manifest = (ROOT / "vscode-extension/package.json").read_text("utf-8")
    missing = [s["name"] for s in settings if json.dumps(s["about"], ensure_ascii=False) not in manifest]
    assert missing == [], "run `node settings.mjs` in vscode-extension"
