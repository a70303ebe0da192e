"""Ask git about a file, in a call that ends in time. Only for files of folders that are trusted: git runs what a
repository's configuration names."""

from __future__ import annotations

import asyncio
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.state.version import Commit

#: Seconds that git may take to answer.
PATIENCE = 10.0

#: So many commits are looked at, the last ones.
COMMITS = 20


async def committed(path: Path) -> str:
    """Return the file as the last commit of its repository has it. Raises UserError: there is none."""
    return await _git(path, "cat-file", "blob", f"HEAD:./{path.name}")


async def commits(path: Path, since: float) -> tuple[Commit, ...]:
    """Return the commits that touched the file after ``since`` (seconds since 1970), oldest first.

    Raises:
        UserError: the file is in no repository, or git does not answer.
    """
    form = "--format=%h%x09%ct%x09%s"
    log = await _git(path, "log", f"-n{COMMITS}", f"--since=@{int(since)} +0000", form, "--", path.name)
    parts = (line.split("\t", 2) for line in reversed(log.split("\n")))
    return tuple(Commit(part[0], float(part[1]), part[2]) for part in parts if len(part) == 3)


async def _git(path: Path, *command: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            "git", "-C", str(path.parent), *command, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise UserError(f"git cannot be run: {error.strerror}.") from None
    try:
        out, reason = await asyncio.wait_for(process.communicate(), PATIENCE)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        raise UserError(f"git did not answer within {PATIENCE:.0f} s.") from None
    if process.returncode:
        why = reason.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise UserError(f"{path.name} is in no commit: {why or 'git says nothing'}.")
    return out.decode("utf-8", "replace")
