"""Format a version that is offered as the project formats its files: with the ruff or black that it configures.

Where the file itself is not formatted in that way, or no formatter can be run, the version stays as it was written.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import os
import shutil
import signal
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelopt_agent.search.trial import unified_diff
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.settings.layers import FILE_BYTES, parsed_toml
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.waiting import within

#: The longest that one text may take, in seconds of the clock and of the processor.
SECONDS = 10
#: The most address space of a formatter, in kB: ruff reserves far more than it uses.
MEMORY_KB = 4 << 20

#: What each formatter is called with to read a text and write it formatted.
_ARGUMENTS = {
    "ruff": ("format", "--no-cache", "--quiet", "--stdin-filename"),
    "black": ("--quiet", "--stdin-filename"),
}
#: All that a formatter sees of the environment, so that no key is in it.
_VARIABLES = ("PATH", "HOME", "LANG", "XDG_CONFIG_HOME")


class FormatError(Exception):
    """A text was not formatted; the message says why, as one sentence."""


@dataclass(frozen=True)
class Formatter:
    """The program ``path``, of one of the kinds in ``_ARGUMENTS``."""

    kind: str
    path: str

    async def __call__(self, file: Path, text: str) -> str:
        """Return ``text`` formatted as ``file`` would be. Raises FormatError."""
        script = f'ulimit -t {SECONDS}; ulimit -v {MEMORY_KB} 2>/dev/null; exec "$@"'
        command = ("sh", "-c", script, "sh", self.path, *_ARGUMENTS[self.kind], str(file), "-")
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, cwd=file.parent, start_new_session=True,
                env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
            )  # fmt: skip
        except OSError as error:
            raise FormatError(f"{self.path} cannot be run: {error.strerror}.") from None
        try:
            out, reason = await within(SECONDS, process.communicate(text.encode()))
        except asyncio.TimeoutError:
            raise FormatError(f"{self.path} did not answer within {SECONDS} s.") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with what it started, which holds the pipes
                await process.wait()
        if process.returncode:
            why = reason.decode("utf-8", "replace").strip().partition("\n")[0]
            raise FormatError(f"{self.path} failed: {why or process.returncode}.")
        return out.decode("utf-8", "replace")


class ProjectFormat:
    """Formats versions of one file. ``remark`` says why none is formatted although the project configures a
    formatter, as a sentence; empty otherwise."""

    def __init__(self, file: Path, formatter: Formatter | None = None, remark: str = "") -> None:
        self._file, self._formatter, self.remark = file, formatter, remark

    async def __call__(self, suggestion: Suggestion) -> Suggestion:
        """Return the suggestion with its text formatted; as it is where that is not shown to be the same program."""
        if self._formatter is None:
            return suggestion
        try:
            text = await self._formatter(self._file, suggestion.text)
        except FormatError:
            return suggestion
        if not same_program(suggestion.text, text):
            return suggestion
        diff = unified_diff(suggestion.base_text, text, suggestion.file)
        return replace(suggestion, text=text, diff=diff)


async def project_format(file: Path, text: str, settings: Settings) -> ProjectFormat:
    """Return how versions of ``file`` are formatted, whose own text is ``text``: by the first formatter that its
    project configures and that leaves the text as it is. In a folder that is not trusted nothing is run."""
    if settings.untrusted is not None:
        return ProjectFormat(file)
    remarks = []
    for kind in configured(file):
        path = _program(kind, settings.interpreter.path)
        if path is None:
            remarks.append(f"The project formats with {kind}, which was not found.")
            continue
        formatter = Formatter(kind, path)
        try:
            if await formatter(file, text) == text:
                return ProjectFormat(file, formatter)
            remarks.append(f"{file.name} is not formatted with the project's {kind}.")
        except FormatError as error:
            remarks.append(str(error))
    return ProjectFormat(file, remark=" ".join([*remarks, "Versions stay as written."]) if remarks else "")


def configured(file: Path) -> list[str]:
    """Return the formatters that the nearest file of settings above ``file`` names, within its repository."""
    for folder in file.absolute().parents:
        if any((folder / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
            return ["ruff"]
        tools = _tools(folder / "pyproject.toml")
        if kinds := [kind for kind in _ARGUMENTS if kind in tools]:
            return kinds
        if any((folder / name).exists() for name in (".git", ".hg")):
            break
    return []


def _tools(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > FILE_BYTES:
            return {}
        tools = parsed_toml(path.read_text("utf-8")).get("tool")
    except (OSError, ValueError, RecursionError):
        return {}
    return tools if isinstance(tools, dict) else {}


def _program(kind: str, interpreter: str) -> str | None:
    """Return the program beside the project's Python, or the one on the search path."""
    beside = Path(interpreter).parent / kind
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(kind)


def same_program(text: str, formatted: str) -> bool:
    """Return whether two texts have one syntax tree and the same comments in the same order."""
    try:
        trees = [ast.dump(ast.parse(source)) for source in (text, formatted)]
        comments = [list(_comments(source)) for source in (text, formatted)]
    except (SyntaxError, ValueError, RecursionError, tokenize.TokenError):
        return False
    return trees[0] == trees[1] and comments[0] == comments[1]


def _comments(text: str) -> Iterator[str]:
    """Yield the words of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#").strip()
