"""The frame of the command line: exit codes, one JSON object, a fast start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Command

from accelopt_lsp.cli.main import COMMANDS
from accelopt_lsp.cli.tables import print_measurement
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import printable
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement

HEAVY = ["torch", "triton", "numpy", "libcst", "sqlite_utils", "pygls", "lsprotocol", "rich", "watchdog"]


@pytest.mark.parametrize("arguments", [["--help"], ["memory", "path"], ["memory", "path", "--json"]])
def test_the_start_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom accelopt_lsp.cli.main import run\n"
        f"code = run({arguments!r})\nheavy = set({HEAVY!r}) & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy or code else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_console_script_ends_with_the_exit_code(home: Path) -> None:
    command = [sys.executable, "-m", "accelopt_lsp.cli.main"]
    done = subprocess.run(
        [*command, "memory", "show", "feed", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["exit"] == 1
    assert "feed" in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(accelopt: Command, name: str) -> None:
    ended = accelopt(name, "--help")
    assert ended.code == 0
    assert f"accelopt {name}" in ended.out
    assert ended.err == ""


def test_the_help_lists_every_command(accelopt: Command) -> None:
    listed = accelopt("--help").out
    assert [name for name in COMMANDS if f"  {name} " not in listed] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["profil", "x"],
        ["profile"],
        ["profile", "absent.py"],
        ["profile", "."],
        ["memory", "search"],
        ["memory", "nothing"],
        ["watch", "absent"],
        ["--nonsense"],
        ["profile", "k.py", "--nonsense"],
        ["profile", "k.py", "--target", "abacus"],
        ["profile", "k.py", "--host", "moon"],
        ["profile", "k.py", "--kernel", "absent"],
        ["optimize", "k.py", "--budget", "lots"],
        ["optimize", "k.py", "--budget", "0"],
        ["verify", "k.py"],
        ["hosts", "moon"],
        ["lsp", "--tcp", "here"],
        ["watch", ".", "--json"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_message_and_exit_code_2(
    accelopt: Command, home: Path, arguments: list[str]
) -> None:
    (home / "k.py").write_text("from neuronxcc import nki\n@nki.jit\ndef k(x):\n    return x\n")
    ended = accelopt(*arguments)
    assert ended.code == 2
    assert "Error: " in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == "" or "--json" in arguments
    as_json = accelopt(*arguments, *(["--json"] if "--json" not in arguments else []))
    assert as_json.code == 2
    if as_json.out:  # a command without --json has no object to print
        assert as_json.object["error"]["exit"] == 2


def test_a_near_miss_is_hinted(accelopt: Command) -> None:
    assert "'profile'" in accelopt("profil").err


def test_a_wrong_setting_is_said_once_and_the_command_goes_on(accelopt: Command, home: Path) -> None:
    (home / "user.toml").write_text("[limits]\nseconds = 'x'")
    ended = accelopt("memory", "stats", "--json")
    assert ended.code == 0
    assert ended.object["pairs"] == 0
    assert ended.err.count("limits.seconds") == 1


def test_an_unexpected_error_is_not_hidden(accelopt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from accelopt_memory.memory import Memory

    def broken(*_: object, **__: object) -> None:
        raise AssertionError("a mistake of ours")

    monkeypatch.setattr(Memory, "open", broken)
    with pytest.raises(AssertionError, match="mistake of ours"):
        accelopt("memory", "stats")


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\x1b[2Jb", "a�[2Jb"),
        ("\r\x08\x07", "���"),
        ("x\u202ey", "x�y"),
        ("é→", "é→"),
    ],
)
def test_nothing_moves_the_cursor(text: str, output: str) -> None:
    assert printable(text) == output


def test_a_closed_pipe_is_no_error(home: Path) -> None:
    shell = f"{sys.executable} -m accelopt_lsp.cli.main --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_mistake_of_ours_is_no_answer(home: Path) -> None:
    code = (
        "import sys, accelopt_memory.memory as m\n"
        "from accelopt_lsp.cli import main\n"
        "m.Memory.open = lambda *_, **__: 1 / 0\n"
        "sys.argv = ['accelopt', 'memory', 'stats']\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "ZeroDivisionError" in done.stderr
    assert "report it" in done.stderr
    assert done.stdout == ""


def test_an_interrupted_command_says_so_in_json_too(
    accelopt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("accelopt_memory.memory.Memory.open", interrupted)
    ended = accelopt("memory", "stats", "--json")
    assert ended.code == 130
    assert ended.object["error"] == {"exit": 130, "message": "Interrupted."}
    assert ended.err.strip() == "Interrupted."


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
def test_what_an_encoding_lacks_is_escaped(home: Path, encoding: str, options: list[str]) -> None:
    """The name of a file that is no text, and a kernel's that ASCII has no letters for."""
    name = b"k\xff.py"
    kernel = "from neuronxcc import nki\n@nki.jit\ndef gr\u00f6\u00dfe(x):\n    return x\n"
    Path(os.fsdecode(bytes(home) + b"/" + name)).write_text(kernel, encoding="utf-8")
    command = [sys.executable, "-m", "accelopt_lsp.cli.main", "profile", name, *options]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, cwd=home, env=environment, check=False)
    assert done.returncode == 2, done.stderr  # no problem says what to run it with
    output = done.stdout.decode(encoding.partition(":")[0])
    if options:
        report = json.loads(output)
        assert report["kernels"][0]["name"] == "gr\u00f6\u00dfe"
        assert os.fsencode(report["file"]) == name
    else:
        assert "information no-problem" in output


def test_a_table_that_no_terminal_shows_is_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    name = "a_kernel_with_a_name_that_no_narrow_table_could_show_in_full_beside_its_other_columns"
    measurement = FileMeasurement("k.py", [KernelMeasurement(name, 3, "nki", "trn1", bound="memory")])
    print_measurement(out(), measurement)
    assert f"{name}:3" in capsys.readouterr().out
