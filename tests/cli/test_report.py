from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import FASTER, SILU, WRONG

from accelopt_agent.search.history import PastRun, PastStep
from accelopt_lsp.cli.report import page
from accelopt_lsp.service.host_profiles import HostProfiles
from accelopt_lsp.settings.load import Settings
from accelopt_memory.records import Run
from accelopt_profiling.hosts.host import Host, HostUnreachableError
from accelopt_profiling.measurement import (
    Correctness,
    FileMeasurement,
    Finding,
    KernelMeasurement,
    Latency,
    LineCost,
)
from accelopt_profiling.quantity import Known, compiled

HOSTILE = "<script>alert(1)</script>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)
        assert not {"src", "href", "onclick"} & {name for name, _ in attrs}, "a report loads nothing"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags


@pytest.mark.slow
def test_a_report_tells_what_profile_tells(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    (home / "wrong.py").write_text(WRONG)
    ended = accelopt("report", "silu.py", "wrong.py", "-o", "out.html", "--json")
    assert ended.code == 1, "one of the results is wrong"
    assert ended.object == {"path": "out.html", "files": 2, "kernels": 2}
    text = read((home / "out.html").read_text()).text
    assert "est. " in text
    assert "Result: passed" in text
    assert "Result: failed" in text
    assert "nl.load(x[i * 128 + rows" in text
    unwritable = accelopt("report", "silu.py", "-o", "absent/out.html")
    assert unwritable.code == 2


def test_nothing_of_a_kernel_becomes_markup() -> None:
    finding = Finding(HOSTILE, 1, "error", HOSTILE)
    kernel = KernelMeasurement(
        HOSTILE, 1, "nki", HOSTILE, HOSTILE, Correctness("failed", HOSTILE),
        Latency(2.0, 1.0, 3.0, Known.ESTIMATED), 12.0, HOSTILE, {HOSTILE: compiled(3.0, HOSTILE)},
        [LineCost(1, HOSTILE, 0.5), LineCost(99, "beyond the end", None)], [finding],
    )  # fmt: skip
    tags = read(page([FileMeasurement(HOSTILE, [kernel], [finding])], [HOSTILE]))
    assert "script" not in tags.seen
    assert tags.text.count("alert(1)") >= 10


def test_the_last_search_of_a_kernel_is_in_its_report() -> None:
    kernel = KernelMeasurement("silu", 1, "nki", "trn1", content_hash="hash")
    steps = (
        PastStep(1, "", "took silu as it was", latency=Latency(9.0, 8.0, 10.0, Known.ESTIMATED)),
        PastStep(
            2, "", "tried it", "faster", latency=Latency(5.0, 4.0, 6.0, Known.ESTIMATED), path="Hoist it."
        ),
    )
    other = PastRun(Run("r", "/work/k.py", "other", "hash", "trn1"), steps)
    of_it = PastRun(Run("r", "/work/k.py", "silu", "hash", "trn1"), steps)
    file = FileMeasurement("/work/k.py", [kernel], complete=True)
    assert "Hoist it" in read(page([file], ["text"], [of_it])).text
    assert "Hoist it" not in page([file], ["text"], [other])
    assert "Hoist it" not in page([replace(file, file="/work/j.py")], ["text"], [of_it])


def test_a_file_without_kernels_says_so() -> None:
    assert "no Triton or NKI kernel" in read(page([FileMeasurement("k.py")], [""])).text


@pytest.mark.parametrize(
    "command",
    ["report k.py", "profile k.py", "optimize k.py --no-model", "learn k.py fast.py", "verify k.py --problem k.py",
     "problem bare.py", "watch . --once"],
)  # fmt: skip
def test_each_file_is_run_on_the_host_of_its_project(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The working folder says nothing about files of other projects, nor does the folder that is watched."""
    hosts: list[str] = []

    async def connected(self: HostProfiles, settings: Settings, name: str | None = None) -> Host:
        hosts.append(settings.host)
        raise HostUnreachableError(f"{settings.host} is out of reach.")

    monkeypatch.setattr(HostProfiles, "connected", connected)
    (home / "user.toml").write_text('[hosts.box]\nssh = "box.example"\n')
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    (project / "k.py").write_text(SILU)
    (project / "fast.py").write_text(FASTER)
    (project / "bare.py").write_text(SILU.partition("def get_inputs")[0])
    (project / "accelopt.toml").write_text('host = "box"\n')
    assert accelopt("trust", project, "--yes").code == 0
    ended = accelopt(*(project / word if word.endswith(".py") else word for word in command.split()))
    assert (ended.code, hosts) == (3, ["box"])
    assert "box is out of reach" in ended.err
