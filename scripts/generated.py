"""Write the files that repeat the tables of settings and actions, or say which are out of date.

    python scripts/generated.py           write them
    python scripts/generated.py --check   exit code 1 where one is out of date

From ``settings/schema.json``: the classes of ``settings/values.py`` and what VS Code checks of ``accelopt.settings``.
From ``actions.json``: the commands of the extension's palette and their titles.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "accelopt_lsp/accelopt_lsp"
EXTENSION = ROOT / "vscode-extension"

#: The class of each table of settings; the roles of the team share one.
CLASSES = {
    "target": "TargetSettings",
    "hosts.NAME": "HostSettings",
    "model.planner": "RoleSettings",
    "model.coder": "RoleSettings",
    "model.debugger": "RoleSettings",
    "model.summarizer": "RoleSettings",
    "model": "ConfiguredModel",
    "memory": "MemorySettings",
    "limits": "LimitSettings",
    "search": "SearchSettings",
    "editor": "EditorSettings",
    "": "SettingValues",
}
_TYPES = {
    "string": "str",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "table": "dict[str, str]",
    "problem": "str | dict[str, str]",
}


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def setting_classes() -> str:
    """The classes that hold the values of all settings, a field each."""
    settings = _read(PACKAGE / "settings/schema.json")["settings"]
    classes: dict[str, list[str]] = {}
    for table, name in CLASSES.items():
        fields = [_field(s, table) for s in settings if s["name"].rpartition(".")[0] == table]
        inner = [t for t in CLASSES if t and t.rpartition(".")[0] == table and not t.endswith("NAME")]
        fields += [f"    {t.rpartition('.')[2]}: {CLASSES[t]}" for t in inner]
        if table == "":
            fields.insert(0, f"    hosts: dict[str, {CLASSES['hosts.NAME']}]")
        classes[name] = sorted(fields, key=lambda field: "=" in field)
    lines = [
        '"""The classes that hold the values of all settings: ``scripts/generated.py`` writes them."""',
        "",
        "from __future__ import annotations",
        "",
        "from dataclasses import dataclass, field",
        "from typing import Literal",
    ]
    for name, fields in classes.items():
        lines += ["", "", "@dataclass(frozen=True)", f"class {name}:", *fields]
    return "\n".join(lines) + "\n"


def _field(setting: dict[str, Any], table: str) -> str:
    """One field. Those of a host have their defaults, since people name hosts; tables may hold what is not for logs."""
    choices = setting.get("choices")
    kind = (
        f"Literal[{', '.join(json.dumps(choice) for choice in choices)}]"
        if choices
        else _TYPES[setting["type"]]
    )
    if setting["type"] == "number" and setting["default"] is None:
        kind += " | None"
    line = f"    {setting['name'].rpartition('.')[2]}: {kind}"
    of_host = table.endswith("NAME")
    if setting["type"] == "table":
        return f"{line} = field({'default_factory=dict' if of_host else 'repr=False, default_factory=dict'})"
    if setting["type"] == "problem":
        return f"{line} | None = None"
    return f"{line} = {json.dumps(setting['default'] or '')}" if of_host else line


def settings_schema() -> dict[str, Any]:
    """The JSON schema of ``accelopt.settings``: ``target.triton`` is a property of a property."""
    root: dict[str, Any] = {"properties": {}, "additionalProperties": False}
    for setting in _read(PACKAGE / "settings/schema.json")["settings"]:
        *tables, last = setting["name"].split(".")
        node = root
        for name in tables:
            new = {"type": "object", "properties": {}, "additionalProperties": False}
            if name == "NAME":
                node["additionalProperties"] = node["additionalProperties"] or new
                node = node["additionalProperties"]
            else:
                node = node["properties"].setdefault(name, new)
        pattern = setting.get("pattern")
        optional = "?" if setting["default"] == "" else ""
        stated = {
            "type": {"table": "object", "problem": ["string", "object"]}.get(
                setting["type"], setting["type"]
            ),
            "minimum": setting.get("minimum"),
            "maximum": setting.get("maximum"),
            "enum": setting.get("choices"),
            "pattern": f"^({pattern}){optional}$" if pattern else None,
            "markdownDescription": setting["about"],
        }
        node["properties"][last] = {key: value for key, value in stated.items() if value is not None}
    return root


def palette() -> list[dict[str, Any]]:
    """The commands of the palette: those of the server's actions that have one, and the extension's own."""
    table = _read(PACKAGE / "actions.json")
    return [{"name": a["name"], **a["palette"]} for a in table["actions"] if "palette" in a] + table["client"]


def manifest() -> str:
    """The extension's manifest, with the settings and the commands of today."""
    content = _read(EXTENSION / "package.json")
    contributes = content["contributes"]
    contributes["configuration"]["properties"]["accelopt.settings"] |= settings_schema()
    contributes["commands"] = [
        {"command": f"accelopt.{row['name']}", "title": f"%command.{row['name']}%", "category": "AccelOpt"}
        | ({"icon": row["icon"]} if "icon" in row else {})
        for row in palette()
    ]
    contributes["menus"]["commandPalette"] = [
        {"command": f"accelopt.{row['name']}", "when": row["when"]} for row in palette() if "when" in row
    ]
    return _json(content)


def titles() -> str:
    """The texts of the extension's manifest, with the titles of its commands."""
    texts = _read(EXTENSION / "package.nls.json")
    rest = {key: text for key, text in texts.items() if not key.startswith("command.")}
    return _json(rest | {f"command.{row['name']}": row["title"] for row in palette()})


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


FILES: dict[Path, Callable[[], str]] = {
    PACKAGE / "settings/values.py": setting_classes,
    EXTENSION / "package.json": manifest,
    EXTENSION / "package.nls.json": titles,
}


def outdated() -> list[Path]:
    """Return the files that are not as the tables would have them."""
    return [path for path, make in FILES.items() if not path.exists() or path.read_text("utf-8") != make()]


def main(arguments: Iterable[str]) -> int:
    if "--check" in arguments:
        for path in (late := outdated()):
            print(f"{path.relative_to(ROOT)} is out of date: run `python scripts/generated.py`.")
        return 1 if late else 0
    for path, make in FILES.items():
        path.write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
