from __future__ import annotations

import sys

from accelopt_lsp.settings.schema import all_settings, setting_named

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_every_default_and_example_is_a_value_the_setting_can_have() -> None:
    for setting in all_settings().values():
        if setting.default is not None:
            assert setting.check(setting.default) == setting.default
        assert setting.check(tomllib.loads(f"example = {setting.example}")["example"]) is not None


def test_a_hosts_setting_is_found_by_any_hosts_name() -> None:
    assert setting_named("hosts.lab.ssh") is all_settings()["hosts.NAME.ssh"]
    assert setting_named("hosts.a b.ssh") is None
    assert setting_named("hosts.lab") is None
