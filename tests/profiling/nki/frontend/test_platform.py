"""A kernel that names its target: Beta 1 is told of another one, today's decorator refuses the option."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_current_source import TRN2
from support.nki_rule_cases import loaded

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import emulated

KERNEL = """
import {package} as nki
import {package}.language as nl

@nki.jit{options}
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out
"""
X = np.ones((128, 64), np.float32)


def codes(package: str, options: str) -> list[str]:
    with emulated("full", limits=TRN2, sdk=False) as run:
        loaded(KERNEL.format(package=package, options=options)).kernel(X)
    return [f.code for m in run.machines for f in m.findings]


@pytest.mark.parametrize(("platform", "told"), [("trn2", []), ("gen3", []), ("trn1", ["other-target"])])
def test_beta_1_is_told_of_another_target(platform: str, told: list[str]) -> None:
    assert codes("neuronxcc.nki", f"(platform_target='{platform}')") == told


@pytest.mark.parametrize(("platform", "told"), [("trn2", []), ("trn3", ["other-target"])])
def test_the_environment_names_a_target(
    platform: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", platform)
    assert codes("nki", "") == told


def test_todays_decorator_takes_none() -> None:
    with pytest.raises(KernelFaultError, match="NEURON_PLATFORM_TARGET_OVERRIDE names the target"):
        codes("nki", "(platform_target='trn2')")
