"""The jobs that one user's workers run on a host: each worker keeps a file in its folder, any of them reads all."""

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
class JobActivity:
    """One running job.

    ``kernel`` is the kernel file's path as its owner knows it; ``seconds`` since the step began.

    ``device`` is "holds" for a step that has the host's devices to itself and "waits" for one that wants them.
    """

    kernel: str
    step: str
    seconds: float = 0.0
    background: bool = False
    device: str = ""


@dataclass(frozen=True)
class WorkerActivity:
    """One worker: its process, its jobs, and how many jobs wait for a place."""

    pid: int
    jobs: list[JobActivity] = field(default_factory=list)
    waiting: int = 0


def write_activity(base: Path, activity: WorkerActivity) -> None:
    """Write what this worker does, and when, into its folder ``base``."""
    with contextlib.suppress(OSError):  # a full disk must not end a worker
        path = base / f"{_NAME}.new"
        path.write_text(json.dumps({**to_plain(activity), "written": time.time()}), encoding="utf-8")
        path.replace(base / _NAME)


def all_activity() -> list[WorkerActivity]:
    """Return what all workers of this user do now, by process number.

    Workers that have ended are left out.
    """
    activities = []
    for path in Path(tempfile.gettempdir()).glob(f"accelopt-*-*/{_NAME}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if path.stat().st_uid != os.getuid():
                continue
            data = json.loads(path.read_text(encoding="utf-8"))
            passed = max(0.0, time.time() - data.pop("written"))
            for job in data["jobs"]:
                job["seconds"] += passed
            activity = from_plain(WorkerActivity, data)
            if Path(f"/proc/{activity.pid}").exists():
                activities.append(activity)
    return sorted(activities, key=lambda a: a.pid)
