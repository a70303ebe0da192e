"""The documentation's site, its pages made from the code included; the settings that the extension checks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accelopt_lsp.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning_and_has_every_command_and_code(tmp_path: Path) -> None:
    """A link to a page or a heading that is not there is a warning."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    commands, findings = (
        (tmp_path / f"reference/{name}.html").read_text("utf-8") for name in ("cli", "findings")
    )
    codes = json.loads((ROOT / "profiling/accelopt_profiling/findings.json").read_text("utf-8"))
    assert [name for name in COMMANDS if f'id="accelopt-{name}"' not in commands] == []
    assert [code for code in codes if f'id="{code}-' not in findings] == []


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
