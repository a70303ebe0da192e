"""A kernel file is imported once, as the member of its package that it is."""

from __future__ import annotations

import sys

import pytest

from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.job_folders import write_sources
from accelopt_profiling.worker.usercode import enter_sources, load_module


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a package on this machine that counts how often its member runs."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    folder = tmp_path / "lib" / "somelib" / "ops"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("runs = []\nfrom .ops import member\n")
    (folder / "__init__.py").write_text("")
    (folder / "member.py").write_text("from somelib import runs\nruns.append('disk')\n")
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


def load(package, text, tmp_path, far=False):
    path = package / "member.py"
    source = JobFiles("member.py", {"member.py": text}, [] if far else [str(package)], str(path))
    write_sources(tmp_path / "src", source.files)
    return load_module(StepContext(tmp_path, source, lambda value: None))


def test_the_text_of_the_job_runs_once_under_its_packages_name(package, tmp_path):
    module = load(
        package, "from . import __name__ as p\nfrom somelib import runs\nruns.append('job')\n", tmp_path
    )
    assert module.__name__ == "somelib.ops.member"
    assert sys.modules["somelib"].runs == ["job"]
    assert sys.modules["somelib"].member is module is sys.modules["member"]


def test_packages_that_cannot_be_imported_are_done_without(package, tmp_path):
    (package.parent / "__init__.py").write_text("import surely_not_installed\n")
    assert load(package, "N = 3\n", tmp_path).N == 3


def test_a_job_from_elsewhere_has_its_files_only(package, tmp_path):
    with pytest.raises(StepFailedError, match=r"left out: at most 500 files"):
        load(package, "from .gone import N\n", tmp_path, far=True)


def test_its_package_comes_from_where_it_lies_even_where_copies_travelled(package, tmp_path):
    (package / "sizes.py").write_text(
        "from pathlib import Path\nN = Path(__file__).with_name('n.txt').read_text()\n"
    )
    (package / "n.txt").write_text("7")
    text = "from .sizes import N\nfrom somelib.ops.sizes import N as M\n"
    source = JobFiles("somelib/ops/member.py", {"somelib/ops/member.py": text, "somelib/__init__.py": "raise"},
                    [str(package.parent.parent)], str(package / "member.py"))  # fmt: skip
    write_sources(tmp_path / "src", source.files)
    module = load_module(StepContext(tmp_path, source, lambda value: None))
    assert (module.N, module.M) == ("7", "7")


def test_a_package_that_raises_is_entered_without_its_init(package, tmp_path):
    (package / "sizes.py").write_text("N = 5\n")
    (package.parent / "__init__.py").write_text("import surely_not_installed\n")
    assert load(package, "from somelib.ops.sizes import N\n", tmp_path).N == 5
    sys.modules.pop("somelib.ops.member")
    sys.modules.pop("somelib")
    with pytest.raises(StepFailedError, match="surely_not_installed"):
        load(package, "from somelib import runs\n", tmp_path)


def test_a_package_for_a_newer_python_says_so_with_its_file(package, tmp_path):
    (package / "sizes.py").write_text("N = 5\nfor in range\n")
    with pytest.raises(
        StepFailedError, match=r"ops/sizes\.py, line 2, is not valid in Python 3\.\d+: invalid"
    ):
        load(package, "from somelib.ops.sizes import N\n", tmp_path)


def test_a_module_that_did_not_travel_is_not_called_missing(package, tmp_path):
    source = JobFiles("lib/k.py", {"lib/k.py": "from lib.gone import N\n", "lib/__init__.py": ""}, [], "k.py")
    write_sources(tmp_path / "src", source.files)
    context = StepContext(tmp_path, source, lambda value: None)
    enter_sources(context)
    with pytest.raises(StepFailedError, match="left out: at most 500 files"):
        load_module(context)
