"""VS Code's manifest declares every setting of the schema, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accelopt_lsp.settings.schema import all_settings

MANIFEST = Path(__file__).parents[2] / "vscode-extension" / "package.json"


def declared(schema: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """The settings below a JSON schema by dotted name; names that people choose are ``NAME``."""
    found: dict[str, dict[str, Any]] = {}
    for name, inner in schema.get("properties", {}).items():
        below = declared(inner, f"{prefix}{name}.")
        found |= below or {f"{prefix}{name}": inner}
    if isinstance(extra := schema.get("additionalProperties"), dict):
        found |= declared(extra, f"{prefix}NAME.")
    return found


def settings_object() -> dict[str, Any]:
    configuration = json.loads(MANIFEST.read_text())["contributes"]["configuration"]
    found: dict[str, Any] = configuration["properties"]["accelopt.settings"]
    return found


def test_the_manifest_declares_the_settings_of_the_schema() -> None:
    assert set(declared(settings_object())) == set(all_settings())


def test_the_manifest_allows_what_the_schema_allows() -> None:
    in_manifest = declared(settings_object())
    for name, setting in all_settings().items():
        entry = in_manifest[name]
        allowed = (tuple(entry.get("enum", ())), entry.get("minimum"), entry.get("maximum"))
        assert allowed == (setting.choices, setting.minimum, setting.maximum), name
