"""Runs the command line as a user does, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Seconds for one command; a person would not wait longer.
_SECONDS = 300.0


async def run_accelopt(
    arguments: Sequence[str],
    python: str | None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[int, str, str]:
    """Return the exit code, output and errors of one command; ``python`` is the setting, ``environment``
    is added to this process' own. It runs in ``folder``, and what it starts imports from there."""
    setting = {} if python is None else {"ACCELOPT_PYTHON": python}
    if folder is not None:
        setting["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accelopt_lsp", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **setting, **(environment or {}), "NO_COLOR": "1"},
    )
    try:
        printed, errors = await asyncio.wait_for(child.communicate(), _SECONDS)
    except TimeoutError:
        child.terminate()
        await child.wait()
        return -1, "", f"no answer within {_SECONDS:g} s"
    return child.returncode or 0, printed.decode(errors="replace"), errors.decode(errors="replace")


def last_line(errors: str) -> str:
    """Return the last line of what a command wrote to standard error."""
    lines = errors.strip().splitlines()
    return lines[-1] if lines else ""
