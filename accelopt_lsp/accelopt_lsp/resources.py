"""Open the settings, the memory and hosts. Wrong settings are reported on standard error, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_lsp.errors import UserError
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_lsp.service.protocol import FileRequest
    from accelopt_lsp.settings.load import Settings
    from accelopt_lsp.settings.values import HostSettings
    from accelopt_memory.memory import Memory
    from accelopt_profiling.hosts.host import Host
    from accelopt_profiling.hosts.worker_host import WorkerHost
    from accelopt_profiling.measurement import Dialect

_said: set[str] = set()


def say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        say(line)


def settings_for(start: Path, flags: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings that hold for a file or folder.

    No folder is untrusted: who types a command wants its files run.

    Raises:
        UserError: a flag is wrong; it was typed just now, so it is not passed over.
    """
    from accelopt_lsp.settings.load import load_settings

    settings = replace(load_settings(start, flags=flags), untrusted=None)
    if settings.unapproved is not None and str(settings.unapproved) not in _said:
        _said.add(str(settings.unapproved))
        folder = settings.unapproved.folder
        say(
            f"Settings of {folder}: not used until you approve them with `accelopt trust`: {settings.unapproved}"
        )
    for complaint in settings.complaints:
        if complaint.layer == "the command line":
            raise UserError(f"`--{complaint.name}` {complaint.message}")
        if str(complaint) not in _said:
            _said.add(str(complaint))
            say(f"Settings: {complaint}")
    return settings


def memory_path(settings: Settings | None = None) -> Path:
    """Return where the memory is, for the working folder's settings unless others are given."""
    return (settings or settings_for(Path.cwd())).memory_path


def open_memory(
    settings: Settings | None = None, *, read_only: bool = False, to_keep: bool = False
) -> Memory:
    """Open the memory that the settings name, by default those of the working folder.

    Raises:
        MemoryUnavailableError: it ends the command with exit code 3.
        UserError: something is ``to_keep``, and nothing is kept.
    """
    from accelopt_memory.memory import Memory

    settings = settings or settings_for(Path.cwd())
    if to_keep:
        require_memory(settings)
    project = settings.memory_project
    memory = Memory.open(settings.memory_path, read_only=read_only and project is None, project=project)
    refresh(memory)
    return memory


def require_memory(settings: Settings) -> None:
    """Raise UserError where the settings say that nothing is kept."""
    if settings.memory.mode == "off":
        raise UserError(
            "The setting `memory.mode` is `off`: nothing is kept. Set it to `local` or `project`."
        )


def refresh(memory: Memory) -> None:
    """Take in the files of a project's memory that are new; one that cannot be read is told once."""
    if not memory.connection.read_only:
        for file in memory.refresh():
            say_once(f"Not read: {file}")


