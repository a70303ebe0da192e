"""Keep what a person approved of a project: that its programs may be run, and the sensitive settings of its file.

A project's files may come from anybody. Its environment (``.venv``) is a program, and its settings can name one, a
host, or an address that code is sent to. Nothing of that is used before a person approved it, once per folder; for
settings once per content, so that a change is asked about again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The file's largest size; a larger one is not ours.
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class UnapprovedSettings:
    """The sensitive settings (dotted name -> value) of the project in ``folder`` that nobody approved."""

    folder: Path
    values: dict[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{name} = {json.dumps(value)}" for name, value in sorted(self.values.items()))


class Approvals:
    """The approvals in the file ``path``. One that cannot be read holds none."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> Approvals:
        """Return the user's: in the data folder, or in the file that ``ACCELOPT_APPROVALS`` names. No setting
        changes it."""
        if override := environ.get("ACCELOPT_APPROVALS"):
            return cls(Path(override).expanduser().absolute())
        import platformdirs

        return cls(platformdirs.user_data_path("accelopt", appauthor=False) / "approvals.json")

    def trusts(self, folder: Path) -> bool:
        """Return whether programs of ``folder`` may be run: it or a folder above it was trusted."""
        trusted = self._read()["trusted"]
        folder = folder.resolve()
        return any(str(place) in trusted for place in (folder, *folder.parents))

    def approves(self, folder: Path, values: Mapping[str, Any]) -> bool:
        """Return whether exactly these settings of the project in ``folder`` were approved."""
        return bool(self._read()["settings"].get(str(folder.resolve())) == _digest(values))

    def give(self, folder: Path, values: Mapping[str, Any] | None = None, *, trust: bool = False) -> None:
        """Approve the settings ``values`` of the project in ``folder``; ``trust`` its programs too. Raises OSError."""
        data, name = self._read(), str(folder.resolve())
        if values:
            data["settings"][name] = _digest(values)
        if trust:
            data["trusted"] = sorted({*data["trusted"], name})
        self._write(data)

    def withdraw(self, folder: Path) -> bool:
        """Take back what was approved for ``folder``; False where there was nothing. Raises OSError."""
        data, name = self._read(), str(folder.resolve())
        present = name in data["settings"] or name in data["trusted"]
        if present:
            data["settings"].pop(name, None)
            data["trusted"] = [place for place in data["trusted"] if place != name]
            self._write(data)
        return present

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
            trusted, settings = data["trusted"], data["settings"]
            if isinstance(trusted, list) and isinstance(settings, dict):
                return {"trusted": [str(place) for place in trusted], "settings": settings}
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return {"trusted": [], "settings": {}}

    def _write(self, data: Mapping[str, Any]) -> None:
        from accelopt_memory.whole_file import whole_file

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.path) as file:
            json.dump(data, file, indent=2)


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
