"""The server's settings in what an editor sends as its section ``accelopt``."""

from __future__ import annotations

from typing import Any

#: Settings of the VS Code extension itself, beside the server's in the section ``accelopt``.
_OF_THE_CLIENT = frozenset({"interpreter", "trace"})


def editor_settings(section: object) -> dict[str, Any]:
    """Take the server's settings out of an editor's section ``accelopt``: under ``settings``, or flat."""
    if not isinstance(section, dict):
        return {}
    inner = section.get("settings")
    flat = {k: v for k, v in section.items() if k not in _OF_THE_CLIENT and k != "settings"}
    return {**flat, **inner} if isinstance(inner, dict) else flat
