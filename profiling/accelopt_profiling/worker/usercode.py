"""Load the user's files inside a child process, and turn what goes wrong into an error that points into them.

Where the package of a kernel file lies on this machine, the file is imported as the member of it that it is.
Everything that imports it by its package's name gets the job's text, so that a module runs once: a second run under
another name would register its operators twice. The rest of the package comes from where it lies.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path, PurePosixPath
from types import ModuleType

from accelopt_profiling.failure_site import error_text, failed_check
from accelopt_profiling.jobs import JobFiles, StepError
from accelopt_profiling.problems.discovery.imports import MAX_BYTES, MAX_FILES, imported_names
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.source_text import COMPUTED_IMPORT
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.environment import interpreter_in_use
from accelopt_profiling.worker.project_modules import (
    closed_folder,
    enter_package_root,
    enter_project,
    module_in_repository,
)
from accelopt_profiling.worker.relative_imports import PACKAGE, package_for

#: What ``pytest.skip`` and ``unittest`` raise.
_SKIPPED = ("Skipped", "SkipTest")
#: Names under which user files were imported in this process.
_loaded: set[str] = set()


def enter_sources(context: StepContext) -> None:
    """Let imports find the job's files and the project's on this machine. They leave no bytecode."""
    sys.dont_write_bytecode = True
    root, here = context.folder / "src", [Path(path) for path in context.source.import_paths]
    own = [(root / context.source.kernel).parent, *here[:1]]
    enter_project(own, [root, root / "src", *here[1:]], Path(context.source.name) if here else None)


def load_module(
    context: StepContext, path: str | None = None, name: str | None = None, own_check: str = ""
) -> ModuleType:
    """Import the kernel file, or another source file given by its relative ``path``.

    ``own_check`` names a check of the file's own (see ``failed_check``): where it fails, the file's statements end.

    Raises:
        StepFailedError: it raised, exited, or wants a missing package; the error names the line in the user's file.
    """
    relative = path or context.source.kernel
    full = context.source_path(relative)
    with user_errors(context):
        member = member_name(context.source, relative) if name is None else None
        root = str(Path(context.source.name).parents[member.count(".")]) if member else ""
        if member is None and name is None and (member := _shipped_member(context.source, relative)):
            root = str(full.parents[member.count(".")])
        if member is None:
            return _load_file(context, relative, name, own_check)
        refused = None if member in sys.modules else enter_package(root, member, full, own_check)
        try:
            module = importlib.import_module(member)
        except Exception:
            if refused is None:
                raise
            raise refused from None  # what its package wants is the reason, not what follows from it
        plain = _module_name(context, Path(relative).stem)
        sys.modules[plain] = module
        _loaded.update((member, plain))
        return module


def _load_file(context: StepContext, relative: str, name: str | None, own_check: str) -> ModuleType:
    """Import a file of the job by itself, or in a package of the job's files where it imports relatively."""
    full = context.source_path(relative)
    package = package_for(relative, context.source.files, context.folder / "src")
    module_name = name or _module_name(context, Path(relative).stem)
    plain = module_name
    if package is not None:
        module_name = f"{package}.{module_name}"
        if (loaded := sys.modules.get(module_name)) is not None:
            sys.modules[plain] = loaded
            return loaded  # its package imports it
    loader = _CheckedLoader(module_name, full, own_check)
    spec = importlib.util.spec_from_file_location(module_name, full, loader=loader)
    if spec is None or spec.loader is None:
        raise StepFailedError(StepError("unsupported", f"{relative} is not a Python file.", relative))
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    _loaded.add(module_name)
    sys.modules[plain] = module  # for files that import it by its own name
    _loaded.add(plain)
    spec.loader.exec_module(module)
    return module


def _module_name(context: StepContext, stem: str) -> str:
    """Return the name under which other files of the job import the file: its own, unless a library has it."""
    present = sys.modules.get(stem)
    own = stem in _loaded or context.relative_source(getattr(present, "__file__", None) or "") is not None
    is_taken = stem in sys.stdlib_module_names or (present is not None and not own)
    return f"job_{stem}" if is_taken else stem


