"""``examination.examine``: one parse for everything that is asked about a text, and a result that travels."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from support.problem_files import KERNEL

from accelopt_profiling import source_text
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import HostFacts, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import StepError
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.profiler import ProfileRequest, profile

PROBLEM = "import sizes\ndef get_inputs(): return []\ndef reference(): return 1\n"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed, in order."""
    texts: list[str] = []

    def parse(text: str) -> ast.Module:
        texts.append(text)
        return ast.parse(text)

    monkeypatch.setattr(source_text, "parse_python", parse)
    return texts


def _folder(folder: Path) -> Path:
    (folder / "k_problem.py").write_text(PROBLEM)
    (folder / "sizes.py").write_text("N = 1\n")
    (folder / "k.py").write_text(KERNEL)
    return folder / "k.py"


class _LostHost:
    """A host whose first step fails."""

    name, remote = "lab", True

    async def facts(self) -> HostFacts:
        return HostFacts("lab")

    async def run(self, job):
        raise JobFailedError("profile", StepError("crashed", "gone"))
        yield


async def test_a_text_is_parsed_once_from_discovery_to_the_job(tmp_path, parsed):
    path, text = _folder(tmp_path), f"{KERNEL}\n# which no other test has parsed: {tmp_path}\n"
    problem = path.with_name("k_problem.py")
    problem.write_text(f"{PROBLEM}# {tmp_path}\n")
    file = examine(path, text, project_root=tmp_path)
    request = ProfileRequest(file, {"triton": "h100", "nki": "trn1"})
    last = [m async for m in profile(_LostHost(), request)][-1]  # type: ignore[arg-type]
    assert [f.code for f in last.findings] == ["kernel-crashed"]
    assert set(job_files(file, ship_imports=True).files) == {"k.py", "k_problem.py", "sizes.py"}
    assert parsed.count(text) == 1
    assert parsed.count(problem.read_text()) == 1


def test_an_examined_file_travels_between_processes(tmp_path):
    file = examine(_folder(tmp_path), KERNEL, project_root=tmp_path)
    again = from_plain(KernelSource, json.loads(json.dumps(to_plain(file))))
    assert again == file
    assert job_files(again, ship_imports=True) == job_files(file, ship_imports=True)
    assert again.content_hash == file.content_hash != examine(file.path, KERNEL + "\n").content_hash


def test_a_rewrite_in_the_place_of_the_file_brings_what_it_imports_itself(tmp_path):
    file = examine(_folder(tmp_path), KERNEL, project_root=tmp_path)
    (tmp_path / "more.py").write_text("")
    source = job_files(file, ship_imports=True, text=KERNEL + "import more\n")
    assert source.files["k.py"].endswith("import more\n")
    assert "more.py" in source.files


def test_a_text_that_does_not_parse_has_a_finding_and_no_kernel(tmp_path):
    file = examine(tmp_path / "k.py", KERNEL + "def (")
    assert (file.launched, [f.code for f in file.findings]) == ([], ["syntax-error"])
    assert file.kernel("add") is None
