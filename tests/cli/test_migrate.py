"""``accelopt migrate``: a file of its own in today's NKI, and what it says of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import SILU

from accelopt_profiling.hosts.host import JobFailedError, JobMessage
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, StepError

TODAY = "import nki\n\n@nki.jit\ndef k(a):\n    return a\n"


@pytest.mark.slow
def test_a_kernel_is_moved_is_equal_and_profiles(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    ended = accelopt("migrate", "silu.py", "--json")
    assert ended.code == 0, ended.err
    assert ended.object["equal"] is True
    assert ended.object["unmoved"] == []
    assert ended.object["cases"][0]["case"] == "the profiled case"
    assert all(case["equal"] for case in ended.object["cases"])
    assert "neuronxcc" not in (home / "silu_nki.py").read_text()
    profile = accelopt("profile", "silu_nki.py", "--json")
    assert profile.object["kernels"][0]["correctness"]["status"] == "passed"
    assert accelopt("migrate", "silu.py").code == 2


def test_what_cannot_be_moved_at_all_is_told(accelopt: Command, home: Path) -> None:
    (home / "today.py").write_text(TODAY)
    assert accelopt("migrate", "today.py").code == 1
    (home / "silu.py").write_text(SILU[: SILU.index("def get_inputs")])
    ended = accelopt("migrate", "silu.py")
    assert ended.code == 2
    assert "accelopt problem" in ended.err
    assert not list(home.glob("*_nki.py"))


ONE_LINERS = """\
import neuronxcc.nki as nki; import numpy as np
import neuronxcc.nki.language as nl

@nki.jit
def k(a, add=True, bias=None):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a)); nl.store(out[0:64, :], nl.load(a[64:128, :]))
    if add: nl.store(out, nl.load(a) * 2.0)
    {more}
    return out

def get_inputs():
    return [np.ones((128, 64), np.float32)]

def reference(a):
    return 2 * a
"""


@pytest.mark.slow
def test_statements_of_one_line_stay_and_both_values_of_a_flag_are_compared(
    accelopt: Command, home: Path
) -> None:
    (home / "k.py").write_text(ONE_LINERS.format(more="pass"), newline="\r\n")
    ended = accelopt("migrate", "k.py")
    assert ended.code == 0, ended.err
    assert "the profiled case with add turned: equal" in ended.err
    text = (home / "k_nki.py").read_bytes().decode()
    assert "    if add: nisa.dma_copy(" in text
    assert text.count("nisa.dma_copy") == 3
    assert "import numpy as np\r\n" in text
    assert text.count("\n") == text.count("\r\n")


@pytest.mark.slow
def test_what_did_not_run_is_not_compared_and_what_does_not_run_is_a_draft(
    accelopt: Command, home: Path
) -> None:
    (home / "k.py").write_text(ONE_LINERS.format(more="if bias is not None: nl.store(out, nl.load(bias))"))
    ended = accelopt("migrate", "k.py")
    assert ended.code == 1
    assert "line 9 of the original did not run" in ended.err
    gather = "rows = nisa.iota(2 * nl.arange(4)[:, None], dtype=np.int32); nl.load(a[rows, nl.arange(64)[None, :]])"
    text = ONE_LINERS.format(more=gather).replace("import numpy", "import neuronxcc.nki.isa as nisa, numpy")
    (home / "draft.py").write_text(text)
    ended = accelopt("migrate", "draft.py", "--json")
    assert ended.code == 1
    assert (
        ended.object["path"] == str(home / "draft_nki.py.draft")
        or ended.object["path"] == "draft_nki.py.draft"
    )
    assert not (home / "draft_nki.py").exists()
    assert "# not moved: a tile as an index" in (home / "draft_nki.py.draft").read_text()


@pytest.mark.slow
def test_a_comparison_that_ends_early_says_nothing_against_the_new_text(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = LocalHost.run

    async def out_of_time(self: LocalHost, job: Job) -> AsyncGenerator[JobMessage, None]:
        if any(step.name == "nki.compare" for step in job.steps):
            raise JobFailedError("nki.compare", StepError("timeout", "It took longer than 60 s."))
        async with aclosing(run(self, job)) as messages:
            async for message in messages:
                yield message

    monkeypatch.setattr(LocalHost, "run", out_of_time)
    (home / "silu.py").write_text(SILU)
    ended = accelopt("migrate", "silu.py")
    assert ended.code == 1
    assert "Not compared: It took longer than 60 s." in ended.err
    assert "does not run" not in ended.err
    assert (home / "silu_nki.py").exists()
