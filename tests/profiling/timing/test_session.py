"""Timing on a device that only exists as a clock: warm-up, order, both timers, side streams, graphs, conditions."""

import contextlib
import itertools
import json
import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clockwork_device import SHORT, FakeDevice

from accelopt_profiling.quantity import Known
from accelopt_profiling.timing.conditions import Conditions, notes, parse_nvidia, parse_rocm, read_conditions
from accelopt_profiling.timing.launches import DeviceKernel, kernels_of, same_set
from accelopt_profiling.timing.measure import TimingPlan, settled
from accelopt_profiling.timing.session import BASELINE, CANDIDATE, Surroundings, time_calls
from accelopt_profiling.timing.statistics import compare, interleaved

TIMES = st.floats(0.1, 1e6)


@dataclass
class Launched:
    """A candidate of one kernel; ``us`` may depend on how often it was called."""

    device: FakeDevice
    us: object
    side: float = 0.0
    hooks: list = field(default_factory=list)
    given: list = field(default_factory=list)
    calls: int = 0

    def __call__(self, inputs):
        self.given.append(inputs)
        for timer in self.hooks:
            timer.enter({"name": "k"})
        self.device.launch(self.us(self.calls) if callable(self.us) else self.us, self.side)
        for timer in self.hooks:
            timer.exit({"name": "k"})
        self.calls += 1


def surroundings(
    device, *launched, trace=lambda call: None, conditions=lambda: Conditions(1980, 2619, 40, 300)
):
    @contextlib.contextmanager
    def hooked(timer):
        for one in launched:
            one.hooks.append(timer)
        yield
        for one in launched:
            one.hooks.remove(timer)

    return Surroundings(lambda: device.now, trace, hooked, conditions)


def turns(inputs):
    return itertools.cycle(inputs).__next__


def session(us, side=0.0, baseline=None, plan=SHORT, **around):
    device = FakeDevice()
    candidate = Launched(device, us, side)
    variants = {CANDIDATE: candidate}
    if baseline is not None:
        variants[BASELINE] = Launched(device, baseline)
    timing = time_calls(device, variants, turns([1, 2, 3]), plan, surroundings(device, candidate, **around))
    return timing, candidate, device


def noisy(us, share=0.02, seed=1):
    generator = random.Random(seed)
    return lambda call: us * (1 + share * generator.uniform(-1, 1))


def test_a_quiet_kernel_is_timed_cold_by_both_clocks_and_per_kernel():
    timing, candidate, device = session(noisy(50))
    assert timing.call.us == pytest.approx(50, rel=0.02)
    assert timing.call.low_us <= timing.call.us <= timing.call.high_us
    assert timing.call.known is Known.MEASURED
    assert timing.wall.us > timing.call.us
    assert timing.timings["k"].us == pytest.approx(50, rel=0.02)
    assert device.emptied >= candidate.calls - 3  # every timed run began with cold caches
    assert timing.runs == 20
    assert timing.notes == []


def test_inputs_take_turns():
    _, candidate, _ = session(10)
    assert candidate.given[:4] == [1, 2, 3, 1]


def test_warm_up_lasts_until_the_time_has_settled():
    timing, _, _ = session(lambda call: 500 if call < 10 else 50.0 + call % 2)
    assert 18 <= timing.warm_runs < 60
    assert timing.call.us == pytest.approx(50.5, abs=1)
    assert not any("settled" in note for note in timing.notes)


def test_warm_up_lasts_at_least_as_long_as_clocks_take_to_rise():
    plan = TimingPlan(least_warm=4, warm_seconds=0.02, most_warm=1000, most_rounds=20, seconds=0.0)
    timing, _, _ = session(lambda call: 500 if call < 18 else 50.0 + call % 2, plan=plan)
    assert 100 < timing.warm_runs < 400
    assert timing.call.us == pytest.approx(50.5, abs=1)


def test_a_time_that_never_settles_is_said():
    timing, _, _ = session(lambda call: 1.2**call)
    assert any("had not settled after 60 runs" in note for note in timing.notes)


