"""Collect the files that a job for a kernel file needs."""

from __future__ import annotations

from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.problems.discovery.imports import imported_names, project_imports
from accelopt_profiling.source_text import resolve_links


def job_files(file: KernelSource, *, ship_imports: bool, text: str | None = None) -> JobFiles:
    """Return the files of a job for ``file``, or for a rewrite ``text`` in its place with the same problem.

    With ``ship_imports`` the project's own modules that the files import travel too (a host elsewhere); without,
    the job gets the folders on this machine to import them from: the file's own, the project's root and its
    ``src``. A member of a package is imported as that (see ``package_members``); elsewhere relative imports find
    what they name among the job's files only, so those always travel.
    """
    path, root = file.path.resolve(), file.root
    kernel = path.relative_to(root).as_posix()
    imports = file.imports_by_name if text is None else {**file.problem.imports, kernel: imported_names(text)}
    beside = {n: t for n, t in file.problem.files.items() if resolve_links(root / n).is_relative_to(root)}
    files = {kernel: file.text if text is None else text, **beside}
    folders = [f for f in dict.fromkeys([path.parent, root, root / "src"]) if f.is_dir()]
    relative = any(level for names in imports.values() for _, level in names)
    if ship_imports or (relative and not (path.parent / "__init__.py").is_file()):
        imports_by_path = {root / name: names for name, names in imports.items()}
        shipped = project_imports({root / n: t for n, t in files.items()}, folders, root, imports_by_path)
        files |= {p.relative_to(root).as_posix(): content for p, content in shipped.items()}
    return JobFiles(kernel, files, [] if ship_imports else [str(f) for f in folders], str(path))
