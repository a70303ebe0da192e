"""Write the files that repeat the tables of settings and actions, or say which are out of date.

    python scripts/generated.py           write them
    python scripts/generated.py --check   exit code 1 where one is out of date

From ``settings/schema.json``: the classes of ``settings/values.py``, the JSON schema of ``accelopt.toml`` and the
settings of the extension.
From ``actions.json``: the commands of the extension's palette and their titles, and its tools for language models.
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
TARGETS = ROOT / "profiling/accelopt_profiling/targets"

#: The settings that only the extension has; the first names a program.
OF_THE_CLIENT = ("accelopt.interpreter", "accelopt.trace.server")

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


def editor_settings() -> dict[str, dict[str, Any]]:
    """Return what VS Code shows and checks of each setting; a table that people add names to is one setting."""
    properties: dict[str, dict[str, Any]] = {}
    for setting in _read(PACKAGE / "settings/schema.json")["settings"]:
        table, _, field = setting["name"].partition(".NAME.")
        schema = _value_schema(setting)
        if field:
            hosts = properties.setdefault(f"accelopt.{table}", dict(HOSTS))
            named = hosts.setdefault(
                "additionalProperties", {"type": "object", "additionalProperties": False}
            )
            named.setdefault("properties", {})[field] = schema
        else:
            scope = "machine-overridable" if setting.get("sensitive") else "window"
            properties[f"accelopt.{table}"] = schema | {"default": setting["default"], "scope": scope}
    for order, schema in enumerate(properties.values(), 2):
        schema["order"] = order
    return properties


def file_schema() -> str:
    """Return the JSON schema of ``accelopt.toml``."""
    root: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "accelopt.toml",
        "type": "object",
    }
    for setting in _read(PACKAGE / "settings/schema.json")["settings"]:
        *tables, field = setting["name"].split(".")
        node = root
        for table in tables:
            if table == "NAME":
                node = node.setdefault("additionalProperties", {"type": "object"})
            else:
                node = node.setdefault("properties", {}).setdefault(table, {"type": "object"})
        schema = _value_schema(setting)
        if setting.get("hardware"):  # a file may name a target by its other names too
            schema["examples"] = schema.pop("enum")
        about = {"description": schema.pop("markdownDescription"), "default": setting["default"]}
        known = {key: value for key, value in about.items() if value is not None}
        node.setdefault("properties", {})[field] = schema | known
    _close(root)
    return _json(root)


def _close(schema: dict[str, Any]) -> None:
    """Allow a table the properties that it has, and no others."""
    for inner in [*schema.get("properties", {}).values(), schema.get("additionalProperties")]:
        if isinstance(inner, dict):
            _close(inner)
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)


#: The hosts in VS Code: the only table with names of people's own.
HOSTS: dict[str, Any] = {
    "type": "object",
    "markdownDescription": "The machines that kernels can run on, by the name that `#accelopt.host#` takes.",
    "default": {},
    "scope": "machine-overridable",
}


def _value_schema(setting: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of one value."""
    kinds = {"table": ["object"], "problem": ["string", "object", "null"]}
    kind = kinds.get(setting["type"], [setting["type"]])
    if setting["type"] == "number" and setting["default"] is None:
        kind = [*kind, "null"]
    pattern, optional = setting.get("pattern"), "?" if setting["default"] == "" else ""
    choices = setting.get("choices")
    if hardware := setting.get("hardware"):
        pattern, choices = None, [""] if optional else []
        choices += [t["name"] for t in map(_read, sorted(TARGETS.glob("*.json"))) if t["kind"] == hardware]
    schema = {
        "type": kind[0] if len(kind) == 1 else kind,
        "minimum": setting.get("minimum"),
        "maximum": setting.get("maximum"),
        "enum": choices,
        "pattern": f"^({pattern}){optional}$" if pattern else None,
        "additionalProperties": {"type": "string"} if "object" in kind else None,
        "markdownDescription": setting["about"],
    }
    return {key: value for key, value in schema.items() if value is not None}


def palette() -> list[dict[str, Any]]:
    """The commands of the palette: those of the server's actions that have one, and the extension's own."""
    table = _read(PACKAGE / "actions.json")
    return [{"name": a["name"], **a["palette"]} for a in table["actions"] if "palette" in a] + table["client"]


#: What a language model is told of each input of a tool.
INPUTS = {
    "file": "The Python file: its absolute path, or one relative to the workspace.",
    "kernel": "The name of one kernel of the file; left out: all of them.",
}


def model_tools() -> dict[str, list[dict[str, Any]]]:
    """Return what VS Code offers to language models: the tools, and a chat participant with a command for each."""
    rows = _read(PACKAGE / "actions.json")["tools"]
    tools = [
        {
            "name": f"accelopt_{row['name']}",
            "displayName": row["title"],
            "toolReferenceName": f"accelopt-{row['name']}",
            "canBeReferencedInPrompt": True,
            "modelDescription": row["does"],
            "userDescription": row["title"],
            "when": "isWorkspaceTrusted",
            "inputSchema": {
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": INPUTS[name]} for name in row["inputs"]
                },
                "required": [name for name in row["inputs"] if name == "file"],
            },
        }
        for row in rows
    ]
    commands = [{"name": row["name"], "description": row["title"]} for row in rows]
    participant = {"id": "accelopt.chat", "name": "accelopt", "fullName": "AccelOpt", "commands": commands}
    return {"languageModelTools": tools, "chatParticipants": [participant]}


def manifest() -> str:
    """The extension's manifest, with the settings and the commands of today."""
    content = _read(EXTENSION / "package.json")
    contributes = content["contributes"]
    settings = editor_settings()
    own = contributes["configuration"]["properties"]
    contributes["configuration"]["properties"] = {name: own[name] for name in OF_THE_CLIENT} | settings
    sensitive = [name for name, schema in settings.items() if schema["scope"] != "window"]
    content["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = [
        OF_THE_CLIENT[0],
        *sensitive,
    ]
    contributes["commands"] = [
        {"command": f"accelopt.{row['name']}", "title": f"%command.{row['name']}%", "category": "AccelOpt"}
        | ({"icon": row["icon"]} if "icon" in row else {})
        for row in palette()
    ]
    contributes["menus"]["commandPalette"] = [
        {"command": f"accelopt.{row['name']}", "when": row["when"]} for row in palette() if "when" in row
    ]
    contributes.update(model_tools())
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
    ROOT / "docs/reference/accelopt.schema.json": file_schema,
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