def test_work_on_another_stream_is_waited_for_and_said():
    timing, _, _ = session(noisy(5), side=400)
    assert timing.call.us > 380
    assert any("until the device is idle" in note for note in timing.notes)


def test_a_time_that_never_varies_is_doubted():
    device = FakeDevice()
    timing = time_calls(device, {CANDIDATE: lambda arguments: None}, turns([1]), SHORT, surroundings(device))
    assert any("very same time" in note for note in timing.notes)


def test_kernels_out_of_graphs_are_seen_by_the_tracer_only():
    trace = [
        DeviceKernel("k", 49.0, 7),
        DeviceKernel("from_graph", 12.0, 9),
        DeviceKernel("from_graph", 13.0, 9),
    ]
    timing, _, _ = session(noisy(75), trace=lambda call: call() or trace)
    assert timing.timings["from_graph"].us == 25.0
    assert timing.timings["k"].us == pytest.approx(75, rel=0.02)  # events, not the tracer
    assert timing.names == ["from_graph", "k"]


def test_runs_that_execute_other_kernels_are_said():
    turns = iter(range(100))
    timing, _, _ = session(noisy(9), trace=lambda call: [DeviceKernel(f"k{next(turns)}", 1.0, 0)])
    assert any("same kernels" in note for note in timing.notes)


def test_launches_during_the_capture_of_a_graph_are_not_timed():
    device = FakeDevice()
    device.graph = True
    candidate = Launched(device, 10)
    timing = time_calls(device, {CANDIDATE: candidate}, turns([1]), SHORT, surroundings(device, candidate))
    assert timing.timings == {}
    assert timing.call.us == pytest.approx(10)


@pytest.mark.parametrize(
    ("ours", "theirs", "answer"),
    [
        (noisy(50), noisy(60, seed=2), "faster"),
        (noisy(60), noisy(50, seed=2), "slower"),
        (noisy(50, 0.05), noisy(50.2, 0.05, seed=2), "within noise"),
        (50.0, 50.3, "within noise"),
    ],
)
def test_a_and_b_in_one_session(ours, theirs, answer):
    timing, _, _ = session(ours, baseline=theirs)
    assert timing.comparison.answer == answer
    assert timing.comparison.pairs == 20


def test_a_clock_that_moved_is_said():
    moved = iter([Conditions(1980, 2619, 40, 300), Conditions(1410, 2619, 83, 700, "power cap")])
    timing, _, _ = session(noisy(50), conditions=lambda: next(moved))
    assert any("1980 to 1410 MHz" in note for note in timing.notes)
    assert any("power cap" in note for note in timing.notes)
    assert notes(None, None) == ["Clocks, temperature and power are not known."]


# -- pure functions -----------------------------------------------------------------------------------------------


@given(st.lists(TIMES, min_size=1, max_size=60), st.floats(1.001, 50))
def test_comparing_is_antisymmetric_and_finds_a_constant_factor(times, factor):
    slower = [time * factor for time in times]
    there, back = compare(times, slower), compare(slower, times)
    assert there.ratio == pytest.approx(factor)
    assert back.ratio == pytest.approx(1 / factor)
    assert {there.answer, back.answer} in ({"faster", "slower"}, {"within noise"})
    assert there.low <= there.ratio <= there.high


@given(st.lists(TIMES, min_size=1, max_size=60))
def test_a_kernel_is_within_the_noise_of_itself(times):
    assert compare(times, times).answer == "within noise"


@given(st.integers(0, 2**32), st.floats(1, 1000))
def test_noise_alone_is_hardly_ever_called_faster(seed, us):
    generator = random.Random(seed)
    a, b = ([us * generator.gauss(1, 0.005) for _ in range(30)] for _ in range(2))
    assert compare(a, b).answer == "within noise"


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([float("nan")], [1.0])])
def test_times_that_cannot_be_compared_are_refused(a, b):
    with pytest.raises(ValueError):
        compare(a, b)


