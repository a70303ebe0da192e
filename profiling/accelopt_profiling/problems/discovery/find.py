"""Find the problem of a kernel file, by syntax only: nothing is imported and nothing is run.

One that a comment or the settings name comes first, then what a layout finds, in the order of ``catalogue.LAYOUTS``,
and at last inputs in the kernel file without a reference.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.catalogue import LAYOUTS
from accelopt_profiling.problems.discovery.problem_files import Recognised, recognise_python
from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.source_text import ParsedPython, UnreadableFileError, resolve_links, source_lines

_COMMENT = re.compile(r"#\s*accelopt:\s*(?P<settings>.*)$")
_SETTING = re.compile(r"(?P<key>\w+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>\S+))")


@dataclass(frozen=True)
class NamedProblem:
    """A problem file that a comment or the settings name, as ``spelling`` writes it; ``path`` is absolute.

    ``line`` (1-based) is the line of the comment in the kernel file, None for the settings.
    """

    path: Path
    entry: str | None
    line: int | None
    spelling: str


def named_in_comment(path: Path, text: str) -> NamedProblem | None:
    """Read the first comment ``# accelopt: problem=FILE [entry=NAME]``; FILE is relative to the file's folder."""
    if "accelopt:" not in text:
        return None
    for line, comment in _comments(text):
        matched = _COMMENT.match(comment)
        if not matched:
            continue
        settings = {m["key"]: m["quoted"] or m["bare"] or "" for m in _SETTING.finditer(matched["settings"])}
        if settings.get("problem"):
            spelling = settings["problem"]
            return NamedProblem(resolve_links(path.parent / spelling), settings.get("entry"), line, spelling)
    return None


def named_in_settings(
    path: Path, configured: Mapping[str, str] | str | None, project_root: Path | None
) -> NamedProblem | None:
    """Return the problem that the settings give this file.

    ``configured`` is one path for every file, or maps file patterns (relative to the project's root, ``*``
    also crosses folders) to paths; a full match of the path comes before patterns.
    """
    if not configured:
        return None
    base = project_root or path.parent
    if isinstance(configured, str):
        return NamedProblem(resolve_links(base / configured), None, None, configured)
    relative = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name
    for pattern in sorted(configured, key=lambda p: (p != relative, list(configured).index(p))):
        if relative == pattern or fnmatch(relative, pattern) or fnmatch(path.name, pattern):
            spelling = configured[pattern]
            return NamedProblem(resolve_links(base / spelling), None, None, spelling)
    return None


