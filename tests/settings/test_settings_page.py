from __future__ import annotations

import dataclasses
import sys
import typing

from accelopt_lsp.settings import load
from accelopt_lsp.settings.schema import all_settings, setting_named

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_schema_and_the_classes_have_the_same_settings() -> None:
    found: set[str] = set()
    hints = typing.get_type_hints(load.Settings)
    for field in dataclasses.fields(load.Settings):
        if field.name in ("project_root", "complaints", "origins", "interpreter", "unapproved", "untrusted"):
            continue
        hint = load.HostSettings if field.name == "hosts" else hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            prefix = "hosts.NAME." if field.name == "hosts" else f"{field.name}."
            found |= _names(hint, prefix)
        else:
            found.add(field.name)
    assert found == set(all_settings())


def _names(settings: type, prefix: str) -> set[str]:
    """The dotted names of the fields, those of a table in a table too."""
    found: set[str] = set()
    for name, hint in typing.get_type_hints(settings).items():
        nested = isinstance(hint, type) and dataclasses.is_dataclass(hint)
        found |= _names(hint, f"{prefix}{name}.") if nested else {prefix + name}
    return found


def test_every_default_and_example_is_a_value_the_setting_can_have() -> None:
    for setting in all_settings().values():
        if setting.default is not None:
            assert setting.check(setting.default) == setting.default
        assert setting.check(tomllib.loads(f"example = {setting.example}")["example"]) is not None


def test_a_hosts_setting_is_found_by_any_hosts_name() -> None:
    assert setting_named("hosts.lab.ssh") is all_settings()["hosts.NAME.ssh"]
    assert setting_named("hosts.a b.ssh") is None
    assert setting_named("hosts.lab") is None