@contextmanager
def user_errors(context: StepContext, doing: str = "", code: str = "user-error") -> Iterator[None]:
    """Turn any error of user code into ``StepFailedError`` with the innermost line of the user's own files.

    ``code`` is that of the step error an exception becomes.
    """
    try:
        yield
    except StepFailedError:
        raise
    except ProblemError as error:
        raise StepFailedError(StepError(error.code, error.message, error.file, error.line)) from error
    except ModuleNotFoundError as error:
        file, line = user_line(context, error)
        if _of_the_job(context, error.name or ""):
            raise StepFailedError(_not_among_sources(error, file, line)) from error
        missing, top = f"An import fails ({error})", (error.name or "").partition(".")[0]
        if top in sys.modules:
            version, origin = _installed_version(top), getattr(sys.modules[top], "__file__", None)
            if not version and origin:
                message = (
                    f"{origin} is imported as {top!r} and has no module {error.name!r}; mend the import."
                )
                raise StepFailedError(StepError("missing-package", message, file, line)) from error
            missing = f"The {top} {version} that is installed has no module {error.name!r}"
        elif error.name:
            missing = f"The package {error.name!r} is not installed"
        place = module_in_repository(Path(context.source.name), error.name or "")
        if closed := closed_folder(context.source.import_paths, error.name or ""):
            why = f"{closed} may not be read by the user that kernels run as, so {error.name!r} cannot be imported"
            message = f"{why}; open it to that user (chmod o+rx), and save again."
            raise StepFailedError(StepError("no-access", message, file, line)) from error
        message = (
            f"{missing} in {interpreter_in_use()}, where kernels run; install it there or name another Python in the "
            "setting `python`, and save again."
            if place is None or not context.source.import_paths
            else f"The module {error.name!r} is not on the import path; {place} has that name: put its folder on the "
            "path, `PYTHONPATH` in the setting `env` or in the shell, and save again."
        )
        raise StepFailedError(StepError("missing-package", message, file, line)) from error
    except MemoryError as error:
        file, line = user_line(context, error)
        raise StepFailedError(
            StepError("memory", "The run asked for more memory than its limit.", file, line)
        ) from error
    except SystemExit as error:
        file, line = user_line(context, error)
        raise StepFailedError(
            StepError("exited", f"The file ended its own process (exit {error.code}).", file, line)
        ) from error
    except (
        BaseException
    ) as error:  # KeyboardInterrupt and the like come from user code here: this process runs nothing else
        file, line = user_line(context, error)
        if any(kind.__name__ in _SKIPPED for kind in type(error).__mro__):
            message = f"The file skips itself{': ' if str(error) else ''}{error}."
            raise StepFailedError(StepError("exited", message.replace("..", "."), file, line)) from error
        what = _text_with_place(context, error)
        detail = "".join(traceback.format_exception(error))[-4000:]
        raise StepFailedError(
            StepError(code, f"{doing}{what}", file=file, line=line, detail=detail)
        ) from error


def _text_with_place(context: StepContext, error: BaseException) -> str:
    """Return ``error_text``.

    Of a file outside of the job that does not parse, the whole path and Python's version.
    """
    if (
        not isinstance(error, SyntaxError)
        or context.relative_source(file := error.filename or "") is not None
    ):
        return error_text(error)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{file}, line {error.lineno}, is not valid in Python {python}: {error.msg}."


