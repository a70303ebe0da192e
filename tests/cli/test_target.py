"""A target that runs none of the kernels is a wrong call, in every command that takes one and for both dialects."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from support.command import Command

from accelopt_lsp.cli.main import COMMANDS, Commands

TRITON = """
import triton

@triton.jit
def kernel(x):
    pass
"""
NKI = """
import nki

@nki.jit
def kernel(x):
    return x
"""
TEXTS = {"triton": TRITON, "nki": NKI}
OTHER = {"triton": "trn1", "nki": "h100"}
#: What each command that takes a target is called with; "{}" is a file of the dialect.
CALLS = {
    "profile": ["{}"],
    "optimize": ["{}"],
    "verify": ["{}", "--problem", "problem.py"],
    "problem": ["{}"],
    "learn": ["{}", "{}2"],
    "report": ["{}", "-o", "report.html"],
    "watch": [".", "--once"],
    "record": ["--", "true"],
    "migrate": ["{}"],
}
#: Those that take kernels of one dialect alone.
ONE = {"record": "triton", "migrate": "nki"}


def test_each_command_that_takes_a_target_is_among_those_below() -> None:
    group = Commands()
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in COMMANDS}
    taking = {n for n, c in commands.items() if c and any("--target" in p.opts for p in c.params)}
    assert taking == set(CALLS)


@pytest.mark.parametrize("dialect", OTHER)
@pytest.mark.parametrize("command", CALLS)
def test_a_target_of_the_other_dialect_is_a_wrong_call(
    accelopt: Command, home: Path, command: str, dialect: str
) -> None:
    dialect = ONE.get(command, dialect)
    (home / "kernel.py").write_text(TEXTS[dialect])
    (home / "kernel.py2").write_text(TEXTS[dialect] + "\n# changed\nx = 1\n")
    (home / "problem.py").write_text("def get_inputs():\n    return []\n")
    arguments = [a.format("kernel.py") for a in CALLS[command]]
    ended = accelopt(command, "--target", OTHER[dialect], *arguments)
    assert ended.code == 2, (ended.out, ended.err)
    last = ended.err.strip().splitlines()[-1]
    assert "--target" in last
    assert "choose one of: " + ("trn1" if dialect == "nki" else "a100") in last


def test_in_a_file_of_both_dialects_a_target_goes_for_its_own(accelopt: Command, home: Path) -> None:
    (home / "kernel.py").write_text(TRITON + NKI.replace("kernel", "other"))
    kernels = accelopt("profile", "kernel.py", "--target", "trn1", "--json").object["kernels"]
    assert {k["dialect"]: k["target"] for k in kernels} == {"triton": "h100", "nki": "trn1"}
    ended = accelopt("profile", "kernel.py", "--target", "trn1", "--kernel", "kernel")
    assert ended.code == 2


@pytest.mark.parametrize(("dialect", "target"), [("triton", "trn1"), ("nki", "h100"), ("nki", "moon")])
def test_a_setting_of_the_other_hardware_is_said_and_not_used(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, target: str
) -> None:
    variable = f"ACCELOPT_TARGET_{dialect.upper()}"
    monkeypatch.setenv(variable, target)
    (home / "kernel.py").write_text(TEXTS[dialect])
    ended = accelopt("profile", "kernel.py", "--json")
    assert variable in ended.err
    assert f"not '{target}'" in ended.err
    assert [k["target"] for k in ended.object["kernels"]] == ["h100" if dialect == "triton" else "trn2"]
