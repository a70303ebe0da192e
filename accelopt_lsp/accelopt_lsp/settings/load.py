"""Compute the settings that hold for a file: defaults, and over them each layer in turn."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_lsp.settings.approvals import Approvals, UnapprovedSettings
from accelopt_lsp.settings.layers import (
    Complaint,
    Layer,
    environment_layer,
    given_layer,
    project_layer,
    user_layer,
)
from accelopt_lsp.settings.schema import all_settings, setting_named
from accelopt_lsp.settings.trust import Workspace, untrusted_folder
from accelopt_lsp.settings.values import SettingValues
from accelopt_profiling.jobs import Limits
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.plain import from_plain

_FOLDERS = (".venv", "venv")


@dataclass(frozen=True)
class KernelPython:
    """A Python on this machine, and in words where its name comes from."""

    path: str
    origin: str

    def __str__(self) -> str:
        return f"{self.path} ({self.origin})"


#: The one AccelOpt runs in.
OWN = KernelPython(sys.executable, "AccelOpt's own; no other was found")


def find_interpreter(
    setting: str,
    layer: str,
    start: Path | None,
    root: Path | None,
    environ: Mapping[str, str],
    trusted: bool,
    in_editor: str | None = None,
) -> KernelPython:
    """Return the first of: the setting ``python`` (from ``layer``), the choice ``in_editor``, ``VIRTUAL_ENV``, the
    nearest ``.venv`` or ``venv`` from ``start`` (a file or folder) upwards to ``root``, ``CONDA_PREFIX``, our own.

    A repository's environment is a program of its author's: without trust it is passed over, unless it is the one that
    AccelOpt runs in. Nothing is executed.
    """
    if setting:
        return KernelPython(str(Path(setting).expanduser()), f"the setting `python`, {layer}")
    if trusted and in_editor:
        return KernelPython(in_editor, "chosen in the editor")
    python = _of_prefix(environ, "VIRTUAL_ENV")
    if python is None and trusted and start is not None:
        python = next(_beside(start, root), None)
    return python or _of_prefix(environ, "CONDA_PREFIX") or OWN


def environment_passed_over(start: Path | None, root: Path | None) -> str | None:
    """Return the Python beside ``start`` that only a trusted folder gets; None where there is none, or it is ours."""
    beside = next(_beside(start, root), None) if start is not None else None
    own = beside is not None and Path(beside.path).parent.parent == Path(sys.prefix)
    return None if beside is None or own else beside.path


def _of_prefix(environ: Mapping[str, str], variable: str) -> KernelPython | None:
    prefix = environ.get(variable)
    python = _python_in(Path(prefix)) if prefix else None
    return KernelPython(str(python), f"from {variable}") if python is not None else None


def _beside(start: Path, root: Path | None) -> Iterator[KernelPython]:
    start = start.absolute()
    folder = start if start.is_dir() else start.parent
    last = root if root is not None and folder.is_relative_to(root) else folder
    for place in (folder, *folder.parents):
        for name in _FOLDERS:
            python = _python_in(place / name)
            if python is not None:
                yield KernelPython(str(python), f"the environment {name} in {place}")
        if place == last:
            return


def _python_in(prefix: Path) -> Path | None:
    python = prefix / "bin" / "python"
    return python if python.is_file() else None


@dataclass(frozen=True)
class Settings(SettingValues):
    """Every setting with its value. ``origins`` tells the layer of each that is no default.

    ``project_root`` is the folder of the project's settings file, or of its repository; ``problem_root`` the folder
    that the paths in ``problem`` are relative to. ``complaints`` are the settings that are wrong and were not used,
    ``unapproved`` those of the project that were not used because nobody approved them. ``interpreter`` is the Python
    that ``python`` leads to. ``untrusted`` is the folder that has to be trusted before anything of the file is run;
    None where it is.
    """

    project_root: Path | None = None
    complaints: tuple[Complaint, ...] = ()
    origins: dict[str, str] = field(default_factory=dict)
    interpreter: KernelPython = OWN
    unapproved: UnapprovedSettings | None = None
    untrusted: Path | None = None

    def targets(self, kernels: Iterable[Kernel]) -> dict[Dialect, str]:
        """Return the target per dialect for a file with these kernels. Where the settings name none for NKI it follows
        the package that its NKI kernels are written for, and the instructions that they use."""
        from accelopt_profiling.targets.target import default_neuron_target

        of_nki = [kernel for kernel in kernels if kernel.dialect == "nki"]
        usual = default_neuron_target(
            beta1=all(kernel.beta1 for kernel in of_nki),
            microscaling=any(kernel.microscaling for kernel in of_nki),
        )
        return {"triton": self.target.triton, "nki": self.target.nki or usual}

    @property
    def ignored(self) -> frozenset[str]:
        """The codes of the findings that are not told."""
        return frozenset(self.ignore.replace(",", " ").split())

    @property
    def asks_models(self) -> bool:
        """Whether a model may be asked at all."""
        return bool(self.model.base_url and self.model.model)

    @property
    def memory_path(self) -> Path:
        """The database of the memory."""
        from accelopt_memory.location import NOWHERE, default_path, project_path

        if self.memory.mode == "off":
            return NOWHERE
        personal = Path(self.memory.path).expanduser().absolute() if self.memory.path else default_path()
        return project_path(self.memory_project, personal) if self.memory_project else personal

    @property
    def memory_project(self) -> Path | None:
        """The root of the project that the memory belongs to; None: to the person."""
        return self.project_root if self.memory.mode == "project" else None

    @property
    def job_limits(self) -> Limits:
        """The limits of one step, as the worker wants them."""
        return Limits(
            seconds=self.limits.seconds,
            memory_bytes=self.limits.memory_mb << 20,
            output_bytes=self.limits.output_kb << 10,
        )


def load_settings(
    start: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    editor: Mapping[str, Any] | None = None,
    workspace: Workspace | None = None,
) -> Settings:
    """Return the settings for the file or folder ``start``; never raises: what is wrong is in ``complaints``.

    ``flags`` come from the command line and ``editor`` from the editor's ``accelopt.*``, both by setting name. What a
    project says about hosts, commands, files to write and models is used where the person approved it
    (``settings.approvals``). ``workspace`` is what the editor says of its folders: for a file whose folder is not
    trusted (``settings.trust``) none of this is used, the editor's own such settings neither.
    """
    environ = os.environ if environ is None else environ
    approvals = Approvals.of_user(environ)
    project = project_layer(start) if start is not None else Layer("the project's settings")
    editor_layer = given_layer("the editor's settings", editor or {}, project.folder or _folder(start))
    here = start or Path.cwd()
    untrusted = untrusted_folder(here, project.folder, workspace or Workspace(), approvals)
    trusted = untrusted is None
    if workspace is not None and not trusted:
        for layer in (project, editor_layer):
            _take_sensitive(layer)
    unapproved = _take_unapproved(project, approvals)
    layers = [
        user_layer(environ),
        project,
        environment_layer(environ),
        editor_layer,
        given_layer("the command line", flags or {}, Path.cwd()),
    ]
    values = {s.name: s.default for s in all_settings().values() if "NAME" not in s.name}
    origins: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.values.items():
            values[name] = value
            origins[name] = layer.name
        if layer is not project and layer.folder is not None and "problem" in layer.values:
            values["problem"] = _absolute(layer.values["problem"], layer.folder)
    complaints = [complaint for layer in layers for complaint in layer.complaints]
    complaints += _drop_incomplete_hosts(values, origins)
    allowed = trusted or origins.get("memory.mode") == project.name  # a project's own setting was approved
    if values["memory.mode"] == "project" and (not allowed or project.folder is None):
        values["memory.mode"] = "local"
    nested = {"hosts": {}, **_nested(values)}
    if values["host"] != "local" and values["host"] not in nested["hosts"]:
        message = f"names {values['host']!r}, but there is no [hosts.{values['host']}]; kernels run locally."
        complaints.append(Complaint(origins.pop("host"), "host", message))
        nested["host"] = "local"
    settings = from_plain(Settings, {**nested, "complaints": [], "origins": {}})
    root = project.folder if project.folder is not None else editor_layer.folder
    in_editor = workspace.python_for(here.absolute()) if workspace is not None else None
    interpreter = find_interpreter(
        settings.python,
        origins.get("python", ""),
        start=start,
        root=root,
        environ=environ,
        trusted=trusted,
        in_editor=in_editor,
    )
    if interpreter is OWN and not trusted and (passed := environment_passed_over(start, root)) is not None:
        message = (
            f"is {OWN.path}, not {passed}, until you trust this folder: `accelopt trust {untrusted}` does."
        )
        complaints.append(Complaint("the project", "python", message))
    return Settings(
        **{
            **settings.__dict__,
            "project_root": project.folder,
            "complaints": tuple(dict.fromkeys(complaints)),
            "origins": origins,
            "interpreter": interpreter,
            "unapproved": unapproved,
            "untrusted": untrusted,
        }
    )


def _absolute(problem: str | dict[str, str], folder: Path) -> str | dict[str, str]:
    if isinstance(problem, str):
        return str(folder / Path(problem).expanduser())
    return {file: str(folder / Path(path).expanduser()) for file, path in problem.items()}


def _folder(start: Path | None) -> Path | None:
    if start is None:
        return None
    return start if start.is_dir() else start.parent


def _take_sensitive(layer: Layer) -> dict[str, Any]:
    """Take the sensitive settings out of a layer and return them."""
    names = [n for n in layer.values if (s := setting_named(n)) is not None and s.sensitive]
    return {name: layer.values.pop(name) for name in names}


def _take_unapproved(project: Layer, approvals: Approvals) -> UnapprovedSettings | None:
    """Leave a project its sensitive settings only where a person approved them as they are."""
    values = _take_sensitive(project)
    if not values or project.folder is None:
        return None
    if approvals.approves(project.folder, values):
        project.values |= values
        return None
    return UnapprovedSettings(project.folder, values)


def _drop_incomplete_hosts(values: dict[str, Any], origins: dict[str, str]) -> list[Complaint]:
    """Take out each host without an address, or with two, which cannot be used; return what to say of them."""
    addresses = [s for s in all_settings().values() if s.address]
    names = {name.split(".")[1] for name in values if name.startswith("hosts.")}
    complaints = []
    for host in sorted(names):
        chosen = [a for a in addresses if values.get(a.name.replace("NAME", host))]
        if len(chosen) == 1:
            continue
        mine = [name for name in values if name.startswith(f"hosts.{host}.")]
        fields = [f"`{a.field}`" if chosen else f"`{a.field} = {a.example}`" for a in chosen or addresses]
        wrong = f"has {' and '.join(fields)}; keep one." if chosen else f"needs {' or '.join(fields)}."
        complaints.append(Complaint(origins[mine[0]], f"hosts.{host}", wrong))
        for name in mine:
            del values[name]
    return complaints


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in values.items():
        *tables, last = name.split(".")
        node = nested
        for table in tables:
            node = node.setdefault(table, {})
        node[last] = value
    return nested
