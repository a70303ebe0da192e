"""What a host has for Trainium, what its profiler's summaries say, and what a report about it holds."""

import json
import os
import sys
import zipfile
from dataclasses import replace

import pytest
from support.trainium_stand_ins import BETA1_KERNEL, CURRENT_KERNEL, RECORDED, neuron_host

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.trainium.beta1 import Beta1Device
from accelopt_profiling.trainium.bundle import environment as told_environment
from accelopt_profiling.trainium.bundle import write_bundle
from accelopt_profiling.trainium.current import CurrentDevice
from accelopt_profiling.trainium.summary import bound, quantities, read_summary
from accelopt_profiling.trainium.toolchain import find_toolchain, generation_of, open_device
from accelopt_profiling.trainium.tools import DeviceError


@pytest.fixture
def host(tmp_path):
    return neuron_host(tmp_path)


# Reading summaries


def test_a_summary_is_read_whatever_comes_before_it_and_unknown_fields_are_kept():
    text = (RECORDED / "summary_7_4.json").read_text()
    summary = read_summary(f"WARNING: deprecated, use neuron-explorer\n{text}", "neuron-profile")
    assert summary.fields["some_new_field"] == {"nested": [1, 2]}
    assert bound(summary) == "memory"
    assert quantities(summary)["memory_bandwidth_utilisation"].value == 0.43
    flat = read_summary(json.dumps({"summary": [{"total_time": 2e-3}], "instruction": []}), "neuron-profile")
    assert flat.seconds == 2e-3
    assert quantities(flat) == {}
    assert bound(flat) is None


# Choosing by what the host has


def found_on(host, modules, tmp_path, devices=1, **environment):
    folder = tmp_path / "dev"
    folder.mkdir()
    for number in range(devices):
        (folder / f"neuron{number}").touch()
    return find_toolchain(
        {**host.environment, **environment}, importable=lambda m: m in modules, device_folder=folder
    )


def test_the_device_follows_from_what_is_installed(host, tmp_path):
    host.profiler()
    host.explorer()
    assert isinstance(open_device(found_on(host, {"neuronxcc.nki"}, tmp_path)), Beta1Device)
    toolchain = replace(found_on(host, {"nki.isa"}, host.folder / "bin"), nrtpy_python="/venv/bin/python")
    device = open_device(toolchain)
    assert isinstance(device, CurrentDevice)
    assert device.nrtpy_python == "/venv/bin/python"


@pytest.mark.parametrize(
    ("modules", "generation", "expected"),
    [
        ({"neuronxcc.nki"}, "beta1", Beta1Device),
        ({"nki.isa"}, "current", CurrentDevice),
        ({"neuronxcc.nki", "nki.isa"}, "current", CurrentDevice),
        ({"neuronxcc.nki", "nki.isa"}, "beta1", "mixed-toolchain"),
        ({"nki.isa"}, "beta1", "no-toolchain"),
        ({"neuronxcc.nki"}, "current", "no-toolchain"),
    ],
)
def test_the_device_follows_the_dialect_of_the_kernel(host, tmp_path, modules, generation, expected):
    host.profiler()
    host.explorer()
    toolchain = found_on(host, modules, tmp_path)
    if isinstance(expected, type):
        assert isinstance(open_device(toolchain, generation), expected)
    else:
        with pytest.raises(DeviceError) as caught:
            open_device(toolchain, generation)
        assert caught.value.code == expected
        assert caught.value.fix


@pytest.mark.parametrize(("text", "generation"), [(BETA1_KERNEL, "beta1"), (CURRENT_KERNEL, "current")])
def test_a_kernel_names_its_dialect_by_its_decorator(text, generation):
    assert generation_of(find_kernels(text).kernels[0]) == generation


@pytest.mark.parametrize(
    ("modules", "devices", "code"),
    [
        ({"nki.isa"}, 0, "driver-missing"),
        (set(), 1, "no-toolchain"),
        ({"neuronxcc.nki"}, 1, "missing-tool"),
        ({"nki.isa"}, 1, "missing-tool"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_run(host, tmp_path, modules, devices, code):
    with pytest.raises(DeviceError) as caught:
        open_device(found_on(host, modules, tmp_path, devices))
    assert caught.value.code == code
    assert caught.value.fix


# The bundle


def test_the_bundle_holds_what_a_report_needs_and_no_secret(host, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    host.program(
        "neuron-ls", f"#!{sys.executable}\nimport sys\nassert sys.argv[1:] == ['--json-output']\nprint('[]')"
    )
    host.profiler()
    secrets = {
        "NEURON_API_KEY": "s3cret",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "ACCELOPT_MODEL_URL": "https://u:s3cret@h",
    }
    toolchain = found_on(host, {"nki.isa"}, tmp_path, NEURON_RT_NUM_CORES="2", **secrets)
    path = tmp_path / "bundle.zip"
    names = write_bundle(path, toolchain, [{"name": "Python"}], tmp_path)
    archive = zipfile.ZipFile(path)
    texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(names) == set(texts) >= {"about.json", "doctor.json", "environment.json", "neuron-ls.txt"}
    assert "s3cret" not in "".join(texts.values())
    assert str(tmp_path) not in "".join(texts.values())
    assert json.loads(texts["environment.json"])["NEURON_RT_NUM_CORES"] == "2"
    assert json.loads(texts["about.json"])["adapters"] == "not yet run on hardware"
    assert "unexpected arguments" in texts["neuron-profile.txt"]  # a tool that fails is told of, not fatal


def test_no_variable_that_is_not_about_neuron_is_told():
    assert "PATH" not in told_environment(dict(os.environ))
