"""The documentation's site, its pages made from the code included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from accelopt_lsp.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning_and_has_every_command_and_code(tmp_path: Path) -> None:
    """A link to a page or a heading that is not there is a warning."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    commands, findings = (
        (tmp_path / f"reference/{name}.html").read_text("utf-8") for name in ("cli", "findings")
    )
    codes = json.loads((ROOT / "profiling/accelopt_profiling/findings.json").read_text("utf-8"))
    assert [name for name in COMMANDS if f'id="accelopt-{name}"' not in commands] == []
    assert [code for code in codes if f'id="{code}-' not in findings] == []
