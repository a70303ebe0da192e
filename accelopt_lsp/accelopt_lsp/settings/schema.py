"""Read the settings from ``schema.json`` and check values against them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

ENVIRONMENT_PREFIX = "ACCELOPT_"
HOST_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")

#: A name that would hold a secret. ``api_key_env`` holds a variable's name, which is none.
_SECRET = re.compile(r"(api_?key|access_?key|token|secret|password|passwd)\Z", re.IGNORECASE)


class InvalidValueError(ValueError):
    """A value that its setting cannot have; the message reads on after the setting's name."""


@dataclass(frozen=True)
class Setting:
    """One setting. ``name`` is dotted; ``NAME`` in it stands for the name of a host.

    A ``sensitive`` one names a host, a command, a file to write or a model: a workspace that is not trusted
    cannot give it. A ``personal`` one no project gives, trusted or not. ``hardware`` is the kind of target that it
    names. An ``address`` says what a host is connected to: a host has one of them, which makes it that kind of host.
    """

    name: str
    type: Literal["string", "boolean", "integer", "number", "table", "problem"]
    default: Any
    about: str
    example: str
    sensitive: bool = False
    personal: bool = False
    address: bool = False
    pattern: str | None = None
    hardware: str | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    @property
    def field(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    @property
    def variable(self) -> str | None:
        """The environment variable that gives it; None for those that only a file can say."""
        if "NAME" in self.name or self.type == "table":
            return None
        return ENVIRONMENT_PREFIX + self.name.replace(".", "_").upper()

    def check(self, value: Any) -> Any:
        """Return the value, as the type it should have.

        Raises:
            InvalidValueError: it has another type, or lies outside what is allowed.
        """
        if self.type == "boolean":
            if not isinstance(value, bool):
                raise InvalidValueError(f"must be true or false, not {value!r}")
        elif self.type in ("integer", "number"):
            return self._check_number(value)
        elif self.type == "table":
            if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
                raise InvalidValueError("must be a table of strings")
        elif self.type == "problem":
            table = isinstance(value, dict) and all(isinstance(v, str) and v for v in value.values())
            if not table and not (isinstance(value, str) and value):
                raise InvalidValueError("must be a path, or a table from files to paths")
        else:
            self._check_string(value)
        return value

    def _check_string(self, value: Any) -> None:
        if not isinstance(value, str):
            raise InvalidValueError(f"must be a string, not {value!r}")
        if "\0" in value or "\n" in value:
            raise InvalidValueError("must be one line of text")
        if self.choices and value not in self.choices:
            raise InvalidValueError(f"must be one of {', '.join(map(repr, self.choices))}, not {value!r}")
        if value != self.default and self.pattern and not re.fullmatch(self.pattern, value):
            raise InvalidValueError(f"cannot be {value!r}; write something like {self.example}")

        if value != self.default and self.hardware:
            from accelopt_profiling.targets.target import UnknownTargetError, load_target, target_names

            try:
                fits = load_target(value).kind == self.hardware
            except UnknownTargetError:
                fits = False
            if not fits:
                raise InvalidValueError(
                    f"must be one of {', '.join(target_names(self.hardware))}, not {value!r}"
                )

    def _check_number(self, value: Any) -> Any:
        whole = self.type == "integer"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise InvalidValueError(f"must be a {'whole ' if whole else ''}number, not {value!r}")
        if not whole and not math.isfinite(value):
            raise InvalidValueError("must be a finite number")
        if self.minimum is not None and value < self.minimum:
            raise InvalidValueError(f"must be at least {self.minimum:g}, not {value:g}")
        if self.maximum is not None and value > self.maximum:
            raise InvalidValueError(f"must be at most {self.maximum:g}, not {value:g}")
        return value if whole else float(value)

    def from_text(self, text: str) -> Any:
        """Return the value that an environment variable's text means. Raises InvalidValueError."""
        if self.type == "boolean":
            meanings = {"1": True, "true": True, "yes": True, "on": True}
            meanings |= {"0": False, "false": False, "no": False, "off": False}
            if text.strip().lower() not in meanings:
                raise InvalidValueError(f"must be true or false, not {text!r}")
            return meanings[text.strip().lower()]
        if self.type in ("integer", "number"):
            try:
                return self.check(int(text) if self.type == "integer" else float(text))
            except InvalidValueError:
                raise
            except ValueError:
                raise InvalidValueError(f"must be a number, not {text!r}") from None
        return self.check(text)


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))
    return data


@cache
def all_settings() -> dict[str, Setting]:
    """Return every setting by its dotted name, in the order of the documentation."""
    listed = [Setting(**{**s, "choices": tuple(s.get("choices", ()))}) for s in _data()["settings"]]
    return {setting.name: setting for setting in listed}


def environment_only() -> dict[str, str]:
    """Return the variables that are no setting, and what they are for."""
    return {entry["name"]: entry["about"] for entry in _data()["environment_only"]}


def setting_named(name: str) -> Setting | None:
    """Return the setting of a dotted name; ``hosts.lab.ssh`` is ``hosts.NAME.ssh``."""
    parts = name.split(".")
    if parts[0] == "hosts" and len(parts) > 2 and HOST_NAME.match(parts[1]):
        name = ".".join(["hosts", "NAME", *parts[2:]])
    return all_settings().get(name)


def holds_secret(name: str) -> bool:
    """Return whether the last part of a dotted name says that its value is a key."""
    return bool(_SECRET.search(name.rpartition(".")[2]))


def nearest(name: str, among: Iterable[str]) -> str:
    """Return "; did you mean X?" where a known name is close, else nothing."""
    import difflib  # not at the top: the start has no time for it

    close = difflib.get_close_matches(name, list(among), n=1, cutoff=0.6)
    return f"; did you mean `{close[0]}`?" if close else ""
