"""A device that is the emulation, and a host whose steps run in this process, for the parts of ``bench device``."""

from __future__ import annotations

import sys
import time

import pytest

from accelopt_benchmarks.device.session import DeviceSession
from accelopt_profiling.hosts.host import HostFacts, JobFailedError, JobMessage
from accelopt_profiling.plain import to_plain
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.job_folders import write_sources
from accelopt_profiling.worker.steps import find_step


class WallDevice:
    """The device of the emulation: what runs on it runs in this process."""

    name, identifier = "NVIDIA H100 80GB HBM3", None

    def event(self):
        class Event:
            def record(self):
                self.at = time.perf_counter()

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return 1e3 * (end.at - self.at)

        return Event()

    def synchronize(self):
        pass

    def empty_caches(self):
        pass

    def capturing(self):
        return False


class InProcess:
    """A host that runs steps in this process, in the emulation's scope."""

    name, remote = "local", True

    def __init__(self, folder):
        self.folder, self.jobs = folder, 0

    async def facts(self):
        return HostFacts("local", devices=[{"name": WallDevice.name, "driver_version": "1"}])

    async def run(self, job):
        from accelopt_profiling.triton.capture.install import emulated
        from accelopt_profiling.triton.interpreter.work import SECOND
        from accelopt_profiling.worker.usercode import enter_sources

        self.jobs += 1
        folder = self.folder / str(self.jobs)
        write_sources(folder / "src", job.source.files)
        context = StepContext(folder, job.source, lambda value: None)
        for one in job.steps:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.path", [*sys.path])
                patch.setattr("sys.meta_path", [*sys.meta_path])
                enter_sources(context)
                try:
                    if one.name == "profile":
                        value = find_step(one.name, one.params)(context)
                    else:
                        with emulated("h100", whole_work=60 * SECOND):
                            value = find_step(one.name, one.params)(context)
                except StepFailedError as failed:
                    raise JobFailedError(one.name, failed.error) from None
            yield JobMessage(one.name, to_plain(value), True)

    async def close(self):
        pass


def emulated_place(host):
    listed = HostFacts("local", "3.11", devices=[{"name": WallDevice.name, "driver_version": "1"}])
    return DeviceSession(host, listed, time.monotonic() + 300, WallDevice.name, "h100", True)
