"""What the processes of a running server hold: memory, file handles, threads (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Held(NamedTuple):
    """``memory_mb`` is proportional: a page that several processes share counts in parts. ``anonymous_mb`` is its part
    that no file holds: pages of libraries count more whenever another program of the machine that mapped them ends.
    """

    memory_mb: float
    anonymous_mb: float
    handles: int
    threads: int

    def plus(self, other: Held) -> Held:
        return Held(
            self.memory_mb + other.memory_mb,
            self.anonymous_mb + other.anonymous_mb,
            handles=self.handles + other.handles,
            threads=self.threads + other.threads,
        )


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process and all below it; those that end meanwhile are left out."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                yield from process_tree(int(child))


def role(pid: int) -> str:
    """Return what a process of the server is: its module, ``step`` for what the worker forked."""
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        for module, name in (
            ("lsp_command", "server"), ("parser_main", "parser"), ("process_main", "engine"),
            ("supervisor", "worker"), ("accelopt_profiling", "worker"),
        ):  # fmt: skip
            if module in command:
                return name
        return command.replace("\0", " ")[:60] or "ended"
    return "ended"


def held(pid: int) -> Held:
    """Return what one process holds; nothing where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
        anonymous = sizes["Pss_Anon:"] + sizes["Pss_Shmem:"]
        tasks = len(os.listdir(f"/proc/{pid}/task"))
        return Held(sizes["Pss:"], anonymous, len(os.listdir(f"/proc/{pid}/fd")), tasks)
    except OSError:
        return Held(0.0, 0.0, 0, 0)


def memory_mb(pid: int) -> float:
    """Return the resident memory of one process in MB; 0 where it has ended."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0
