"""Each room on the oldest Python that the project promises, and on the newest of this machine.

Without torch: its builds for other Pythons are those of CUDA (docs/results/installation.md has Triton on each).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.installation import ROOT, empty_environment, install, pythons, run

pytestmark = [pytest.mark.slow, pytest.mark.long]

OLDEST = (3, 10)
ROOM_TESTS = [
    "tests/profiling/test_profiler.py",
    "tests/profiling/hosts/test_worker_connection.py",
    "tests/memory/test_pairs.py",
    "tests/agent/search/test_strategies.py",
    "tests/nkibench/test_run.py::test_kernels_that_cannot_be_run_are_named_with_their_line_and_the_rest_goes_on",
    "tests/benchmarks/memory/test_corpus.py",
    "tests/cli/test_verify.py",
    "tests/server/test_server_process.py",
]
NEEDED = ["pytest", "pytest-asyncio", "hypothesis", "pytest-lsp>=1.0.1,<1.1"]


@pytest.mark.parametrize("choice", ["oldest", "newest"])
def test_each_room_works_on_another_python(wheel: Path, tmp_path: Path, choice: str) -> None:
    at_hand = pythons()
    version = OLDEST if choice == "oldest" else max(at_hand)
    assert version in at_hand, f"no Python {version[0]}.{version[1]} at hand; there are {sorted(at_hand)}"
    assert version == OLDEST or version > sys.version_info[:2], f"no Python newer than {sys.version} at hand"
    scripts = empty_environment(tmp_path, at_hand[version])
    install(scripts, wheel, *NEEDED)
    options = ["-q", "-p", "no:cacheprovider", "-o", "pythonpath=tests benchmarks"]
    done = run(tmp_path, scripts / "python", "-m", "pytest", *options, *(ROOT / test for test in ROOM_TESTS))
    assert "skipped" not in done.stdout.splitlines()[-1]
