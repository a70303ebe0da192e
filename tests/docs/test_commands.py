"""Runs the commands that README, tutorials and how-to pages show, and compares what they print.

A page is run from top to bottom in an empty folder. In its code blocks

- a second word is a file name: ``python softmax.py`` writes that file into the folder;
- ``console`` holds lines ``$ command`` and below each what it prints, standard error included. ``exit=1`` after it
  is the exit code of the block's last command. A line ``...`` stands for any lines, ``...`` within a line for any text.
  Numbers with a unit may differ by a factor of two; identifiers of 12 or 16 hexadecimal digits may differ and are
  replaced in later commands. All else is exact, but for the number of blanks;
- ``console needs=WHAT`` is not run: WHAT (``network``, ``host``, ...) is not there in a test. ``test_names.py``
  checks that its commands and options exist.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    ROOT / "examples/README.md",
]
#: What a command may need that a test does not have.
NEEDS = {"network", "host", "cluster", "gpu", "trainium", "model", "display", "data", "minutes"}
NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNIT = r"x(?!\w)| ?(?:us|ms|s|%|[kMG]?B|MiB|M)(?!\w)|(?=\))"
IDENTIFIER = r"\b(?:[0-9a-f]{12}|[0-9a-f]{16})\b"
TOKEN = re.compile(
    rf"(?P<identifier>{IDENTIFIER})|(?P<gap>\.\.\.)|(?P<low>{NUMBER})(?:-(?P<high>{NUMBER}))?(?P<unit>{UNIT})"
)


@dataclass
class Block:
    language: str
    words: list[str]
    text: str
    line: int

    @property
    def file(self) -> str | None:
        return next((word for word in self.words if "=" not in word), None)

    def option(self, name: str) -> str | None:
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), None)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\w*)([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2].split(), m[3], text.count("\n", 0, m.start()) + 1) for m in fences]


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

    def check(self, expected: str, printed: str) -> None:
        lines = [_plain(line) for line in printed.splitlines() if line.strip()]
        wanted = [_plain(line) for line in expected.splitlines() if line.strip()]
        assert self._matches(wanted, lines), f"expected:\n{expected}\nprinted:\n{printed}"

    def _matches(self, wanted: list[str], lines: list[str]) -> bool:
        if not wanted:
            return not lines
        if wanted[0] == "...":
            return any(self._matches(wanted[1:], lines[start:]) for start in range(len(lines) + 1))
        return bool(lines) and self._same(wanted[0], lines[0]) and self._matches(wanted[1:], lines[1:])

    def _same(self, wanted: str, line: str) -> bool:
        pattern, at = "", 0
        tokens = list(TOKEN.finditer(wanted))
        for token in tokens:
            pattern += re.escape(wanted[at : token.start()])
            if token["identifier"]:
                pattern += f"({IDENTIFIER})"
            elif token["gap"]:
                pattern += "(.*)"
            else:
                numbers = f"{NUMBER}-{NUMBER}" if token["high"] else NUMBER
                pattern += f"({numbers}){re.escape(token['unit'])}"
            at = token.end()
        found = re.fullmatch(pattern + re.escape(wanted[at:]), line)
        if not found:
            return False
        for token, text in zip(tokens, found.groups(), strict=True):
            if token["identifier"]:
                self.identifiers[token["identifier"]] = text
            elif token["low"] and not _near(token["low"], token["high"], text):
                return False
        return True


def _near(low: str, high: str | None, printed: str) -> bool:
    """Whether each number of a range is within a factor of two of the one on the page."""
    wanted = [_number(low)] + ([_number(high)] if high else [])
    return all(
        a == b or b / 2 <= a <= b * 2 for a, b in zip(wanted, map(_number, printed.split("-")), strict=True)
    )


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _plain(line: str) -> str:
    return " ".join(line.split())


def runs_nothing(page: Path) -> bool:
    return not any(b.language == "console" and b.option("needs") is None for b in blocks(page))


@pytest.mark.slow
@pytest.mark.minutes
@pytest.mark.parametrize("page", [p for p in PAGES if not runs_nothing(p)], ids=lambda p: p.stem)
def test_the_commands_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ACCELOPT_", "XDG_"))
    }
    environment |= {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "200",
        "PYTHONUNBUFFERED": "1",  # standard output and standard error in the order that a terminal shows
    }
    comparison = Comparison()
    for block in blocks(page):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language != "console" or block.option("needs"):
            continue
        ended = 0
        for command, expected in commands(block):
            assert ended == 0, f"{page.name}:{block.line}: a command before `{command}` ended with {ended}"
            done = subprocess.run(
                ["bash", "-c", comparison.command(command)],
                cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            ended = done.returncode
            comparison.check(expected, done.stdout)
        assert ended == int(block.option("exit") or 0), f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_command_stands_in_a_block_that_is_run_or_says_what_it_needs(page: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            assert block.option("needs") is None or block.option("needs") in NEEDS, (page, block.line)
            assert commands(block)
        else:
            stray = re.findall(r"^(?:\$ |accelopt ).*", block.text, re.MULTILINE)
            assert stray == [], (page, block.line)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("est. 36.2-126 us  24 %", "est. 30-140 us 20 %", True),
        ("est. 36.2-126 us", "est. 30-300 us", False),
        ("took 3 s", "took 3 files", False),
        ("7 rewrites", "8 rewrites", False),
        ("...\nlast", "first\nsecond\nlast", True),
        ("...\nlast", "last\nfurther", False),
        ("by ... rules", "by two rules", True),
        ("id e1e2f03d4012", "id 0123456789ab", True),
        ("passed", "failed", False),
    ],
)
def test_outputs_are_compared_loosely_only_in_quantities(expected: str, printed: str, same: bool) -> None:
    if same:
        Comparison().check(expected, printed)
    else:
        with pytest.raises(AssertionError, match="expected"):
            Comparison().check(expected, printed)


def test_an_identifier_of_the_page_stands_for_the_one_that_was_printed() -> None:
    comparison = Comparison()
    comparison.check("e1e2f03d4012  gate_kernel", "0123456789ab gate_kernel")
    assert comparison.command("accelopt accept e1e2f03d4012") == "accelopt accept 0123456789ab"
