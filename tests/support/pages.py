"""Reads the commands that a document shows, runs them and compares what they print.

A page is run from top to bottom in an empty folder. In its code blocks

- a second word is a file name: ``python softmax.py`` writes that file into the folder;
- ``console`` holds lines ``$ command`` and below each what it prints, standard error included. ``exit=1`` after it
  is the exit code of the block's last command. A line ``...`` stands for any lines, ``...`` within a line for any text.
  Identifiers of 12 or 16 hexadecimal digits may differ and are replaced in later commands. Numbers with a unit are
  what a run prints today: ``scripts/figures.py`` writes them;
- ``console needs=WHAT`` is not run: WHAT (``network``, ``host``, ...) is not there in a test.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    ROOT / "examples/README.md",
]
NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNIT = r"x(?!\w)| ?(?:us|ms|s|%|[kMG]?B|MiB|KiB|M)(?!\w)|(?=\))"
IDENTIFIER = r"\b(?:[0-9a-f]{12}|[0-9a-f]{16})\b"
TOKEN = re.compile(
    rf"(?P<identifier>{IDENTIFIER})|(?P<gap>\.\.\.)|(?P<number>{NUMBER}(?:-{NUMBER})?)(?P<unit>{UNIT})"
)


@dataclass
class Block:
    language: str
    words: list[str]
    text: str
    line: int
    start: int  # of its text, in the page

    @property
    def file(self) -> str | None:
        return next((word for word in self.words if "=" not in word), None)

    def option(self, name: str) -> str | None:
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), None)

    @property
    def runs(self) -> bool:
        return self.language == "console" and self.option("needs") is None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\w*)([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2].split(), m[3], text.count("\n", 0, m.start()) + 1, m.start(3)) for m in fences]


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command of a console block with what it should print."""
    before, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not before.strip(), f"line {block.line}: a console block begins with a command"
    pairs: list[tuple[str, str]] = []
    for part in parts:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            further, _, expected = expected.partition("\n")
            command = f"{command[:-1]}{further.strip()}"
        pairs.append((command, expected))
    return pairs


@dataclass
class Comparison:
    """Matches what a command printed, and remembers which identifiers stand for those of the page."""

    identifiers: dict[str, str] = field(default_factory=dict)

    def command(self, text: str) -> str:
        return re.sub(IDENTIFIER, lambda m: self.identifiers.get(m[0], m[0]), text)

    def refreshed(self, expected: str, printed: str) -> str:
        """Return ``expected`` with the numbers that were printed.

        Raises:
            AssertionError: the two differ in more than numbers with a unit and identifiers.
        """
        lines = self._aligned(
            [line for line in expected.splitlines() if line.strip()],
            [line for line in printed.splitlines() if line.strip()],
        )
        assert lines is not None, f"expected:\n{expected}\nprinted:\n{printed}"
        fresh = iter(lines)
        return "".join(f"{next(fresh)}\n" if line.strip() else "\n" for line in expected.splitlines())

    def _aligned(self, expected: list[str], printed: list[str]) -> list[str] | None:
        if not expected:
            return None if printed else []
        first, *rest = expected
        if first == "...":
            tails = (self._aligned(rest, printed[start:]) for start in range(len(printed) + 1))
            return next(([first, *tail] for tail in tails if tail is not None), None)
        line = self._line(first, printed[0]) if printed else None
        tail = self._aligned(rest, printed[1:]) if line is not None else None
        return None if line is None or tail is None else [line, *tail]

    def _line(self, expected: str, printed: str) -> str | None:
        tokens = list(TOKEN.finditer(expected))
        ends = [0, *(token.end() for token in tokens)]
        texts = [
            expected[a:b] for a, b in zip(ends, [*(t.start() for t in tokens), len(expected)], strict=True)
        ]
        pattern = _blanks(texts[0])
        for token, text in zip(tokens, texts[1:], strict=True):
            if token["identifier"]:
                pattern += f"({IDENTIFIER})"
            elif token["gap"]:
                pattern += "(.*)"
            else:
                numbers = f"{NUMBER}-{NUMBER}" if "-" in token["number"] else NUMBER
                pattern += f"({numbers}){_blanks(token['unit'])}"
            pattern += _blanks(text)
        match = re.fullmatch(rf"\s*{pattern}\s*", printed)
        if match is None:
            return None
        fresh, whole = texts[0], printed.rstrip()
        for token, value, text in zip(tokens, match.groups(), texts[1:], strict=True):
            if token["identifier"]:
                self.identifiers[token["identifier"]] = value
                whole = whole.replace(value, token["identifier"])
            fresh += (f"{value}{token['unit']}" if token["number"] else token[0]) + text
        if any(token["gap"] for token in tokens) or fresh.split() == expected.split():
            return fresh
        return whole  # in the columns that a terminal shows


def _blanks(text: str) -> str:
    """Return a pattern for ``text`` that allows any number of blanks where it has some."""
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", text))


def run_page(page: Path, folder: Path, scripts: Path, work: Path | None = None, packages: str = "") -> str:
    """Run a page's commands in the empty ``folder`` with the programs in ``scripts``.

    They run in a new folder there, or in ``work``, with the ``packages`` (folders) before those that are installed.

    Returns the page's text with the numbers that were printed.

    Raises:
        AssertionError: a command printed something else, or ended with another exit code.
    """
    home, fresh_work = folder / "home", folder / "work"
    home.mkdir()
    if work is None:
        work = fresh_work
        work.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ACCELOPT_", "XDG_", "PYTHON"))}
    environment |= {
        "HOME": str(home),
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "COLUMNS": "200",
        "PYTHONUNBUFFERED": "1",  # standard output and standard error in the order that a terminal shows
    }
    if packages:
        environment["PYTHONPATH"] = packages
    comparison = Comparison()
    text, shift = page.read_text(encoding="utf-8"), 0
    for block in blocks(page):
        if block.file and block.language != "diff":
            (work / block.file).parent.mkdir(parents=True, exist_ok=True)
            (work / block.file).write_text(block.text, encoding="utf-8")
        if not block.runs:
            continue
        ended, fresh = 0, block.text
        for command, expected in commands(block):
            assert ended == 0, f"{page.name}:{block.line}: a command before `{command}` ended with {ended}"
            done = subprocess.run(
                ["bash", "-c", comparison.command(command)],
                cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            ended = done.returncode
            if expected:
                fresh = fresh.replace(expected, comparison.refreshed(expected, done.stdout), 1)
            else:
                assert not done.stdout.strip(), (
                    f"{page.name}:{block.line}: `{command}` printed:\n{done.stdout}"
                )
        assert ended == int(block.option("exit") or 0), f"{page.name}:{block.line}"
        start = block.start + shift
        text = text[:start] + fresh + text[start + len(block.text) :]
        shift += len(fresh) - len(block.text)
    return text
