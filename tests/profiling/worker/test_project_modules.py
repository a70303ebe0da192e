"""Modules of a kernel file's repository that are on no import path, and files that skip themselves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.shared_host import SharedWorkers

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, JobFiles, Step, StepError
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.job_folders import write_sources
from accelopt_profiling.worker.project_modules import module_in_repository, repository_of
from accelopt_profiling.worker.usercode import enter_sources, load_module

Load = Callable[[str], ModuleType]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose package has a folder without ``__init__.py``, where the kernel file lies."""
    for name, text in {
        "pyproject.toml": "", "pack/__init__.py": "", "pack/sizes.py": "N = 3\n", "pack/json.py": "1 / 0\n",
        "other/tiles.py": "N = 4\n", "pack/ops/k.py": "",
    }.items():  # fmt: skip
        (tmp_path / "repo" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repo" / name).write_text(text)
    return tmp_path / "repo"


@pytest.fixture
def load(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Load the kernel file with another text as its child process on this machine does."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])

    def loaded(text: str) -> ModuleType:
        write_sources(tmp_path / "src", {"k.py": text})
        kernel = repository / "pack/ops/k.py"
        context = StepContext(
            tmp_path, JobFiles("k.py", {"k.py": text}, [str(kernel.parent)], str(kernel)), print
        )
        enter_sources(context)
        return load_module(context)

    yield loaded
    for name in set(sys.modules) - before:
        del sys.modules[name]


def error_of(load: Load, text: str) -> StepError:
    with pytest.raises(StepFailedError) as failed:
        load(text)
    return failed.value.error


def test_the_folder_above_a_package_is_found(load: Load) -> None:
    assert load("from pack.sizes import N\nimport json\nM = json.loads('2')").N == 3


def test_a_module_elsewhere_is_named_and_not_called_a_package(load: Load) -> None:
    error = error_of(load, "import tiles")
    assert error.code == "missing-package"
    assert "other/tiles.py has that name" in error.message
    assert "not installed" not in error.message


def test_what_is_nowhere_is_not_installed(load: Load) -> None:
    assert "'nowhere_to_be_found' is not installed" in error_of(load, "import nowhere_to_be_found").message


def test_what_a_module_of_the_project_lacks_is_not_to_be_installed(load: Load, repository: Path) -> None:
    (repository / "pack/ops/tiles.py").write_text("N = 5\n")
    error = error_of(load, "import tiles.inner")
    origin = repository / "pack/ops/tiles.py"
    assert (
        error.message == f"{origin} is imported as 'tiles' and has no module 'tiles.inner'; mend the import."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import pytest\npytest.skip('needs a GPU', allow_module_level=True)",
            "The file skips itself: needs a GPU.",
        ),
        ("import unittest\nraise unittest.SkipTest('no.')", "The file skips itself: no."),
        ("import unittest\nraise unittest.SkipTest", "The file skips itself."),
    ],
)
def test_a_file_that_skips_itself_says_why(load: Load, text: str, message: str) -> None:
    error = error_of(load, text)
    assert (error.code, error.message, error.line) == ("exited", message, 2)


def test_a_repository_is_the_folder_with_its_marks(repository: Path, tmp_path: Path) -> None:
    assert repository_of(repository / "pack/ops/k.py") == repository
    assert module_in_repository(repository / "pack/ops/k.py", "tiles") == Path("other/tiles.py")


@pytest.mark.parametrize("name", ["tiles.inner", "json", "json.inner", "nowhere"])
def test_a_module_is_named_only_if_its_folder_would_mend_the_import(repository: Path, name: str) -> None:
    assert module_in_repository(repository / "pack/ops/k.py", name) is None


def test_a_folder_that_is_on_the_path_is_not_to_be_put_there(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(repository / "other"))
    assert module_in_repository(repository / "pack/ops/k.py", "tiles") is None


