"""Kernel files that import their neighbours relatively, from the editor's side to the process that loads them."""

import sys

import pytest
from support.worker_jobs import answers, local_host

from accelopt_profiling.examination import examine
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, JobFiles, Step
from accelopt_profiling.problems.discovery.imports import with_imports
from accelopt_profiling.problems.loading.script_run import run_script
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.job_folders import write_sources
from accelopt_profiling.worker.relative_imports import PACKAGE, climbed
from accelopt_profiling.worker.usercode import enter_sources, load_module

PROBLEM = "def get_inputs(): return [1]\ndef reference(x): return x\n"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load the kernel of a job with these files, as its child process would."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])

    def loaded(kernel, files):
        write_sources(tmp_path / "src", files)
        context = StepContext(tmp_path, JobFiles(kernel, files), print)
        enter_sources(context)
        return load_module(context)

    yield loaded
    for name in set(sys.modules) - before:
        del sys.modules[name]


CASES = {
    "a neighbour": ("k.py", {"k.py": "from .tiles import N", "tiles.py": "N = 3"}),
    "the neighbour as a module": ("k.py", {"k.py": "from . import tiles\nN = tiles.N", "tiles.py": "N = 3"}),
    "in folders": ("a/b/k.py", {"a/b/k.py": "from .tiles import N", "a/b/tiles.py": "N = 3"}),
    "two up": ("a/b/k.py", {"a/b/k.py": "from ..sizes import N", "a/sizes.py": "N = 3"}),
    "a neighbour that climbs": (
        "a/b/k.py", {"a/b/k.py": "from .t import N", "a/b/t.py": "from ..sizes import N", "a/sizes.py": "N = 3"},
    ),
    "the package's own name": ("a/k.py", {"a/k.py": "from . import N", "a/__init__.py": "N = 3"}),
    "a package that imports the kernel": (
        "a/k.py", {"a/k.py": "from .t import N", "a/__init__.py": "from .k import N", "a/t.py": "N = 3"},
    ),
    "below itself": ("k.py", {"k.py": "from .parts.t import N", "parts/t.py": "N = 3"}),
    "odd spaces": ("k.py", {"k.py": "from   .t import (\n    N,\n)", "t.py": "N = 3"}),
    "none": ("k.py", {"k.py": "from t import N", "t.py": "N = 3"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_relative_imports_find_the_jobs_files(load, name):
    kernel, files = CASES[name]
    module = load(kernel, files)
    assert module.N == 3
    assert sys.modules["k"] is module, "a problem file imports the kernel by its own name"


def test_a_file_without_relative_imports_is_in_no_package(load):
    load("k.py", {"k.py": "N = 1"})
    assert PACKAGE not in sys.modules


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("from .gone import N", "missing-package", "gone"),
        ("from ..above import N", "user-error", "beyond top-level package"),
        ("from .broken import N", "user-error", "ZeroDivisionError"),
    ],
)
def test_what_goes_wrong_is_said_of_the_users_file(load, text, code, message):
    with pytest.raises(StepFailedError) as failed:
        load("k.py", {"k.py": text, "broken.py": "N = 1\nN / 0\n"})
    assert failed.value.error.code == code
    assert message in failed.value.error.message
    assert failed.value.error.file in ("k.py", "broken.py")


def test_a_file_that_runs_itself_finds_its_neighbours(load, tmp_path):
    files = {
        "k.py": "from .tiles import N, seen\nif __name__ == '__main__':\n    seen.append(N)",
        "tiles.py": "N = 3\nseen = []",
    }
    module = load("k.py", files)
    run_script(module, str(tmp_path / "src" / "k.py"), [])
    assert module.seen == [3]


def test_how_far_imports_climb():
    assert climbed({"k.py": "import a", "t.py": "x = 'from .y import z'"}) == 0
    assert (
        climbed({"k.py": "from .a import b", "t.py": "from ...c import d", "no.txt": "from ....e import f"})
        == 3
    )
    assert climbed({"k.py": "from . import ("}) == 0


@pytest.mark.parametrize("far", [False, True])
def test_neighbours_travel_with_the_job_and_not_the_whole_folder(tmp_path, far):
    (tmp_path / "tiles.py").write_text("from .sizes import N\n")
    (tmp_path / "sizes.py").write_text("N = 3\n")
    (tmp_path / "secret.py").write_text("KEY = 1\n")
    path = tmp_path / "k.py"
    source = job_files(examine(path, "from .tiles import N\n"), ship_imports=far)
    assert set(source.files) == {"k.py", "tiles.py", "sizes.py"}
    assert set(with_imports(source).files) == {"k.py", "tiles.py", "sizes.py"}
    plain = job_files(examine(path, "import tiles\n"), ship_imports=False)
    assert set(plain.files) == {"k.py"}


@pytest.mark.slow
async def test_a_worker_loads_a_kernel_of_a_package(tmp_path):
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tiles.py").write_text("TILE = 128\n")
    source = job_files(examine(package / "k.py", "from .tiles import TILE\n"), ship_imports=False)
    async with local_host() as host:
        messages = await answers(host, Job(source, [Step("load", "numpy")]))
        assert [message.value["names"] for message in messages] == [["TILE"]]


@pytest.mark.parametrize("packages", [("a", "a/b"), ()], ids=["packages", "plain folders"])
def test_without_a_project_the_root_is_above_what_the_file_imports(tmp_path, packages):
    text = "import nki\nfrom ..sizes import N\n@nki.jit\ndef k(x): return x\n"
    files = {"a/b/k.py": text, "a/b/k_problem.py": PROBLEM, "a/sizes.py": "N = 3", "apart/x.py": ""}
    write_sources(tmp_path, {**files, **{f"{folder}/__init__.py": "" for folder in packages}})
    path = tmp_path / "a/b/k.py"
    problem = examine(path, text).problem
    source = job_files(examine(path, text), ship_imports=True)
    assert problem.root == (tmp_path if packages else tmp_path / "a")
    brought = {problem.root / name for name in source.files}
    assert {tmp_path / name for name in ("a/b/k.py", "a/b/k_problem.py", "a/sizes.py")} <= brought
    assert tmp_path / "apart/x.py" not in brought


def test_a_package_that_is_imported_by_its_own_name_is_found_without_a_project(tmp_path):
    text = "import nki\nfrom mine.sizes import N\n@nki.jit\ndef k(x): return x\n"
    files = {"mine/__init__.py": "", "mine/ops/__init__.py": "", "mine/sizes.py": "N = 3"}
    write_sources(tmp_path, {**files, "mine/ops/k.py": text, "mine/ops/k_problem.py": PROBLEM})
    path = tmp_path / "mine/ops/k.py"
    problem = examine(path, text).problem
    assert problem.root == tmp_path
    assert "mine/sizes.py" in job_files(examine(path, text), ship_imports=True).files
    assert str(tmp_path) in job_files(examine(path, text), ship_imports=False).import_paths


def test_a_file_that_imports_nothing_relatively_needs_its_own_folder_only(tmp_path):
    text = "import nki\n@nki.jit\ndef k(x): return x\n"
    write_sources(tmp_path, {"a/__init__.py": "", "a/k.py": text, "a/k_problem.py": PROBLEM})
    problem = examine(tmp_path / "a/k.py", text).problem
    assert problem.root == tmp_path / "a"
