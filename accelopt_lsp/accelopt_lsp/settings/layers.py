"""Read each layer of settings as flat dotted names, with what is wrong in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_lsp.settings.schema import (
    ENVIRONMENT_PREFIX,
    InvalidValueError,
    Setting,
    all_settings,
    environment_only,
    holds_secret,
    nearest,
    setting_named,
)

FILE_BYTES = 1 << 20

#: Settings that belong together, each file with its source.

_NO_KEYS = (
    "looks like a key, and no file holds one. Put it into an environment variable and name that one in "
    "`model.api_key_env`; change the key if this file was ever shared."
)


@dataclass(frozen=True)
class Complaint:
    """A setting that is wrong: in which layer, which one, and what to write instead. The layer below is
    used."""

    layer: str
    name: str
    message: str

    def __str__(self) -> str:
        what = f"`{self.name}` " if self.name else ""
        return f"{self.layer}: {what}{self.message}"


@dataclass
class Layer:
    """One source of settings. ``values`` are checked; ``folder`` is what its paths are relative to."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    complaints: list[Complaint] = field(default_factory=list)
    folder: Path | None = None

    def take(self, name: str, setting: Setting, value: Any) -> None:
        try:
            self.values[name] = setting.check(value)
        except InvalidValueError as error:
            self.complain(name, f"{error}.")

    def complain(self, name: str, message: str) -> None:
        self.complaints.append(Complaint(self.name, name, message))


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the user's settings file, whether it is there or not."""
    if override := environ.get("ACCELOPT_CONFIG"):
        return Path(override).expanduser().absolute()
    import platformdirs

    return platformdirs.user_config_path("accelopt", appauthor=False) / "accelopt.toml"


def user_layer(environ: Mapping[str, str]) -> Layer:
    path = user_file(environ)
    return _file_layer(path, "your settings", personal_too=True) if path.is_file() else Layer("your settings")


#: Files of a folder that a package is built in.
_BUILT_BY = ("pyproject.toml", "setup.py", "setup.cfg")


def project_layer(start: Path) -> Layer:
    """Return the nearest ``accelopt.toml`` or ``pyproject.toml`` with ``[tool.accelopt]``, from ``start``
    upwards.

    The search ends at the root of a repository: a folder above it belongs to somebody else. Without either the nearest
    folder that a package is built in is the project's.
    """
    folder = start.absolute() if start.is_dir() else start.absolute().parent
    built: Path | None = None
    for place in (folder, *folder.parents):
        if (place / "accelopt.toml").is_file():
            return _file_layer(place / "accelopt.toml", "the project's settings")
        if (place / "pyproject.toml").is_file():
            layer = _file_layer(place / "pyproject.toml", "the project's settings", ("tool", "accelopt"))
            if layer.values or layer.complaints:
                return layer
        if (place / ".git").exists() or (place / ".hg").exists():
            return Layer("the project's settings", folder=place)
        if built is None and any((place / name).is_file() for name in _BUILT_BY):
            built = place
    return Layer("the project's settings", folder=built)


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Return ``ACCELOPT_TARGET_NKI`` and so on; an empty variable counts as not set."""
    layer = Layer("the environment", folder=Path.cwd())
    by_variable = {s.variable: s for s in all_settings().values() if s.variable}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or not text or variable in environment_only():
            continue
        setting = by_variable.get(variable)
        if setting is None:
            layer.complain(variable, f"is no setting{nearest(variable, [*by_variable, *environment_only()])}")
            continue
        try:
            layer.values[setting.name] = setting.from_text(text)
        except InvalidValueError as error:
            layer.complain(variable, f"{error}.")
    if environ.get("ACCELOPT_DB"):
        layer.values["memory.path"] = environ["ACCELOPT_DB"]
    return layer


def given_layer(name: str, values: Mapping[str, Any], folder: Path | None) -> Layer:
    """Return the command line's flags, or the editor's ``accelopt.*``: dotted or nested names, in snake or
    camel case.

    None counts as not given.
    """
    layer = Layer(name, folder=folder)
    for dotted, value in _flat(_snake(values), ""):
        if value is not None:
            _take_named(layer, dotted, value)
    return layer


def _file_layer(path: Path, name: str, table: tuple[str, ...] = (), *, personal_too: bool = False) -> Layer:
    layer = Layer(f"{name} ({path})", folder=path.parent)
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES + 1)
        if len(raw) > FILE_BYTES:
            layer.complain("", f"The file is larger than {FILE_BYTES >> 20} MiB; it was not read.")
            return layer
        data: Any = parsed_toml(raw.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # TOML errors and wrong encodings are ValueErrors
        if not table:  # a pyproject.toml that does not parse may have nothing to say about this project
            layer.complain("", f"The file cannot be read: {error}.")
        return layer
    for key in table:
        data = data.get(key, {}) if isinstance(data, dict) else {}
    if not isinstance(data, dict):
        layer.complain(".".join(table), "must be a table.")
        return layer
    for dotted, value in _flat(data, ""):
        setting = setting_named(dotted)
        if holds_secret(dotted):
            layer.complain(dotted, _NO_KEYS)
        elif not personal_too and setting is not None and setting.personal:
            layer.complain(dotted, "belongs into your own settings, not into a project's.")
        else:
            _take_named(layer, dotted, value)
    return layer


def parsed_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError."""
    if sys.version_info >= (3, 11):
        import tomllib  # where there is a file to read: a start has no time for it
    else:
        import tomli as tomllib
    parsed: dict[str, Any] = tomllib.loads(text)
    return parsed


def _take_named(layer: Layer, dotted: str, value: Any) -> None:
    setting = setting_named(dotted)
    if setting is None:
        layer.complain(dotted, f"is no setting{nearest(dotted, all_settings())}")
    else:
        layer.take(dotted, setting, value)


def _flat(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Nested tables as dotted names; a table that is itself a value (``problem``, ``hosts.NAME.env``) stays
    whole.

    Keys inside such a table are looked at for secrets too, so those come out on their own.
    """
    for key, value in data.items():
        dotted = f"{prefix}{key}"
        setting = setting_named(dotted)
        if isinstance(value, Mapping) and setting is None:
            yield from _flat(value, f"{dotted}.")
        elif isinstance(value, Mapping) and setting is not None and setting.type == "table":
            yield from ((f"{dotted}.{k}", v) for k, v in value.items() if holds_secret(k))
            yield dotted, {k: v for k, v in value.items() if not holds_secret(k)}
        else:
            yield dotted, value


def _snake(values: Mapping[str, Any]) -> dict[str, Any]:
    """Names that belong to us in snake case (``baseUrl`` is ``base_url``); names of hosts and files as they
    are."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m.group(1).lower(), key)
        if key == "hosts" and isinstance(value, Mapping):
            value = {n: _snake(h) if isinstance(h, Mapping) else h for n, h in value.items()}
        elif isinstance(value, Mapping) and key not in ("problem", "env"):
            value = _snake(value)
        result[key if key.startswith("hosts.") else name] = value
    return result


#: Settings of the VS Code extension itself, beside the server's in the section ``accelopt``.
_OF_THE_CLIENT = frozenset({"interpreter", "trace"})


def editor_settings(section: object) -> dict[str, Any]:
    """Take the server's settings out of an editor's section ``accelopt``: under ``settings``, or flat."""
    if not isinstance(section, dict):
        return {}
    inner = section.get("settings")
    flat = {k: v for k, v in section.items() if k not in _OF_THE_CLIENT and k != "settings"}
    return {**flat, **inner} if isinstance(inner, dict) else flat
