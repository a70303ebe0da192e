"""What looking for a problem came to, and the files a job needs for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.jobs import Source
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.imports import project_imports
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.packages import climbed


@dataclass(frozen=True)
class FoundProblem:
    """``files`` maps paths relative to ``root`` to the texts the problem needs besides the kernel file.

    ``findings`` say what is wrong; those about another file name it in their message and point at the line of
    the kernel file that asked for it, or at its first kernel.
    """

    ref: ProblemRef | None
    files: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    root: Path | None = None


def source_for(path: Path, text: str, found: FoundProblem, *, ship_imports: bool) -> Source:
    """The files of a job for the kernel file ``path`` with the unsaved content ``text``.

    With ``ship_imports`` the project's own modules that the files import travel too (a host elsewhere);
    without, the job gets the folders on this machine to import them from: the file's own, the project's root
    and its ``src``. Relative imports find what they name among the job's files only, so those always travel.
    """
    path = path.resolve()
    root = (found.root or path.parent).resolve()
    kernel = path.relative_to(root).as_posix()
    files = {kernel: text, **found.files}
    folders = _import_folders(path, root)
    if ship_imports or climbed(files):
        texts = {root / name: content for name, content in files.items()}
        imported = project_imports(texts, folders, root)
        files |= {p.relative_to(root).as_posix(): content for p, content in imported.items()}
    return Source(kernel, files, [] if ship_imports else [str(f) for f in folders], str(path))


def _import_folders(path: Path, root: Path) -> list[Path]:
    folders = [path.parent, root, root / "src"]
    return [f for f in dict.fromkeys(folders) if f.is_dir()]
