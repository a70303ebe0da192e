"""Defines the result of one part of the device measurements, as it is kept between runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError

T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """A table of a part, all its cells as text."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True)
class PartResult:
    """``part`` is its name.

    ``device`` and ``toolchain`` what it ran on, ``when`` the day and time (UTC), ``seconds`` how long it took.
    ``lacks`` says what was not there, or failed; then rows may be missing.
    """

    part: str
    rows: list[GoalResult] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    device: str = ""
    toolchain: dict[str, str] = field(default_factory=dict)
    when: str = ""
    seconds: float = 0.0


async def attempt(work: Awaitable[T], seconds: float) -> T | str:
    """Return the result, or in words why there is none: a device's day must not end with the first
    surprise."""
    try:
        return await asyncio.wait_for(work, seconds)
    except (asyncio.TimeoutError, TimeoutError):
        return f"not done within {seconds:.0f} s"
    except JobFailedError as failed:
        where = f" ({failed.error.file}, line {failed.error.line})" if failed.error.file else ""
        detail = (failed.error.detail.strip().splitlines() or [""])[-1]
        more = f": {detail}" if detail and detail not in failed.error.message else ""
        return f"{failed.step or 'the job'} failed{where}: {failed.error.message}{more}"[:400]
    except HostUnreachableError as error:
        return str(error)[:400]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]


def microseconds(us: float | None) -> str:
    """Return a time for a table: tenths below a millisecond, "-" where there is none."""
    return "-" if us is None else f"{us:,.1f}" if us < 1000 else f"{us:,.0f}"
