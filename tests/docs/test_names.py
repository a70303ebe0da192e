"""What the documents name exists: files, links, folders of the rooms, ``make`` targets, commands and their options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from accelopt_lsp.cli.main import accelopt

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("[!.]*/README.md")])
PACKAGES = {
    "profiling": "accelopt_profiling",
    "memory_db": "accelopt_memory",
    "nkibench": "nkibench",
    "agent": "accelopt_agent",
    "accelopt_lsp": "accelopt_lsp",
    "benchmarks": "accelopt_benchmarks",
}
#: Where a path in a document may begin: at the root, or in a room that the text is about.
PLACES = [
    ROOT,
    *(ROOT / room for room in PACKAGES),
    *(ROOT / room / package for room, package in PACKAGES.items()),
    ROOT / "accelopt_lsp/accelopt_lsp/settings",
]
#: The first folder of what is a path of this project, and not of another one, a method of LSP or a fraction.
OURS = {"docs", "tests", "scripts", "examples", "vscode-extension", *PACKAGES, *PACKAGES.values()} | {
    folder.name
    for room, package in PACKAGES.items()
    for folder in (ROOT / room / package).iterdir()
    if folder.is_dir()
}


def read(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def spelled_out(path: str) -> list[str]:
    """``a/{b,c}.py`` as two paths."""
    match = re.fullmatch(r"(.*)\{(.*)\}(.*)", path)
    return [f"{match[1]}{one}{match[3]}" for one in match[2].split(",")] if match else [path]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_the_files_that_a_document_names_exist(document: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", read(document), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#:]+)", prose) if not link.startswith("http")]
    assert [link for link in links if not (document.parent / link).exists()] == []
    paths = re.findall(r"`([\w.-]+/[\w./{},*-]+)`", read(document))
    ours = [
        path
        for path in paths
        if path.partition("/")[0] in OURS and not path.startswith(("window/", "accelopt/"))
    ]
    # Of files with any name, which a person or a command is going to write, only the folder has to be there.
    there = [re.sub(r"/[^/]*(\*|\bNAME\b)[^/]*$", "", path) for path in ours]
    missing = [
        p
        for path in there
        for p in spelled_out(path)
        if not any(list(at.glob(p.rstrip("/"))) for at in PLACES)
    ]
    assert missing == []


def test_the_plan_names_every_folder_of_every_room() -> None:
    plan = read(ROOT / "ARCHITECTURE.md")
    for room, package in PACKAGES.items():
        assert f"`{room}/`" in plan
        folders = [f.name for f in (ROOT / room / package).iterdir() if (f / "__init__.py").exists()]
        assert [folder for folder in folders if f"{folder}/" not in plan] == [], room


def test_the_make_targets_that_documents_name_exist() -> None:
    makefile = read(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    targets |= {
        f"bench-{name}" for name in re.findall(r"^BENCHES := (.*)", makefile, re.MULTILINE)[0].split()
    }
    for document in DOCUMENTS:
        mentions = re.findall(r"(?:`|^\$ )make ([a-z]+(?:-[a-z]+)*)", read(document), re.MULTILINE)
        assert set(mentions) <= targets, document


def commands() -> list[str]:
    """The lines of the documents' code blocks that call ``accelopt``, and the calls between backticks."""
    lines: list[str] = []
    for document in DOCUMENTS:
        for block in re.findall(r"^```\w*\n(.*?)^```", read(document), re.MULTILINE | re.DOTALL):
            lines += re.findall(r"^(?:\$ )?(accelopt [a-z][^\n]*)$", block, re.MULTILINE)
        lines += re.findall(r"`(accelopt [a-z][^`\n]*)`", read(document))
    return sorted(set(lines))


@pytest.mark.parametrize("line", commands())
def test_a_command_that_a_document_names_exists_with_its_options(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = accelopt
    context = click.Context(command, info_name="accelopt")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        subcommand = command.get_command(context, words.pop(0))
        assert subcommand is not None, line
        command, context = subcommand, click.Context(subcommand, parent=context, info_name=subcommand.name)
    options = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    used_options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used_options <= options | {"--help", "-h", "--version"}
