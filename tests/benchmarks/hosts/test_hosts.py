"""``accelopt bench hosts``: its parts, with the measurements standing in."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from accelopt_benchmarks.checkout import EXAMPLES
from accelopt_benchmarks.gate import check_time as gate_time
from accelopt_benchmarks.hosts import commands
from accelopt_benchmarks.hosts import overhead as hosts
from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.gate.verdict import Reason, Verdict


@pytest.fixture
def measured(monkeypatch):
    """What was measured, in order; the killed workers miss their goal."""
    done = []

    def standing_in(name, met):
        async def measure(*_):
            done.append(name)
            return [GoalResult(name, "<= 1", 0.5, "s", met)]

        return measure

    monkeypatch.setattr(hosts, "overhead", standing_in("overhead", True))
    monkeypatch.setattr(hosts, "killed_workers", standing_in("killed", False))
    monkeypatch.setattr(gate_time, "gate_time", standing_in("gate", True))
    return done


@pytest.mark.parametrize(
    ("arguments", "parts", "code"),
    [
        ([], ["overhead", "killed", "gate"], 1),
        (["--part", "gate", "--part", "overhead"], ["overhead", "gate"], 0),
        (["--part", "killed"], ["killed"], 1),
    ],
)
def test_parts_are_measured_alone_or_together(measured, arguments, parts, code):
    result = CliRunner().invoke(
        commands.hosts, [*arguments, "--json"], standalone_mode=False, help_option_names=["-h", "--help"]
    )
    assert (measured, result.return_value) == (parts, code)
    assert [row["what"] for row in json.loads(result.stdout)["rows"]] == parts


@pytest.mark.parametrize(("accepted", "value"), [(True, 3.0), (False, None)])
async def test_the_gates_time_is_without_the_reference(monkeypatch, tmp_path, accepted, value):
    requests = []
    clock = iter(range(0, 1000, 4))

    async def check(host, request):
        requests.append(request)
        reasons = [] if accepted else [Reason("wrong-result", "It is wrong.")]
        return Verdict(accepted, reasons, [], "r"), SimpleNamespace(body={"steps": {"gate.reference": 1.0}})

    monkeypatch.setattr(gate_time, "check", check)
    monkeypatch.setattr(gate_time.time, "perf_counter", lambda: float(next(clock)))
    rows = await gate_time.gate_time(EXAMPLES, 2, ["nki_silu.py"])
    names = ["nki_silu.py", "nki_silu_half_the_rows.py"]
    assert [(row.what, row.value) for row in rows] == [(f"gate time, {name}", value) for name in names]
    for request in requests:
        (name,) = set(names) & set(request.candidate.files)
        texts = (request.candidate.files[name], request.original.files[name])
        assert texts[0] != texts[1], "the original is run as well"
        assert ("m=2048" in texts[0]) == (name == names[1])
