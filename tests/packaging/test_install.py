"""README's installation in an empty environment, and README's commands there.

Once with the newest version that the bounds allow of every requirement, once with the oldest. Left out: torch at its
own bounds, whose releases come as CUDA builds of 3 to 6 GB. The Makefile's version, as a CPU build where pip has one,
is installed first and alone, as README says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.installation import ROOT, TORCH, empty_environment, install, lowest_versions, run
from support.pages import blocks, commands, run_page

README = ROOT / "README.md"

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize("versions", ["newest", "oldest"])
def test_what_readme_installs_does_what_readme_shows(wheel: Path, tmp_path: Path, versions: str) -> None:
    scripts = empty_environment(tmp_path)
    install(scripts, f"torch=={TORCH}")
    shown = next(
        command for block in blocks(README) for command, _ in commands(block) if "install" in command
    )
    said = re.fullmatch(r"pip install '/path/to/accelopt-lsp\[triton\]'", shown.partition("#")[0].strip())
    assert said, f"README installs in another way: {shown}"
    constraints = tmp_path / "constraints.txt"
    lowest = {name: v for name, v in lowest_versions(wheel, "triton").items() if name != "torch"}
    bounds = [f"{name}=={version}\n" for name, version in lowest.items() if versions == "oldest"]
    constraints.write_text("".join(bounds))

    install(scripts, f"{wheel}[triton]", "--constraint", constraints)

    run(tmp_path, scripts / "accelopt", "doctor")
    folder = tmp_path / "page"
    folder.mkdir()
    run_page(README, folder, scripts)
