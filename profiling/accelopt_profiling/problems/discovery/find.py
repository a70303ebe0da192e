"""Find the problem of a kernel file, by syntax only: nothing is imported and nothing is run.

Ten ways, the first that matches wins: named by a comment or the settings; ``get_inputs`` and ``reference``
in the file or in ``<stem>_problem.py``, where ``get_inputs`` is enough; a recording, ``<stem>_recording.json``;
NKIBench; KernelBench; FlashInfer-Bench; GPU MODE; tritonbench; the file runs itself; none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from accelopt_profiling.kernels import Discovery
from accelopt_profiling.measurement import Finding, Severity
from accelopt_profiling.problems.discovery.gpumode import GpuModeTask, gpumode_task
from accelopt_profiling.problems.discovery.imports import Imports
from accelopt_profiling.problems.discovery.locations import (
    NamedProblem,
    flashinfer_candidates,
    flashinfer_workloads,
    kernelbench_candidates,
    named_in_comment,
    named_in_settings,
    nkibench_reference,
    stored_inputs,
)
from accelopt_profiling.problems.discovery.problem_files import Recognised, recognise_json, recognise_python
from accelopt_profiling.problems.discovery.script_detection import own_runs
from accelopt_profiling.problems.discovery.tritonbench import (
    OPERATOR_FILE,
    benchmarked_operator,
    dotted_name,
    names_from,
)
from accelopt_profiling.problems.ref import ProblemKind, ProblemLookup, ProblemRef
from accelopt_profiling.recording.recorded_call import recording_path
from accelopt_profiling.source_text import ParsedPython, UnreadableFileError, read_text, try_parse


def find_problem(
    path: Path,
    source: ParsedPython,
    discovery: Discovery,
    *,
    project_root: Path | None,
    configured: Mapping[str, str] | str | None,
) -> ProblemLookup:
    """Find the problem of the kernel file ``path`` whose (perhaps unsaved) content is ``source``.

    ``configured`` is the setting ``problem``: one path, or patterns of files and their paths, relative to
    ``project_root``. What is wrong becomes findings; nothing is raised.
    """
    return _ProblemSearch(
        path.resolve(), source, discovery, project_root.resolve() if project_root else None
    ).run(configured)


class _ProblemSearch:
    def __init__(
        self, path: Path, source: ParsedPython, discovery: Discovery, project_root: Path | None
    ) -> None:
        self.path, self.source, self.text, self.discovery = path, source, source.text, discovery
        inside = project_root is not None and path.is_relative_to(project_root)
        self.project_root = project_root if inside else None
        self.line = discovery.kernels[0].line if discovery.kernels else 1
        self.own: Recognised | None = None

    def run(self, configured: Mapping[str, str] | str | None) -> ProblemLookup:
        if not self.discovery.kernels:
            return ProblemLookup(None, root=self.project_root or self.path.parent)
        named = named_in_comment(self.path, self.text) or named_in_settings(
            self.path, configured, self.project_root
        )
        if named:
            return self._named(named)
        self.own = recognise_python(self.source)
        if self.own.kind == "module" and not self.own.unreferenced:
            return self._lookup("module", None, "in the kernel file", self.text)
        beside = self.path.with_name(f"{self.path.stem}_problem.py")
        if os.path.lexists(beside) and beside != self.path:
            return self._file(beside, f"in {beside.name}", self.line, None)
        recorded = recording_path(self.path)
        if os.path.lexists(recorded):
            return self._file(recorded, f"recorded, in {recorded.name}", self.line, None)
        for way in (self._nkibench, self._kernelbench, self._flashinfer, self._gpumode, self._tritonbench,
                    self._selfrun):  # fmt: skip
            if lookup := way():
                return lookup
        if self.own.unreferenced:
            return self._lookup("module", None, "in the kernel file", self.text, options=_options(self.own))
        return self._none()

    def _named(self, named: NamedProblem) -> ProblemLookup:
        line = named.line or self.line
        origin = f"named in a comment on line {named.line}" if named.line else "named in the settings"
        if self.project_root and not named.path.is_relative_to(self.project_root):
            message = (
                f"The problem {named.spelling} lies outside the project {self.project_root}; move it inside."
            )
            return self._fault("problem-invalid", line, message)
        if named.path == self.path:
            if lookup := self._operator_in(self.path, self.source, origin):
                return lookup
            own = recognise_python(self.source)
            if own.kind is None:
                return self._fault(
                    "problem-invalid", line, f"The file is named as its own problem, but {own.fault}."
                )
            return self._lookup(own.kind, None, origin, self.text, entry=named.entry, options=_options(own))
        return self._file(named.path, origin, line, named.entry, spelling=named.spelling)

    def _file(
        self, file: Path, origin: str, line: int, entry: str | None, spelling: str | None = None
    ) -> ProblemLookup:
        """Return the problem in ``file``, whatever its kind, or the finding that says what is wrong with it."""
        name = spelling or file.name
        if file.name == "task.yml" and file.is_file():
            return self._task(gpumode_task(file), origin)
        if file.suffix not in (".py", ".json"):
            return self._fault(
                "problem-invalid", line, f"The problem {name} is neither a Python nor a JSON file."
            )
        try:
            text = read_text(file)
        except UnreadableFileError as error:
            ending = "; create it or correct the name" if error.code == "problem-missing" else ""
            return self._fault(error.code, line, f"The problem {name} {error.why}{ending}.")
        source = try_parse(text) if file.suffix == ".py" else None
        if source and (lookup := self._operator_in(file, source, origin)):
            return lookup
        recognised = recognise_python(source) if source else recognise_json(text)
        if recognised.kind is None:
            where = f" (line {recognised.line})" if recognised.line > 1 else ""
            return self._fault(
                "problem-invalid", line, f"The problem {name}{where} cannot be used: {recognised.fault}."
            )
        if recognised.kind == "flashinfer":
            return self._definition(file, text, origin, line, entry)
        return self._lookup(
            recognised.kind, file, origin, text, entry=entry, options=_options(recognised),
            imports=source.imports if source else [],
            also=self._task_files() if recognised.kind == "recording" else None,
        )  # fmt: skip

    def _task_files(self) -> dict[Path, str]:
        """Return the files that a submission to GPU MODE imports, as if they lay beside it."""
        task = gpumode_task(self.path) if self.own and "custom_kernel" in self.own.names else None
        return {self.path.with_name(name): content for name, content in task.files.items()} if task else {}

    def _nkibench(self) -> ProblemLookup | None:
        if self.own and self.own.kind == "nkibench":
            return self._lookup("nkibench", None, "NKIBench functions in the kernel file", self.text)
        reference = nkibench_reference(self.path)
        return (
            self._file(reference, f"NKIBench reference {reference.name}", self.line, None)
            if reference
            else None
        )

    def _kernelbench(self) -> ProblemLookup | None:
        if not self.own or "ModelNew" not in self.own.names:
            return None
        if self.own.kind == "kernelbench":
            return self._lookup("kernelbench", None, "KernelBench model in the kernel file", self.text)
        for file in kernelbench_candidates(self.path):
            try:
                text = read_text(file)
            except UnreadableFileError:
                continue
            source = try_parse(text)
            if recognise_python(source).kind == "kernelbench":
                origin = f"KernelBench model in {file.name}"
                return self._lookup("kernelbench", file, origin, text, imports=source.imports)
        return None

    def _flashinfer(self) -> ProblemLookup | None:
        for file in flashinfer_candidates(self.path):
            try:
                text = read_text(file)
            except UnreadableFileError:
                continue
            if recognise_json(text).kind == "flashinfer":
                return self._definition(
                    file, text, f"FlashInfer-Bench definition {file.name}", self.line, None
                )
        return None

    def _definition(self, file: Path, text: str, origin: str, line: int, entry: str | None) -> ProblemLookup:
        workloads = flashinfer_workloads(file, str(json.loads(text)["name"]))
        if workloads is None:
            beside = f"put {file.stem}.jsonl beside it, one workload a line"
            message = f"The definition {file.name} has no workloads; {beside}."
            return self._fault("problem-missing", line, message)
        try:
            content = read_text(workloads)
        except UnreadableFileError as error:
            return self._fault(error.code, line, f"The workloads {workloads.name} {error.why}.")
        stored = stored_inputs(workloads, content)
        also = {workloads: content, **dict(stored.values())}
        lookup = self._lookup("flashinfer", file, origin, text, entry=entry, also=also, workloads=workloads)
        if lookup.ref is not None and lookup.root is not None and stored:
            root = lookup.root
            names = {name: path.relative_to(root).as_posix() for name, (path, _) in stored.items()}
            ref = replace(lookup.ref, options={**lookup.ref.options, "stored": names})
            return replace(lookup, ref=ref)
        return lookup

    def _gpumode(self) -> ProblemLookup | None:
        """Return a submission to GPU MODE: its task's files are put beside it, where it imports them from."""
        task = gpumode_task(self.path) if self.own and "custom_kernel" in self.own.names else None
        return self._task(task, f"GPU MODE task {task.folder.name}") if task else None

    def _task(self, task: GpuModeTask | None, origin: str) -> ProblemLookup:
        if task is None:
            return self._fault("problem-invalid", self.line, "Beside task.yml there is no reference.py.")
        if task.fault:
            return self._fault(
                "problem-invalid", self.line, f"The task in {task.folder.name} cannot be used: {task.fault}."
            )
        text = task.files["reference.py"]
        beside = {self.path.with_name(name): content for name, content in task.files.items()}
        options: dict[str, Any] = {"cases": task.cases}
        if "def ref_kernel" not in text:
            options["unreferenced"] = True
        reference = self.path.with_name("reference.py")
        others = {file: content for file, content in beside.items() if file != reference}
        return self._lookup("gpumode", reference, origin, text, also=others, options=options)

    def _tritonbench(self) -> ProblemLookup | None:
        """Return the tritonbench operator in the kernel file, or in ``operator.py`` beside it."""
        origin = f"tritonbench operator {self.path.parent.name}"
        if lookup := self._operator_in(self.path, self.source, origin):
            return lookup
        beside = self.path.with_name(OPERATOR_FILE)
        if beside == self.path or not beside.is_file():
            return None
        try:
            source = try_parse(read_text(beside))
        except UnreadableFileError:
            return None
        return self._operator_in(beside, source, origin)

    def _operator_in(self, file: Path, source: ParsedPython, origin: str) -> ProblemLookup | None:
        own = file == self.path
        kernels = {k.name.split(".")[-1] for k in self.discovery.kernels}
        if not own:
            kernels = names_from(source.tree, self.path.stem)
        found = None if source.fault else benchmarked_operator(source.tree, kernels)
        if found is None:
            return None
        member, above = dotted_name(file)
        options = {**asdict(found), "member": "" if own else member}
        if not found.baseline:
            options["unreferenced"] = True
        return self._lookup(
            "tritonbench", None if own else file, origin, source.text, options=options, above=above,
            imports=source.imports,
        )  # fmt: skip

    def _selfrun(self) -> ProblemLookup | None:
        runs = own_runs(self.source, self.discovery)
        if not runs:
            return None
        ways = [
            *(["its __main__ block"] if runs.main else []),
            *(["its own statements"] if runs.module else []),
            *runs.functions,
        ]
        return self._lookup(
            "selfrun", None, f"the file runs itself: {', '.join(ways)}", self.text, options=asdict(runs)
        )

    def _none(self) -> ProblemLookup:
        findings: list[Finding] = []
        if self.own and self.own.names & _PARTS and self.own.kind is None:
            message = f"The problem in this file cannot be used: {self.own.fault}."
            findings.append(Finding("problem-invalid", self.own.line, "warning", message))
        stem = self.path.stem
        if all(k.device_function for k in self.discovery.kernels):
            names = ", ".join(k.name for k in self.discovery.kernels[:4])
            message = f"Nothing here is launched: kernels call {names}, so profile a file with such a kernel."
            return ProblemLookup(
                None, findings=[*findings, Finding("no-problem", self.line, "information", message)],
                root=self._root([]),
            )  # fmt: skip
        message = (
            f"No problem was found, so nothing says what to run {self.discovery.kernels[0].name} with. "
            f"Add get_inputs() and reference() here or in {stem}_problem.py; `accelopt problem` writes a first version."
        )
        findings.append(Finding("no-problem", self.line, "information", message, quickfix="createProblem"))
        return ProblemLookup(None, findings=findings, root=self._root([]))

    def _fault(self, code: str, line: int, message: str, severity: Severity = "error") -> ProblemLookup:
        finding = Finding(code, line, severity, message)
        return ProblemLookup(None, findings=[finding], root=self.project_root or self.path.parent)

    def _lookup(
        self,
        kind: ProblemKind,
        file: Path | None,
        origin: str,
        text: str,
        *,
        entry: str | None = None,
        also: dict[Path, str] | None = None,
        workloads: Path | None = None,
        options: dict[str, Any] | None = None,
        imports: Imports | None = None,
        above: Path | None = None,
    ) -> ProblemLookup:
        texts = {**({file: text} if file else {}), **(also or {})}
        root = self._root(list(texts), above)
        if root is None:
            return self._fault(
                "problem-invalid", self.line, f"The problem {file} lies outside the project; move it into it."
            )
        files = {p.relative_to(root).as_posix(): content for p, content in texts.items()}
        options = dict(options or {})
        if workloads:
            options["workloads"] = workloads.relative_to(root).as_posix()
        own = (
            text if file else self.discovery.rest_hash
        )  # editing a kernel does not change a problem beside it
        digest = hashlib.sha256("\0".join([kind, own, *(also or {}).values()]).encode()).hexdigest()[:16]
        path = file.relative_to(root).as_posix() if file else None
        ref = ProblemRef(kind, path, entry, origin, digest, options)
        return ProblemLookup(ref, files, root=root, imports={path: imports} if path and imports else {})

    def _root(self, files: list[Path], above: Path | None = None) -> Path | None:
        """Return the folder that paths of the job are relative to, ``above`` or around it where that is given; None
        when a file lies outside the project."""
        if self.project_root:
            return self.project_root if all(f.is_relative_to(self.project_root) for f in files) else None
        around = _imported_from(self.path, self.source)
        return Path(os.path.commonpath([around, *([above] if above else []), *(f.parent for f in files)]))


#: What stands in a file that was to be its own problem; a `forward` alone is any library's.
_PARTS = {"get_inputs", "reference", "transform_to_nki_inputs", "transform_nki_outputs"}


def _options(recognised: Recognised) -> dict[str, Any]:
    stated = {"unreferenced": recognised.unreferenced, "inferred": recognised.inferred}
    return {name: True for name, holds in stated.items() if holds}


def _imported_from(path: Path, source: ParsedPython) -> Path:
    """Return the folder that ``path`` imports its own package from: above the outermost package around it where the
    file imports that, relatively or by its name; else the file's own folder.
    """
    levels = min(max((level for _, level in source.imports), default=0), len(path.parents))
    climbs_to = path.parents[max(levels, 1) - 1]
    above = next(f for f in (climbs_to, *climbs_to.parents) if not (f / "__init__.py").is_file())
    package = path.relative_to(above).parts[0]
    named = any(not level and name.split(".")[0] == package for name, level in source.imports)
    return above if levels or named else path.parent
