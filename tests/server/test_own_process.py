"""What this program starts imports nothing of the folder it is started in: that is a workspace, trusted or not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from accelopt_lsp.own_process import own_process

MODULES = ("selectors", "pickle", "random", "json", "struct", "logging", "ast", "numpy", "accelopt_lsp")


def run(command: Sequence[str], folder: Path) -> str:
    """What the modules of ``folder`` wrote while ``command`` ran there with nothing to read."""
    ran = folder / "ran.txt"
    for module in MODULES:
        (folder / f"{module}.py").write_text(f"open({str(ran)!r}, 'a').write('{module} ')\n")
    subprocess.run(command, cwd=folder, input=b"", capture_output=True, timeout=120, check=False)
    return ran.read_text() if ran.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("accelopt_lsp.service.parser_main", ()),
        ("accelopt_lsp.service.process_main", ()),
        ("accelopt_lsp.cli.main", ("lsp",)),
        ("accelopt_lsp.cli.main", ("profile", "--help")),
    ],
)
def test_nothing_of_the_folder_is_imported(module: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert run((*own_process(module), *arguments), tmp_path) == ""


def test_python_itself_would_import_it(tmp_path: Path) -> None:
    assert run((sys.executable, "-m", "accelopt_lsp.service.parser_main"), tmp_path) != ""
