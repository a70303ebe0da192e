"""The configurations that papers report, as settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

PRESETS = ("accelopt", "stark")


def preset(name: str) -> Mapping[str, Any]:
    """Return the settings of the preset ``name``, one of ``PRESETS``."""
    settings: Mapping[str, Any] = json.loads(_text(name))["settings"]
    return settings


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.json").read_text("utf-8")
