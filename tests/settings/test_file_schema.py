"""The JSON schema of ``accelopt.toml`` takes what the settings take, and nothing that they refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from accelopt_lsp.settings.schema import Setting, all_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/accelopt.schema.json").read_text())


def faults(text: str) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("setting", all_settings().values(), ids=lambda setting: setting.name)
def test_every_example_is_taken_and_a_wrong_type_refused(setting: Setting) -> None:
    name = setting.name.replace("NAME", "lab")
    assert faults(f"{name} = {setting.example}") == []
    assert faults(f"{name} = [1]")


def test_a_name_that_is_no_setting_is_refused() -> None:
    assert faults("hosst = 'lab'")
    assert faults("[hosts.lab]\nsssh = 'lab'")
    assert faults("target.triton = 'sm_90'") == []
