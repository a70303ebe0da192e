"""Packages of other projects outside ``site-packages``: on ``PYTHONPATH``, or installed in place (``pip install
--editable``), for which some tools put a finder of their own beside Python's path.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.worker.readable_places import import_places

PROBLEM = """
import numpy as np

def get_inputs(rows=6, columns=8):
    return [np.random.normal(size=(rows, columns)).astype(np.float32)]

def reference(x):
    return x * 2
"""
KERNEL = "import numpy as np\nHERE\n\ndef kernel(x):\n    return x * np.float32(2)\n"
FINDER = """
import importlib.util, sys

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "placed":
            return importlib.util.spec_from_file_location(name, {path!r})

sys.meta_path.append(Finder)
"""

#: The first alone tells of a folder.
RECORDS = (
    '{"url": "file:///a", "dir_info": {"editable": true}}',
    '{"url": "file:///b", "dir_info": {}}',
    '{"url": "https://c", "dir_info": {"editable": true}}',
    '{"dir_info": {"editable": true}}',
    "[]",
    "{",
)


def on_the_path(folder: Path, project: Path) -> str:
    """Put the project's own folder on Python's path."""
    return str(project)


def with_a_finder(folder: Path, project: Path) -> str:
    """Install the project in place as setuptools does, its folder on no path."""
    (folder / "sitecustomize.py").write_text(FINDER.format(path=str(project / "placed" / "__init__.py")))
    record = folder / "placed-1.dist-info" / "direct_url.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"dir_info": {"editable": True}, "url": project.as_uri()}))
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("installed", [on_the_path, with_a_finder])
@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("import placed", ""),
        ("import inspect, placed; inspect.getsource(placed)", ""),
        ("import placed; open(placed.__file__.replace('__init__', 'other')).read()", "reads-files"),
    ],
    ids=["imported", "its text", "a file beside it"],
)
def test_a_package_in_place_is_imported_and_no_file_to_read(
    tmp_path: Path, installed: Callable[[Path, Path], str], line: str, refused: str
) -> None:
    folder, project = tmp_path / "packages", tmp_path / "a project"
    folder.mkdir()
    (project / "placed").mkdir(parents=True)
    for name in ("__init__", "other"):
        (project / "placed" / f"{name}.py").write_text("N = 3\n")
    host = LocalHost(environment={**os.environ, "PYTHONPATH": installed(folder, project)})
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        try:
            original, candidate = (KERNEL.replace("HERE", text) for text in ("import placed", line))
            options = CaseOptions(["original"], reading=False)
            verdict, _ = Checker(loop, host).numpy(f"{candidate}# changed\n", PROBLEM, original, options)
        finally:
            loop.run_until_complete(host.close())
    assert (codes(verdict) if refused else [verdict.accepted]) == [refused or True], verdict.reasons


def test_a_record_that_nobody_can_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in enumerate(RECORDS):
        (tmp_path / f"p{number}-1.dist-info").mkdir()
        (tmp_path / f"p{number}-1.dist-info" / "direct_url.json").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert import_places() == [str(tmp_path), "/a"]
