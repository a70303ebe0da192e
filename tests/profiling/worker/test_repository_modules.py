"""Modules of a kernel file's repository that are on no import path, and files that skip themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from accelopt_profiling.jobs import Source, StepError
from accelopt_profiling.worker.job_folders import write_sources
from accelopt_profiling.worker.repository_modules import module_in_repository, repository_of
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
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
            tmp_path, Source("k.py", {"k.py": text}, [str(kernel.parent)], str(kernel)), print
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import pytest\npytest.skip('needs a GPU', allow_module_level=True)",
            "The file skips itself: needs a GPU.",
        ),
        ("import unittest\nraise unittest.SkipTest('no.')", "The file skips itself: no."),
        ("import unittest\nraise unittest.SkipTest", "The file skips itself."),
    ],
)
def test_a_file_that_skips_itself_says_why(load: Load, text: str, said: str) -> None:
    error = error_of(load, text)
    assert (error.code, error.message, error.line) == ("exited", said, 2)


def test_a_repository_is_the_folder_with_its_marks(repository: Path, tmp_path: Path) -> None:
    assert repository_of(repository / "pack/ops/k.py") == repository
    assert module_in_repository(repository / "pack/ops/k.py", "tiles.inner") == Path("other/tiles.py")
    assert module_in_repository(repository / "pack/ops/k.py", "json") == Path("pack/json.py")
