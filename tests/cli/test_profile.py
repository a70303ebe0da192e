"""``profile``, ``verify``, ``replay`` and ``watch`` on real kernels, through a real worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Command
from support.nki_kernels import FASTER, SILU, WRONG

from accelopt_lsp.cli.watch import kernel_files
from accelopt_lsp.service.replaying import compare
from accelopt_memory.memory import Memory
from accelopt_profiling.measurement import Correctness, Finding, KernelMeasurement, Latency
from accelopt_profiling.quantity import Known, compiled
from accelopt_profiling.receipt import Receipt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KERNEL = [
    "name", "line", "dialect", "target", "host", "correctness", "launchable", "latency", "percent_of_peak", "bound",
    "case", "configuration", "ran", "quantities", "lines", "findings", "receipt",
]  # fmt: skip


def test_profile_prints_what_was_agreed_and_replay_agrees(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    ended = accelopt("profile", "silu.py", "--json")
    assert ended.code == 0, ended.err
    report = ended.object
    assert report["file"] == "silu.py"
    (kernel,) = report["kernels"]
    assert list(kernel) == KERNEL
    assert (kernel["name"], kernel["line"], kernel["dialect"]) == ("silu", 10, "nki")
    assert (kernel["target"], kernel["host"]) == ("trn1", "local")
    assert list(kernel["correctness"]) == ["status", "compared", "of", "detail"]
    assert kernel["correctness"]["status"] == "passed"
    assert list(kernel["latency"]) == ["us", "low_us", "high_us", "known"]
    assert kernel["latency"]["known"] == "estimated"
    assert kernel["latency"]["low_us"] < kernel["latency"]["us"] < kernel["latency"]["high_us"]

    replayed = accelopt("replay", kernel["receipt"], "--json")
    assert replayed.code == 0, replayed.out
    assert replayed.object["agrees"]

    table = accelopt("profile", "silu.py", "--target", "trn2")
    assert table.code == 0
    assert "trn2" in table.out
    assert "est. " in table.out


@pytest.mark.slow
def test_a_wrong_kernel_is_exit_code_1(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(WRONG)
    ended = accelopt("profile", "silu.py", "--json")
    assert ended.code == 1
    assert ended.object["kernels"][0]["correctness"]["status"] == "failed"


IDLE = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def total(x):
    m, n = x.shape
    out = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.shared_hbm)
    partial = nl.zeros((128, n), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(m // 128):
        partial += nl.load(x[i * 128:(i + 1) * 128, :])
    nl.store(out, partial)
    return out


def get_inputs():
    return [np.zeros((64, 512), np.float32)]


def reference(x):
    return np.zeros((128, 512), np.float32)
"""


def test_a_kernel_whose_main_work_did_not_run_is_exit_code_1(accelopt: Command, home: Path) -> None:
    (home / "total.py").write_text(IDLE)
    ended = accelopt("profile", "total.py", "--json")
    (kernel,) = ended.object["kernels"]
    assert (ended.code, kernel["latency"]["us"]) == (1, None)
    assert [f["code"] for f in kernel["findings"]] == ["main-work-missed"]


@pytest.mark.parametrize(
    ("runs", "code", "finding"), [(True, 0, "inferred-problem"), (False, 2, "kernel-raised")]
)
def test_a_kernel_without_a_problem_gets_inferred_arguments_where_it_runs_with_some(
    accelopt: Command, home: Path, runs: bool, code: int, finding: str
) -> None:
    text = SILU[: SILU.index("def get_inputs")]
    (home / "silu.py").write_text(text if runs else f"{text}\n\nraise RuntimeError('not here')\n")
    ended = accelopt("profile", "silu.py", "--json")
    assert ended.code == code
    assert [f["code"] for f in ended.object["findings"]] == [finding]


