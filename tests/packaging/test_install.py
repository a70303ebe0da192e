"""README's installation in an empty environment, and README's kernels there.

Once with the newest version that the bounds allow of every requirement, once with the oldest. Left out: torch at its
own bounds, whose releases come as CUDA builds of 3 to 6 GB. The Makefile's version, as a CPU build where pip has one,
is installed first and alone, as README says. What README's commands print, ``tests/docs/test_commands.py`` compares.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.installation import ROOT, TORCH, empty_environment, install, lowest_versions, run
from support.pages import blocks, commands

README = ROOT / "README.md"

#: So many versions are tried of each kernel: a faster one is among them.
CANDIDATES = 8

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize("versions", ["newest", "oldest"])
def test_what_readme_installs_makes_its_kernels_faster(wheel: Path, tmp_path: Path, versions: str) -> None:
    scripts = empty_environment(tmp_path)
    install(scripts, f"torch=={TORCH}")
    line = next(command for block in blocks(README) for command, _ in commands(block) if "install" in command)
    match = re.fullmatch(r"pip install '\.\[triton\]'", line.partition("#")[0].strip())
    assert match, f"README installs in another way: {line}"
    constraints = tmp_path / "constraints.txt"
    lowest = {name: v for name, v in lowest_versions(wheel, "triton").items() if name != "torch"}
    bounds = [f"{name}=={version}\n" for name, version in lowest.items() if versions == "oldest"]
    constraints.write_text("".join(bounds))

    install(scripts, f"{wheel}[triton]", "--constraint", constraints)

    accelopt = scripts / "accelopt"
    run(tmp_path, accelopt, "doctor")
    kernels = [block for block in blocks(README) if block.file]
    assert len(kernels) == 2
    for kernel in kernels:
        (tmp_path / str(kernel.file)).write_text(kernel.text, encoding="utf-8")
        assert " passed" in run(tmp_path, accelopt, "profile", kernel.file).stdout
        offers = run(
            tmp_path, accelopt, "optimize", kernel.file, "--budget", f"candidates={CANDIDATES}"
        ).stdout
        best = re.search(r"^([0-9a-f]{12})  ", offers, re.MULTILINE)
        assert best, offers
        assert "Remembered as pair" in run(tmp_path, accelopt, "accept", best[1]).stdout