@given(st.integers(1, 5), st.integers(1, 30), st.integers())
def test_every_round_has_every_variant_once(variants, rounds, seed):
    names = [f"v{i}" for i in range(variants)]
    order = interleaved(names, rounds, random.Random(seed))
    assert len(order) == variants * rounds
    for begin in range(0, len(order), variants):
        assert sorted(order[begin : begin + variants]) == names


def test_the_order_is_random():
    order = interleaved(["a", "b"], 200, random.Random(3))
    first = sum(order[i] == "a" for i in range(0, 400, 2))
    assert 70 < first < 130


@given(st.lists(TIMES, max_size=15))
def test_too_few_runs_have_not_settled(times):
    assert not settled(times)


@given(TIMES, st.integers(16, 60))
def test_equal_runs_have_settled_and_one_outlier_changes_nothing(us, number):
    times = [us] * number
    assert settled(times)
    times[-3] = 50 * us
    assert settled(times)


@given(TIMES.filter(lambda us: us > 10), st.integers(16, 60))
def test_a_steady_fall_has_not_settled(us, number):
    assert not settled([us * 1.05 ** (number - i) for i in range(number)])


def test_the_vendors_tools_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_conditions() is None
    _program(tmp_path / "rocm-smi", ROCM)
    assert read_conditions() == Conditions(2100.0, 1300.0, 45.0, 212.0)
    _program(tmp_path / "nvidia-smi", "1755, 2619, 61, 312.45, 0x0000000000000004")
    assert read_conditions() == Conditions(1755.0, 2619.0, 61.0, 312.45, "power cap")
    (tmp_path / "nvidia-smi").write_text(
        '#!/bin/sh\ncase "$*" in *GPU-2*throttle*) printf "1000, 2619, 61, 300, 0x40\\n";; *) exit 2;; esac\n'
    )
    assert read_conditions("GPU-2") == Conditions(1000.0, 2619.0, 61.0, 300.0, "temperature"), (
        "an older driver"
    )
    assert read_conditions("GPU-3") is None


ROCM = (
    '{"card0": {"Temperature (Sensor edge) (C)": "45.0", "sclk clock speed:": "(2100Mhz)",'
    ' "mclk clock speed:": "(1300Mhz)", "Average Graphics Package Power (W)": "212.0"}}'
)


EIGHT = json.dumps({
    "system": {"Driver version": "6.7"},
    **{
        f"card{n}": {"PCI Bus": f"0000:{0xC1 + n:02X}:00.0", "sclk clock speed:": f"({2000 + n}Mhz)"} for n in range(8)
    },
})  # fmt: skip


@pytest.mark.parametrize(
    ("address", "core"),
    [("0000:c3:00.0", 2002.0), ("0000:c8:00.0", 2007.0), ("0000:ff:00.0", None), (None, None), ("", None)],
)
def test_of_several_cards_the_one_that_is_meant_is_read(address, core):
    conditions = parse_rocm(EIGHT, address)
    assert (conditions.core_mhz if conditions else None) == core


@given(st.text())
def test_whatever_a_tool_says_is_survived(text):
    parse_nvidia(text)
    parse_rocm(text)


def test_what_a_tool_does_not_know_is_none():
    assert parse_nvidia("[N/A], 2619, 40, [Not Supported], [N/A]") == Conditions(None, 2619.0, 40.0, None)


def _program(path, says):
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{says}'\n")
    path.chmod(0o755)


def test_kernels_among_the_tracers_events():
    def event(name, kind="DeviceType.CUDA", ns=1500, stream=7):
        return SimpleNamespace(
            name=lambda: name,
            device_type=lambda: kind,
            duration_ns=lambda: ns,
            device_resource_id=lambda: stream,
            is_user_annotation=lambda: name.startswith("my "),
        )

    events = [
        event("k"),
        event("Memcpy HtoD"),
        event("Memset (Device)"),
        event("my annotation of a region"),
        event("Stream Sync"),
        event("aten::add", "DeviceType.CPU"),
    ]
    assert kernels_of(events) == [DeviceKernel("k", 1.5, 7)]
    assert same_set([kernels_of(events), kernels_of(events)])
    assert not same_set([kernels_of(events), []])