def settings_with(entry: str, flags: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings for the file that an entry of the memory is about, by its id or the beginning of one, with
    the memory that has it: that of the working folder, else the person's or a project's.

    Where none has it, they are those of the working folder.
    """
    here = settings_for(Path.cwd(), flags)
    for path in _memories(here):
        file = _file_of(entry, path)
        if file is not None:
            about = settings_for(Path(file), flags) if Path(file).is_file() else here
            return about if about.memory_path == path else _with_memory(about, path)
    return here


def _memories(settings: Settings) -> list[Path]:
    """Return the databases that an id may be in, the likeliest first."""
    from accelopt_memory.location import NOWHERE, all_paths, default_path

    if settings.memory_path == NOWHERE:
        return []
    default = Path(settings.memory.path).expanduser().absolute() if settings.memory.path else default_path()
    paths = [settings.memory_path, *all_paths(default), *all_paths(default_path())]
    return [path for path in dict.fromkeys(paths) if path.is_file()]


def _file_of(entry: str, database: Path) -> str | None:
    """Return the file that an entry is about, "" where it is about none; None where the database has no such entry."""
    from accelopt_memory.errors import MemoryUnavailableError
    from accelopt_memory.memory import Memory

    try:
        with Memory.open(database, read_only=True) as memory:
            entries = memory.entries(entry)
            if not entries:
                return None
            record = memory.entry(*entries[0])
    except MemoryUnavailableError:
        return None
    body: dict[str, Any] = getattr(record, "body", {})
    source = body.get("source") or {}
    return str(getattr(record, "file", "") or body.get("file") or source.get("path") or "")


def _with_memory(settings: Settings, database: Path) -> Settings:
    return replace(settings, memory=replace(settings.memory, mode="local", path=str(database)))


def open_host(settings: Settings) -> Host:
    """Return the host that the settings name; it connects when it is first used."""
    return host_named(settings, settings.host)


def host_named(settings: Settings, name: str, on_incomplete: Callable[[str], None] = say_once) -> Host:
    """``local``, or a host of the settings. A job that is interrupted is run again. ``on_incomplete`` gets one line
    about a host that does not isolate kernels completely; on the command line it is said once."""
    from accelopt_profiling.hosts.retrying_host import RetryingHost

    host = _worker_host(settings, name)
    host.require_isolation, host.on_incomplete = settings.require_isolation, on_incomplete
    return RetryingHost(host)


def _worker_host(settings: Settings, name: str) -> WorkerHost:
    if name == "local":
        from accelopt_profiling.hosts.local import LocalHost

        interpreter = settings.interpreter
        return LocalHost(interpreter.path, variables=settings.env, origin=interpreter.origin)
    host = settings.hosts[name]
    try:
        kind = next(kind for kind in _KINDS if getattr(host, kind))
        return _KINDS[kind](name, host)
    except ValueError as error:
        raise UserError(f"{error}.") from None


def local_python(settings: Settings) -> str:
    """Return the interpreter on this machine whose packages kernels see."""
    return settings.interpreter.path


def _ssh_host(name: str, host: HostSettings) -> WorkerHost:
    import shlex

    from accelopt_profiling.hosts.ssh import SshHost

    variables = [shlex.quote(f"{key}={value}") for key, value in sorted(host.env.items())]
    return SshHost(name, host.ssh, " ".join(["env", *variables, host.python]) if variables else host.python)


def _ray_host(name: str, host: HostSettings) -> WorkerHost:
    from accelopt_profiling.hosts.ray import RayHost

    return RayHost(
        name, host.ray, ask=host.ask, python="" if host.python == "python3" else host.python, env=host.env
    )


#: Each kind of host by the setting that holds its address.
_KINDS: dict[str, Callable[[str, HostSettings], WorkerHost]] = {"ssh": _ssh_host, "ray": _ray_host}


def with_target(settings: Settings, flag: str | None, dialects: Collection[Dialect]) -> Settings:
    """Return the settings with the target that ``flag`` names.

    It goes for the dialect whose hardware it is, which must be one of ``dialects``, where any are given.

    Raises:
        UserError: there is no such target, or it runs none of the kernels.
    """
    from accelopt_profiling.targets.target import UnknownTargetError, load_target, target_names

    if flag is None:
        return settings
    try:
        target = load_target(flag)
    except UnknownTargetError as error:
        raise UserError(f"--target: {error}.") from None
    dialect: Dialect = "triton" if target.kind == "gpu" else "nki"
    if dialects and dialect not in dialects:
        names, kind = ("NKI", "neuron") if dialect == "triton" else ("Triton", "gpu")
        choices = ", ".join(target_names(kind))
        raise UserError(f"--target: {target.title} runs no {names} kernels; choose one of: {choices}.")
    return replace(settings, target=replace(settings.target, **{dialect: target.name}))


def read_file(
    path: Path,
    settings: Settings,
    target: str | None = None,
    *,
    kernels: Collection[str] = (),
    among_others: bool = False,
    text: str | None = None,
) -> FileRequest:
    """Return a kernel file, examined under its settings, with the target ``target`` (a flag) for ``kernels``, or all;
    ``among_others``: it may be meant for other files alone. ``text`` stands in the place of the file's.

    Raises:
        UserError: it cannot be read, or the target runs none of the kernels.
    """
    from accelopt_lsp.service.protocol import FileRequest
    from accelopt_profiling.examination import examine

    text = read_source(path) if text is None else text
    source = examine(path.resolve(), text, project_root=settings.project_root, problem=settings.problem)
    dialects = {k.dialect for k in source.launched if not kernels or k.name in kernels}
    settings = with_target(settings, target, ("triton", "nki") if among_others else dialects)
    return FileRequest(source, settings, label=str(path))


def write_new(path: Path, text: str) -> None:
    """Write a source file that is not there yet. Raises UserError: it is, or cannot be written."""
    from accelopt_profiling.source_text import encode_source

    try:
        with path.open("xb") as file:
            file.write(encode_source(text))
    except FileExistsError:
        raise UserError(f"{path} exists already.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None


def read_source(path: Path) -> str:
    """Return the text of a kernel file, line ends as they are. Raises UserError with the one reason why
    not."""
    from accelopt_profiling.source_text import UnreadableFileError, read_text

    try:
        return read_text(path)
    except UnreadableFileError as error:
        raise UserError(f"{path} {error.why}.") from None


def examples_folder() -> Path:
    """Return the example kernels: inside the installed package, or at the root of the checkout that it is
    in."""
    package = Path(__file__).parent
    packed = package / "examples"
    return packed if packed.is_dir() else package.parents[1] / "examples"
