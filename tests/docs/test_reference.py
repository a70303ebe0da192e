"""The generated pages of docs/reference are what the code generates."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

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


def test_the_extension_checks_every_setting_as_the_server_does() -> None:
    settings = json.loads((ROOT / "accelopt_lsp/accelopt_lsp/settings/schema.json").read_text("utf-8"))[
        "settings"
    ]
    manifest = json.loads((ROOT / "vscode-extension/package.json").read_text("utf-8"))
    root = manifest["contributes"]["configuration"]["properties"]["accelopt.settings"]
    differing = [s["name"] for s in settings if _stated(s) != _in_manifest(root, s["name"].split("."))]
    assert differing == [], "run `node settings.mjs` in vscode-extension"


def _stated(setting: dict[str, Any]) -> dict[str, Any]:
    """What an editor can check of a setting; an empty text is allowed where it is the default."""
    pattern = setting.get("pattern")
    if pattern:
        pattern = f"^({pattern})?$" if setting["default"] == "" else f"^({pattern})$"
    return {
        "markdownDescription": setting["about"],
        "minimum": setting.get("minimum"),
        "maximum": setting.get("maximum"),
        "enum": setting.get("choices"),
        "pattern": pattern,
    }


def _in_manifest(table: dict[str, Any], names: list[str]) -> dict[str, Any]:
    for name in names:
        table = table["additionalProperties"] if name == "NAME" else table["properties"][name]
    return {key: table.get(key) for key in ("markdownDescription", "minimum", "maximum", "enum", "pattern")}