@pytest.mark.slow
@pytest.mark.triton
def test_a_kernel_that_was_never_compiled_has_compiled_facts(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cache helps here: the home is empty, and the step has a cache of its own."""
    monkeypatch.setenv("HOME", str(home))
    for name in ("triton_add.py", "triton_add_problem.py"):
        (home / name).write_text((EXAMPLES / name).read_text())
    ended = accelopt("profile", "triton_add.py", "--json")
    assert ended.code == 0, ended.out
    (kernel,) = ended.object["kernels"]
    assert kernel["quantities"]["registers"]["known"] == "compiled"
    assert kernel["quantities"]["registers"]["value"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"def (", 2, "does not parse"),
        (b"\xff\xfe\x00", 2, "UTF-8"),
        (b"x = 1\n", 1, "no Triton or NKI kernel"),
        (
            SILU.replace("def silu(x):\n", "def silu(x):\n    raise ValueError('on purpose')\n").encode(),
            2,
            "on purpose",
        ),
        (SILU.replace("return [np", "raise OSError('no data')\n    return [np").encode(), 2, "no data"),
        (SILU.replace("import numpy", "import absent_package, numpy").encode(), 2, "absent_package"),
        (SILU.replace("def reference", "import os\nos._exit(3)\n\n\ndef reference").encode(), 2, "silu.py"),
    ],
    ids=["syntax", "encoding", "no kernel", "kernel raises", "problem raises", "missing package", "exits"],
)
def test_a_bad_file_gives_one_clear_message(
    accelopt: Command, home: Path, content: bytes, code: int, says: str
) -> None:
    (home / "silu.py").write_bytes(content)
    ended = accelopt("profile", "silu.py")
    assert ended.code == code
    assert says in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
    errors = [line for line in (ended.out + ended.err).splitlines() if " error " in line or "Error: " in line]
    assert len(errors) == (code == 2)


@pytest.mark.slow
def test_crlf_and_a_byte_order_mark_are_fine(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_bytes(b"\xef\xbb\xbf" + SILU.replace("\n", "\r\n").encode())
    assert accelopt("profile", "silu.py", "--json").object["kernels"][0]["correctness"]["status"] == "passed"


@pytest.mark.slow
def test_a_database_that_cannot_be_used_costs_only_the_receipt(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    (home / "memory.db").write_bytes(b"rubbish" * 1000)
    ended = accelopt("profile", "silu.py", "--json")
    assert ended.code == 0
    assert ended.object["kernels"][0]["latency"]["us"] > 0
    assert "receipts were not kept" in ended.err


def test_an_unreachable_host_is_exit_code_3(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    (home / "accelopt.toml").write_text('[hosts.gone]\nssh = "nobody@host.invalid"')
    assert accelopt("trust", "--yes").code == 0
    ended = accelopt("profile", "silu.py", "--host", "gone", "--json")
    assert ended.code == 3
    assert "gone" in ended.object["error"]["message"]
    listed = accelopt("hosts", "--json")
    assert listed.code == 3
    assert {h["name"]: h["reachable"] for h in listed.object["hosts"]} == {"local": True, "gone": False}


def _problem(home: Path) -> None:
    text = SILU[: SILU.index("@nki.jit")].replace("import neuronxcc.nki as nki\n", "")
    (home / "silu_problem.py").write_text(text + SILU[SILU.index("def get_inputs") :])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "accepted"),
    [(FASTER, True), (WRONG, False), ("def (", False)],
    ids=["right", "wrong", "broken"],
)
def test_verify_is_the_gate_alone(accelopt: Command, home: Path, candidate: str, accepted: bool) -> None:
    _problem(home)
    (home / "silu.py").write_text(SILU[: SILU.index("def get_inputs")])
    (home / "candidate.py").write_text(candidate.split("def get_inputs")[0])
    ended = accelopt(
        "verify", "candidate.py", "--problem", "silu_problem.py", "--original", "silu.py", "--json"
    )
    assert ended.code == (0 if accepted else 1), ended.out
    assert list(ended.object) == ["accepted", "reasons", "receipt"]
    assert ended.object["accepted"] is accepted
    assert all(list(reason) == ["code", "message"] for reason in ended.object["reasons"])
    assert accepted or ended.object["reasons"]
    with Memory.open(home / "memory.db", read_only=True) as memory:
        assert memory.receipt(ended.object["receipt"]) is not None


def test_verify_without_a_usable_problem_is_wrong_input(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    ended = accelopt("verify", "silu.py", "--problem", "absent.py", "--json")
    assert ended.code == 2
    assert "absent.py" in ended.object["error"]["message"]


@pytest.mark.slow
def test_watch_once_profiles_what_is_there(accelopt: Command, home: Path) -> None:
    (home / "kernels").mkdir()
    (home / "kernels" / "silu.py").write_text(SILU)
    (home / "kernels" / "plain.py").write_text("x = 1\n")
    ended = accelopt("watch", "kernels", "--once", "--json")
    assert ended.code == 0
    (file,) = ended.object["files"]
    assert file["kernels"][0]["correctness"]["status"] == "passed"


def test_watched_files_are_those_that_may_hold_kernels(tmp_path: Path) -> None:
    for name in ("a.py", "deep/b.py", ".venv/c.py", "node_modules/d.py", "e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SILU)
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    assert kernel_files(tmp_path) == [tmp_path / "a.py", tmp_path / "deep" / "b.py"]


def _measurement(**changes: Any) -> KernelMeasurement:
    values: dict[str, Any] = {
        "correctness": Correctness("passed"),
        "latency": Latency(10.0, 8.0, 12.0, Known.ESTIMATED),
        "quantities": {"registers": compiled(32.0)},
    }
    return KernelMeasurement("k", 1, "nki", "trn1", **{**values, **changes})


@pytest.mark.parametrize(
    ("now", "names"),
    [
        ({}, []),
        ({"latency": Latency(13.0, 11.0, 15.0, Known.ESTIMATED)}, []),
        ({"latency": Latency(14.0, 13.0, 15.0, Known.ESTIMATED)}, ["latency in us"]),
        ({"latency": Latency(10.0, 8.0, 12.0, Known.MEASURED)}, ["latency is known"]),
        ({"latency": Latency()}, ["latency is known"]),
        ({"correctness": Correctness("failed")}, ["correctness", "error"]),
        ({"findings": [Finding("capacity", 3, "error", "It needs 16 of 8 banks.")]}, ["error"]),
        ({"quantities": {"registers": compiled(40.0)}}, ["registers"]),
        ({"quantities": {}}, ["registers"]),
    ],
)
def test_replay_compares_counts_exactly_and_times_by_interval(now: dict[str, Any], names: list[str]) -> None:
    assert [d.name for d in compare(_measurement(), _measurement(**now))] == names


def test_replay_refuses_what_it_cannot_do(accelopt: Command, home: Path) -> None:
    assert accelopt("replay", "0" * 16, "--json").code == 1
    outside = Receipt(
        "profile",
        {
            "source": {"kernel": "k.py", "files": {"k.py": "", "../out.py": ""}},
            "params": {"kernels": [], "problem": None, "target": "trn1"},
            "measurement": json.loads(MINIMAL),
        },
    )
    empty = Receipt("profile", {})
    with Memory.open(home / "memory.db") as memory:
        memory.add_receipt(outside)
        memory.add_receipt(empty)
    assert "leaves its folder" in accelopt("replay", outside.id, "--json").object["error"]["message"]
    assert accelopt("replay", empty.id, "--json").code == 2
    assert not (home.parent / "out.py").exists()


MINIMAL = '{"name": "k", "line": 1, "dialect": "nki", "target": "trn1"}'


@pytest.mark.slow
def test_a_file_in_latin_1_is_profiled_and_keeps_its_encoding(accelopt: Command, home: Path) -> None:
    path = home / "silu.py"
    header = "# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\nassert len(NAME) == 4\n"
    path.write_bytes(header.encode("latin-1") + SILU.encode())
    (kernel,) = accelopt("profile", "silu.py", "--json").object["kernels"]
    assert kernel["correctness"]["status"] == "passed"
    verdict = accelopt("verify", "silu.py", "--problem", "silu.py", "--json").object
    assert verdict["accepted"], verdict
    result = accelopt("optimize", "silu.py", "--no-model", "--budget", "candidates=3", "--json")
    best = result.object["suggestions"][0]
    assert accelopt("accept", best["id"]).code == 0
    assert path.read_bytes().startswith(header.encode("latin-1"))
    assert path.read_bytes() != header.encode("latin-1") + SILU.encode()
