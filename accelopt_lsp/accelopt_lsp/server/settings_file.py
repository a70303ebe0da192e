"""The project's settings file: written where there is none, pointed to where there is one."""

from __future__ import annotations

from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.service.protocol import FileRequest
from accelopt_profiling.source_text import UnreadableFileError, read_text

#: Layers of settings that a file does not change.
OVER_FILES = ("the environment", "the editor's settings", "the command line")


def settings_file(file: FileRequest, content: str) -> tuple[Path, bool]:
    """Return the project's settings file and whether it was written now, with ``content`` alone.

    Raises:
        UserError: it cannot be written.
    """
    folder = file.settings.project_root or Path(file.path).parent
    for present in (folder / "accelopt.toml", folder / "pyproject.toml"):
        if present.is_file() and (present.name == "accelopt.toml" or _holds_settings(present)):
            return present, False
    path = folder / "accelopt.toml"
    try:
        with path.open("x", encoding="utf-8") as settings:
            settings.write(content)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
    return path, True


def table_of(path: Path, table: str = "") -> str:
    """Return the heading below which a setting of ``table`` stands in that file."""
    if path.name != "pyproject.toml":
        return f"[{table}]" if table else "the first line"
    return f"[tool.accelopt{f'.{table}' if table else ''}]"


def _holds_settings(project: Path) -> bool:
    """Tell whether a ``pyproject.toml`` has settings of ours; one that cannot be read as text has none."""
    try:
        return "[tool.accelopt" in read_text(project)
    except UnreadableFileError:
        return False