#: Where a file may lie that has the name of something else, with the kernel at ``kernels/k.py``, its problem at
#: ``problems/p.py`` and a repository above both.
PLACES = {
    "own folder": "repo/project/kernels",
    "own folder, a package": "repo/project/kernels",
    "the problem's folder": "repo/project/problems",
    "common parent": "repo/project",
    "src of the project": "repo/project/src",
    "repository": "repo",
}
#: What ``import NAME`` takes, by place: "file", "package" or "nothing".
TAKEN = {
    **dict.fromkeys(["numpy", "ml_dtypes", "random", "sched", "packaging"], dict.fromkeys(PLACES, "package")),
    **dict.fromkeys(["nki", "neuronxcc"], dict.fromkeys(PLACES, "nothing")),
    "click": {place: "file" if place == "own folder" else "package" for place in PLACES},
    "of_the_project": {
        place: "nothing" if place in ("the problem's folder", "repository") else "file" for place in PLACES
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def worker(workers: SharedWorkers) -> Iterator[Callable[[JobFiles], str]]:
    """Load sources on a real worker; return the message of the error that they raise."""
    loop, host = asyncio.new_event_loop(), workers.host()

    async def raised(source: JobFiles) -> str:
        try:
            async for _ in host.run(Job(source, [Step("load", "numpy")])):
                pass
        except JobFailedError as failed:
            return failed.error.message
        return ""

    yield lambda source: loop.run_until_complete(raised(source))
    loop.close()


@pytest.mark.parametrize("far", [False, True], ids=["here", "shipped"])
@pytest.mark.parametrize("kind", ["module", "package"])
@pytest.mark.parametrize("place", PLACES)
def test_what_an_import_takes(
    tmp_path: Path, worker: Callable[[JobFiles], str], place: str, kind: str, far: bool
) -> None:
    """Files of the own folder stand before packages, as in a run of the script; others after them; and none stands in
    for what the worker needs."""
    kernel = tmp_path / "repo/project/kernels/k.py"
    for name in (f"{PLACES[place]}/x", "repo/.git/x", "repo/project/kernels/x", "repo/project/problems/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    for name in TAKEN:
        file = tmp_path / PLACES[place] / (f"{name}.py" if kind == "module" else f"{name}/__init__.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("FILE = True\n")
    if place == "own folder, a package":
        kernel.with_name("__init__.py").touch()
    (tmp_path / "repo/project/problems/p.py").write_text("def get_inputs(): pass\ndef reference(): pass\n")
    text = f"# accelopt: problem=../problems/p.py\n{_reporting(TAKEN)}@nki.jit\ndef k(x): return x\n"
    kernel.write_text(text)
    source = job_files(examine(kernel, text, project_root=tmp_path / "repo/project"), ship_imports=far)
    expected = {name: by_place[place] for name, by_place in TAKEN.items()}
    if far and place == "own folder, a package":
        expected["click"] = "file"  # what makes it a package does not travel
    assert worker(source) == f"ValueError: {expected}"


def _reporting(names: Iterable[str]) -> str:
    """Return a program that imports each name, and raises with what it took."""
    lines = ["said = {}"]
    for name in names:
        statement = f"said[{name!r}] = 'file' if getattr({name}, 'FILE', 0) else 'package'"
        missing = f"said[{name!r}] = 'nothing'"
        lines += [
            "try:",
            f"    import {name}",
            f"    {statement}",
            "except ModuleNotFoundError:",
            f"    {missing}",
        ]
    return "\n".join([*lines, "raise ValueError(said)", ""])


def test_a_file_that_a_script_would_take_for_a_package_is_named(tmp_path: Path) -> None:
    text = "import nki, numpy, click, of_the_project\n@nki.jit\ndef k(x): return x\n"
    for name in ("numpy.py", "click.py", "of_the_project.py", "random.py", "nki/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    findings = [f for f in examine(tmp_path / "k.py", text).findings if f.code == "shadowed-package"]
    assert [f.message.split(" has ")[0] for f in findings] == [
        str(tmp_path / "nki/__init__.py"), str(tmp_path / "numpy.py")
    ]  # fmt: skip
    (tmp_path / "__init__.py").touch()
    assert not [f for f in examine(tmp_path / "k.py", text).findings if f.code == "shadowed-package"]
