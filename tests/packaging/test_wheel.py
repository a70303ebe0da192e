"""The wheel as a user gets it: built, installed into an empty virtual environment, and used outside the checkout."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from support.installation import ROOT, empty_environment, install, run

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel and what it depends on, nothing else."""
    scripts = empty_environment(tmp_path_factory.mktemp("installed"))
    install(scripts, wheel)
    return scripts


def test_the_wheel_holds_the_examples_and_no_benchmarks_of_the_project(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    examples = {path.relative_to(ROOT / "examples").as_posix() for path in (ROOT / "examples").rglob("*.py")}
    prefix = "accelopt_lsp/examples/"
    packed = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert {name for name in packed if name.endswith(".py")} == examples
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "accelopt_agent", "accelopt_lsp", "accelopt_memory", "accelopt_profiling", "nkibench",
    }  # fmt: skip


def test_the_page_of_the_package_leads_to_files_of_its_version(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        page = archive.read(name).decode()
    links = re.findall(r"\]\(([^ )]+)\)|src(?:set)?=\"([^\"]+)\"", page)
    assert len(links) > 10
    version = re.findall(r"^Version: (.+)$", page, re.MULTILINE)[0]
    for link in map("".join, links):
        assert link.startswith("https://"), link
        if "accelopt-lsp/" in link:
            of_file = link.partition(f"/v{version}/")[2].partition("#")[0]
            assert (ROOT / of_file).exists(), link


def test_the_tour_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    output = run(tmp_path, installed / "accelopt", "demo").stdout
    for heading in (
        "1. Open and save nki_silu.py",
        "4. Accept",
        "5. A different kernel",
        "6. A Triton kernel",
    ):
        assert heading in output
    assert "pip install 'accelopt-lsp[triton]'" in output
    assert "with the accepted pair" in output


def test_benchmarks_of_the_project_say_that_they_need_a_checkout(installed: Path, tmp_path: Path) -> None:
    done = run(tmp_path, installed / "accelopt", "bench", "self", "--data", "x", expected=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "needs a checkout" in done.stderr
    listed = run(tmp_path, installed / "accelopt", "bench", "--help").stdout
    assert "nkibench" in listed
    assert " self " not in listed
