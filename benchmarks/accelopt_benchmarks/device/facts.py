"""Measures part ``facts``: compares static registers, spills, shared memory and bytes with the driver's and ncu's."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import Any

from accelopt_benchmarks.device import ncu
from accelopt_benchmarks.device.corpus import CorpusKernel, kernels
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt
from accelopt_benchmarks.device.programs import FACTS, answer_of, environment, program
from accelopt_benchmarks.device.session import DeviceSession
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.hosts.host import HostFacts
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.profiler import profile

_HEADER = ["kernel", "registers: told", "driver", "ncu", "spills: told (bytes)", "driver (words)", "shared: told",
           "driver", "DRAM bytes: estimated", "ncu", "ratio", "sectors x 32: requested", "ncu"]  # fmt: skip


class _Without:
    """The host, said to have no device: what is told then is known without one."""

    def __init__(self, place: DeviceSession) -> None:
        self._place, self.name, self.remote = place, "local", False

    async def facts(self) -> HostFacts:
        return dataclasses.replace(self._place.facts, devices=[])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place.host, name)


async def facts(place: DeviceSession) -> PartResult:
    """Profile every kernel as if there were no device, then ask the driver and ncu about one call of it."""
    table, lacks = Table("Static facts, the driver's and ncu's", list(_HEADER)), list(place.trouble)
    same = compared = 0
    ratios: list[float] = []
    for subject in kernels():
        told = await attempt(_told(place, subject), place.left(120))
        if isinstance(told, str):
            lacks.append(f"{subject.name}: {told}")
            continue
        driver: dict[str, Any] | str = "no device"
        counted: list[ncu.Counted] | str = "no device"
        if place.usable:
            driver = await attempt(asyncio.to_thread(driver_facts, subject), place.left(90))
            names = [kernel.name for kernel in told]
            counted = await attempt(asyncio.to_thread(_counted, subject, names), place.left(150))
            lacks += [f"{subject.name}: {said}" for said in (driver, counted) if isinstance(said, str)]
        for kernel in told:
            own = driver.get(kernel.name, {}) if isinstance(driver, dict) else {}
            launches = counted if isinstance(counted, list) else []
            launch = next((c for c in launches if c.kernel.startswith(kernel.name)), None)
            table.rows.append(row(subject.name, kernel, own, launch))
            registers = _value(kernel, "registers")
            if own and registers is not None:
                compared += 1
                same += registers == own["registers"]
            estimate = _value(kernel, "dram_bytes")
            if launch is not None and launch.dram_bytes and estimate:
                ratios.append(estimate / launch.dram_bytes)
    if compared:
        rows = [
            GoalResult(
                "registers as told without a device", "all", same, "", same == compared, f"of {compared}"
            )
        ]
    else:
        rows = [not_measured("registers as told without a device", "all", "the driver told nothing")]
    if ratios:
        far = max(max(r, 1 / r) for r in ratios)
        rows.append(
            GoalResult(
                "DRAM bytes off by at most", "<= 1.5x", far, "x", far <= 1.5, f"over {len(ratios)} kernels"
            )
        )
    else:
        rows.append(not_measured("DRAM bytes off by at most", "<= 1.5x", "ncu counted nothing"))
    return PartResult("facts", rows, [table], lacks)


async def _told(place: DeviceSession, subject: CorpusKernel) -> list[KernelMeasurement]:
    found: list[KernelMeasurement] = []
    async with contextlib.aclosing(profile(_Without(place), subject.request(place.target))) as measurements:
        async for measurement in measurements:
            found = measurement.kernels
    return found


def driver_facts(subject: CorpusKernel) -> dict[str, Any]:
    """Return, by kernel, what the driver says after one call in a process of its own. Raises ValueError: that
    failed."""
    return answer_of(FACTS, program("run_once", subject.path, subject.problem), seconds=90)


def _counted(subject: CorpusKernel, names: list[str]) -> list[ncu.Counted]:
    return ncu.count(names, program("run_once", subject.path, subject.problem), environment())


def _value(kernel: KernelMeasurement, name: str) -> float | None:
    quantity = kernel.quantities.get(name)
    return quantity.value if quantity is not None else None


def row(
    name: str, kernel: KernelMeasurement, driver: dict[str, Any], counted: ncu.Counted | None
) -> list[str]:
    """Return the cells of a kernel in the order of the header, "-" for what is not known. A sector has 32
    bytes."""
    values = counted.values if counted is not None else {}
    dram, estimate = counted.dram_bytes if counted is not None else None, _value(kernel, "dram_bytes")
    ratio = f"{estimate / dram:.2f}" if dram and estimate else "-"
    sectors = _value(kernel, "sectors")
    return [
        name, _shown(_value(kernel, "registers")), _shown(driver.get("registers")), _shown(values.get("registers")),
        _shown(_value(kernel, "spills")), _shown(driver.get("spills")), _shown(_value(kernel, "shared_memory")),
        _shown(driver.get("shared")), _shown(estimate), _shown(dram), ratio,
        _shown(32 * sectors if sectors is not None else None),
        _shown(32 * values["sectors"] if "sectors" in values else None),
    ]  # fmt: skip


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
