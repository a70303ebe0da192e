"""Decide whether the folder whose Python and files would run for a kernel file is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_lsp.settings.approvals import Approvals
from accelopt_lsp.settings.layers import project_layer


@dataclass(frozen=True)
class Workspace:
    """The editor's folders, and what it says of them.

    ``trusted`` are the folders that the editor calls trusted, without symbolic links. ``restricted`` tells that it
    calls nothing trusted: then no approval counts. ``pythons`` are the interpreters chosen in the editor, by folder.
    """

    folders: tuple[Path, ...] = ()
    trusted: frozenset[Path] = frozenset()
    restricted: bool = False
    pythons: Mapping[Path, str] = field(default_factory=dict)

    def folder_of(self, path: Path) -> Path | None:
        """Return the innermost of the folders that ``path`` is in; None where it is in none."""
        return innermost(path, self.folders)

    def python_for(self, path: Path) -> str | None:
        """Return the interpreter that was chosen in the editor for a file."""
        folder = innermost(path, self.pythons)
        return None if folder is None else self.pythons[folder]


def untrusted_folder(
    start: Path, project: Path | None, workspace: Workspace, approvals: Approvals
) -> Path | None:
    """Return the folder to ask about before anything for ``start`` (a file or folder) is run; None: all is trusted.

    It is the project's, or the editor's folder around it; ``start`` by itself is in its own folder. Where ``start`` is
    reached through a symbolic link, the folder that it leads to has to be trusted as well.
    """
    for folder in _owners(start.absolute(), project, workspace):
        real_folder = folder.resolve()
        by_editor = any(above in workspace.trusted for above in (real_folder, *real_folder.parents))
        if workspace.restricted or not (by_editor or approvals.trusts(real_folder)):
            return real_folder
    return None


def _owners(start: Path, project: Path | None, workspace: Workspace) -> Iterator[Path]:
    yield _owner(start, project, workspace)
    real = start.resolve()
    if real != start:
        yield _owner(real, project_layer(real).folder, workspace)


def _owner(start: Path, project: Path | None, workspace: Workspace) -> Path:
    own = project or (start if start.is_dir() else start.parent)
    around = workspace.folder_of(start)
    return own if around is None or own in around.parents else around


def innermost(path: Path, folders: Iterable[Path]) -> Path | None:
    """Return the longest of the folders that ``path`` is in."""
    around = [folder for folder in folders if path.is_relative_to(folder)]
    return max(around, key=lambda folder: len(folder.parts), default=None)