def _installed_version(package: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return ""


def _of_the_job(context: StepContext, name: str) -> bool:
    """Return whether a missing module belongs to a package of which the job has files."""
    top, _, inner = name.partition(".")
    return bool(inner) and (top == PACKAGE or (context.folder / "src" / top).is_dir())


def _not_among_sources(error: ModuleNotFoundError, file: str | None, line: int | None) -> StepError:
    """Return the error for a module of the file's own package that did not come with the job."""
    name = (error.name or "").removeprefix(f"{PACKAGE}.")
    message = (
        f"The module {name!r} of the file's own package is not there, or it was left out: at most {MAX_FILES} files of "
        f"{MAX_BYTES >> 20} MiB travel with a kernel."
    )
    return StepError("missing-package", message, file, line)


def problem_errors(context: StepContext, function: str) -> AbstractContextManager[None]:
    """Do what ``user_errors`` does, for a function of the problem."""
    return user_errors(context, f"`{function}` raised ", "problem-raised")


def user_line(context: StepContext, error: BaseException) -> tuple[str | None, int | None]:
    """Return the innermost frame of ``error`` in the job's source files: relative path and 1-based line."""
    if (
        isinstance(error, SyntaxError)
        and (source := context.relative_source(error.filename or "")) is not None
    ):
        return source, error.lineno
    place: tuple[str | None, int | None] = (None, None)
    for frame in traceback.extract_tb(error.__traceback__):
        if (source := context.relative_source(frame.filename)) is not None:
            place = (source, frame.lineno)
    return place


#: Packages of this many folders are looked for; deeper ones are no packages that people write.
_DEEPEST = 16


def member_name(source: JobFiles, relative: str) -> str | None:
    """Return the dotted name of the kernel file in the package on this machine that it belongs to.

    None where it is no kernel file, belongs to none, or the job came from another machine.
    """
    real = Path(source.name)
    if (
        relative != source.kernel
        or not source.import_paths
        or real.suffix != ".py"
        or real.stem == "__init__"
    ):
        return None
    names = [real.stem]
    folder = real.parent
    while os.path.isfile(folder / "__init__.py") and len(names) < _DEEPEST:
        names.append(folder.name)
        folder = folder.parent
    if len(names) == 1 or not all(name.isidentifier() for name in names):
        return None
    return ".".join(reversed(names))


def _shipped_member(source: JobFiles, relative: str) -> str | None:
    """Return the dotted name of a file that imports its own package by a name, also a computed one, where that package
    came with the job.
    """
    path = PurePosixPath(relative)
    imported = {n.split(".")[0] for n, level in imported_names(source.files.get(relative, "")) if not level}
    for depth, folder in enumerate(path.parts[:-1], 1):
        if (
            imported & {folder, COMPUTED_IMPORT}
            and f"{'/'.join(path.parts[:depth])}/__init__.py" in source.files
        ):
            return ".".join([*path.parts[depth - 1 : -1], path.stem])
    return None


def enter_package(root: str, name: str, file: Path, own_check: str = "") -> Exception | None:
    """Import the packages above the member ``name``.

    From then on importing it gives ``file``. ``root`` is the folder that they lie in. Return what they raised: the file
    itself may do without what they want. A package that raises is entered without its ``__init__``.
    """
    enter_package_root(name.split(".")[0], Path(root))  # before copies of its files that came with the job
    sys.meta_path.insert(0, _MemberFinder(_CheckedLoader(name, file, own_check)))
    parts = name.split(".")[:-1]
    refused: Exception | None = None
    for depth in range(1, len(parts) + 1):
        package = ".".join(parts[:depth])
        try:
            importlib.import_module(package)
        except Exception as error:
            refused = refused or error
            bare = ModuleType(package)
            bare.__path__ = [str(Path(root, *parts[:depth]))]
            sys.modules[package] = bare
    return refused


class _MemberFinder(MetaPathFinder):
    """Finds one module in a file of the job."""

    def __init__(self, loader: _CheckedLoader) -> None:
        self._loader = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader = self._loader
        return (
            spec_from_file_location(fullname, loader.path, loader=loader) if fullname == loader.name else None
        )


class _CheckedLoader(SourceFileLoader):
    """Loads a file whose own check is known to fail with the original kernel too: its statements end there."""

    def __init__(self, name: str, file: Path, own_check: str) -> None:
        super().__init__(name, str(file))
        self._own_check = own_check

    def exec_module(self, module: ModuleType) -> None:
        try:
            super().exec_module(module)
        except AssertionError as error:
            if not self._own_check or failed_check(error, self.path) != self._own_check:
                raise
