"""What the sandboxes of a worker have in common: the folder of jobs, what is readable, and whom steps run as."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from accelopt_profiling.worker.readable_places import (
    ReadablePlaces,
    accelerators,
    places_of_interpreter,
    private_entries,
    projects_of_job,
)

#: Users that no account has: systemd's range for programs that get one while they run. A worker takes one by its
#: process number.
_FIRST_USER, _USERS = 61184, 4336
#: How many seconds the list of a project's private entries holds.
_LISTED_SECONDS = 30.0


@dataclass(frozen=True)
class SandboxPlan:
    """``base`` is the worker's folder of jobs.

    ``user`` is whom steps run as where the worker is root, else None.
    """

    base: Path
    places: ReadablePlaces
    user: int | None

    @classmethod
    def of_worker(cls, base: Path) -> SandboxPlan:
        user = _FIRST_USER + os.getpid() % _USERS if hasattr(os, "getuid") and os.getuid() == 0 else None
        return cls(base, places_of_interpreter(os.environ), user)

    def as_own_user(self) -> SandboxPlan:
        """Return the plan in which steps run as the worker's own user."""
        return replace(self, user=None)

    def user_of(self, device: bool, projects: Iterable[str]) -> int | None:
        """Return whom a step runs as: the worker's user where device files, or a project's folders that are imported
        from, are not for everybody."""
        needed = [(path, 0o006) for path in accelerators()] if device else []
        needed += [(path, 0o005) for path in projects]
        return self.user if all(_lets_all(path, mode) for path, mode in needed) else None


def _lets_all(path: str, mode: int) -> bool:
    try:
        return os.stat(path).st_mode & mode == mode
    except OSError:  # what is not there is not needed; what the worker may not see nobody may
        return True


class ProjectFolders:
    """The folders of projects that jobs import from, and what of them is private; lists are kept for a while."""

    def __init__(self, plan: SandboxPlan) -> None:
        self._always = list(plan.places.projects)
        self._listed: dict[str, tuple[float, list[str]]] = {}

    def of_job(self, import_paths: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Return the folders to show besides those of every step, the private entries of all of them, and the folders
        that imports pass through."""
        projects = projects_of_job(import_paths)
        roots = [Path(project) for project in projects]
        ways = {folder for path in import_paths for folder in (Path(path), *Path(path).parents)}
        passed = sorted(str(folder) for folder in ways if any(folder.is_relative_to(p) for p in roots))
        private = [entry for place in (*self._always, *projects) for entry in self._private(place)]
        return projects, private, passed

    def _private(self, place: str) -> list[str]:
        listing, now = self._listed.get(place), time.monotonic()
        if listing is None or now - listing[0] > _LISTED_SECONDS:
            listing = self._listed[place] = now, private_entries(place)
        return listing[1]