def _comments(text: str) -> list[tuple[int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [(n, line[line.index("#") :]) for n, line in enumerate(source_lines(text), 1) if "#" in line]
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def find_problem(file: KernelSource, parsed: ParsedPython) -> ProblemLookup:
    """Find the problem of a kernel file, whose text is ``parsed``.

    ``file.configured`` is the setting ``problem``: one path, or patterns of files and their paths, relative to
    ``file.project_root``. What is wrong becomes findings; nothing is raised.
    """
    path, root = file.path.resolve(), file.project_root.resolve() if file.project_root else None
    root = root if root is not None and path.is_relative_to(root) else None
    if not file.kernels:
        return ProblemLookup(None, root=root or path.parent)
    choice = named_in_comment(path, file.text) or named_in_settings(path, file.configured, root)
    own = recognise_python(parsed, LAYOUTS)
    search = ProblemSearch(file, parsed, root, own.names)
    if choice:
        return _named(search, choice, own)
    for layout in LAYOUTS:
        if layout.find is not None and (match := layout.find(search)):
            return match if isinstance(match, ProblemLookup) else _read(search, match)
    if own.unreferenced:
        options = _options(own)
        return search.lookup(str(own.kind), None, "in the kernel file", options=options)
    return _none(search, own)


def _named(search: ProblemSearch, choice: NamedProblem, own: Recognised) -> ProblemLookup:
    line = choice.line or search.line
    origin = f"named in a comment on line {choice.line}" if choice.line else "named in the settings"
    if search.project_root and not choice.path.is_relative_to(search.project_root):
        message = (
            f"The problem {choice.spelling} lies outside the project {search.project_root}; move it inside."
        )
        return search.fault("problem-invalid", message, line)
    file = ProblemFile(choice.path, origin, entry=choice.entry, line=line, spelling=choice.spelling)
    if choice.path != search.path:
        return _read(search, file)
    file = replace(file, text=search.text, source=search.source)
    if lookup := _of_a_layout(search, file):
        return lookup
    if own.kind is None:
        message = f"The file is named as its own problem, but {own.fault}."
        return search.fault("problem-invalid", message, line)
    return search.lookup(own.kind, None, origin, entry=choice.entry, options=_options(own))


def _read(search: ProblemSearch, file: ProblemFile) -> ProblemLookup:
    """Return the problem in ``file``, whatever its layout, or the finding that says what is wrong with it."""
    name = file.spelling or file.path.name
    if file.path.suffix in (".py", ".json"):
        try:
            file = file.read()
        except UnreadableFileError as error:
            ending = "; create it or correct the name" if error.code == "problem-missing" else ""
            return search.fault(error.code, f"The problem {name} {error.why}{ending}.", file.line)
    if lookup := _of_a_layout(search, file):
        return lookup
    if file.path.suffix not in (".py", ".json"):
        message = f"The problem {name} is neither a Python nor a JSON file."
        return search.fault("problem-invalid", message, file.line)
    recognised = recognise_python(file.source, LAYOUTS) if file.source else _unrecognised_json(file)
    if recognised.kind is None:
        where = f" (line {recognised.line})" if recognised.line > 1 else ""
        message = f"The problem {name}{where} cannot be used: {recognised.fault}."
        return search.fault("problem-invalid", message, file.line)
    return search.lookup(
        recognised.kind, file.path, file.origin, file.text, entry=file.entry, options=_options(recognised),
        imports=file.source.imports if file.source else [],
    )  # fmt: skip


def _of_a_layout(search: ProblemSearch, file: ProblemFile) -> ProblemLookup | None:
    for layout in LAYOUTS:
        if layout.read is not None and (lookup := layout.read(search, file)):
            return lookup
    return None


def _unrecognised_json(file: ProblemFile) -> Recognised:
    """Return what keeps a JSON file that no layout takes from being a problem."""
    try:
        data: Any = json.loads(file.text)
    except ValueError as error:
        return Recognised(None, f"it is not valid JSON: {error}", getattr(error, "lineno", 1))
    except RecursionError:
        return Recognised(None, "it is not valid JSON: nested too deeply")
    if not isinstance(data, dict):
        return Recognised(None, "it is not a JSON object")
    json_layouts = [layout for layout in LAYOUTS if layout.keys]
    nearest = max(json_layouts, key=lambda layout: sum(key in data for key in layout.keys))
    missing = ", ".join(f'"{key}"' for key in nearest.keys if key not in data)
    return Recognised(None, f"it is not a {nearest.title} definition: it lacks {missing}")


def _none(search: ProblemSearch, own: Recognised) -> ProblemLookup:
    findings: list[Finding] = []
    if own.names & _PARTS and own.kind is None:
        message = f"The problem in this file cannot be used: {own.fault}."
        findings.append(Finding("problem-invalid", own.line, "warning", message))
    stem, kernels = search.path.stem, search.file.kernels
    if all(k.device_function for k in kernels):
        names = ", ".join(k.name for k in kernels[:4])
        message = f"Nothing here is launched: kernels call {names}, so profile a file with such a kernel."
        findings.append(Finding("no-problem", search.line, "information", message))
    else:
        message = (
            f"No problem was found, so nothing says what to run {kernels[0].name} with. "
            f"Add get_inputs() and reference() here or in {stem}_problem.py; `accelopt problem` writes a first version."
        )
        findings.append(Finding("no-problem", search.line, "information", message))
    return ProblemLookup(None, findings=findings, root=search.root([]))


#: What stands in a file that was to be its own problem; a `forward` alone is any library's.
_PARTS = {"get_inputs", "reference", "transform_to_nki_inputs", "transform_nki_outputs"}


def _options(recognised: Recognised) -> dict[str, Any]:
    stated = {"unreferenced": recognised.unreferenced, "inferred": recognised.inferred}
    return {name: True for name, holds in stated.items() if holds}
