"""What the workers of one user do on a host: each keeps a small file in its own folder, any of them reads all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.plain import from_plain, to_plain

_NAME = "activity.json"


@dataclass(frozen=True)
class RunningJob:
    """``kernel`` is the kernel file's path as its owner knows it; ``seconds`` since the step began.

    ``device`` is "holds" for a step that has the host's devices to itself and "waits" for one that wants them.
    """

    kernel: str
    step: str
    seconds: float = 0.0
    background: bool = False
    device: str = ""


@dataclass(frozen=True)
class Activity:
    """One worker: its process, its jobs, and how many jobs wait for a place."""

    pid: int
    jobs: list[RunningJob] = field(default_factory=list)
    waiting: int = 0


def tell(base: Path, activity: Activity) -> None:
    """Write what this worker does into its folder ``base``; ``seconds`` are turned into the time of the beginning."""
    with contextlib.suppress(OSError):  # a full disk must not end a worker
        path = base / f"{_NAME}.new"
        path.write_text(json.dumps({**to_plain(activity), "told": time.time()}), encoding="utf-8")
        path.replace(base / _NAME)


def all_activity() -> list[Activity]:
    """What all workers of this user do now, oldest process first; workers that are gone are left out."""
    found = []
    for path in Path(tempfile.gettempdir()).glob(f"accelopt-*-*/{_NAME}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if path.stat().st_uid != os.getuid():
                continue
            data = json.loads(path.read_text(encoding="utf-8"))
            passed = max(0.0, time.time() - data.pop("told"))
            for job in data["jobs"]:
                job["seconds"] += passed
            activity = from_plain(Activity, data)
            if Path(f"/proc/{activity.pid}").exists():
                found.append(activity)
    return sorted(found, key=lambda a: a.pid)
