"""Profile the kernels of a file on a host: the editor, the command line and the search call ``profile``."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelopt_profiling.hosts.host import Host, HostFacts, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import (
    Job,
    JobFiles,
    Limits,
    MeasureOptions,
    ProfileParams,
    Runtime,
    Step,
    StepError,
)
from accelopt_profiling.kernels import Kernel, KernelSource, find_kernels
from accelopt_profiling.measurement import Dialect, FileMeasurement, KernelMeasurement
from accelopt_profiling.measurement_builder import MeasurementBuilder
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.discovery.imports import with_imports
from accelopt_profiling.problems.inference.inferred import (
    InferredProblem,
    inference_key,
    lacks_problem,
    to_be_inferred,
    with_problem,
)
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.timing.time_step import TimeParams
from accelopt_profiling.timing.timing_job import timing_steps
from accelopt_profiling.waiting import interruptible

RUNTIMES: dict[Dialect, Runtime] = {"nki": "numpy", "triton": "torch"}


@dataclass(frozen=True)
class ProfileRequest:
    """An examined kernel file to profile, for one target per dialect.

    ``kernels`` restricts to kernels of those names. ``input_specs`` remembers the inputs' shapes and dtypes by the
    problem's content hash between requests, so that first numbers need not wait for the inputs to be drawn;
    ``inferred`` remembers the problems that were inferred for files without one. ``background`` jobs run at low
    priority. ``source`` are the files of the job where they do not lie on this machine.
    """

    file: KernelSource
    targets: Mapping[Dialect, str]
    kernels: Sequence[str] | None = None
    limits: Limits = Limits()
    options: MeasureOptions = field(default_factory=MeasureOptions)
    background: bool = False
    input_specs: MutableMapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    inferred: MutableMapping[str, InferredProblem] = field(default_factory=dict)
    source: JobFiles | None = None

    @property
    def wanted(self) -> list[Kernel]:
        """The kernels of the file that are to be profiled."""
        return [k for k in self.file.launched if self.kernels is None or k.name in self.kernels]


async def profile(host: Host, request: ProfileRequest) -> AsyncGenerator[FileMeasurement, None]:
    """Profile a file's kernels on ``host``.

    Yield the measurement as it grows, the last one ``complete``.

    What is wrong with the file, its problem or its run becomes findings. Closing the generator kills the work.

    Raises:
        HostUnreachableError: the host cannot be reached or was lost.
    """
    request = _with_inference(request)
    builder = MeasurementBuilder(request.file, request.wanted, request.targets, host.name)
    if not request.wanted or request.file.problem.ref is None:
        yield builder.measurement(complete=True)
        return
    by_dialect: dict[Dialect, list[Kernel]] = {}
    for kernel in request.wanted:
        by_dialect.setdefault(kernel.dialect, []).append(kernel)
    source = request.source
    if source is None:
        source = await interruptible(job_files, request.file, ship_imports=host.remote)
    imports = request.file.imports_by_name if request.source is None else None
    whole = asyncio.create_task(interruptible(with_imports, source, imports))  # as the files are now
    params = {dialect: _params(request, dialect, group, host.name) for dialect, group in by_dialect.items()}
    for dialect, group in by_dialect.items():
        job = _job(request, source, params[dialect], await host.facts())
        try:
            async with contextlib.aclosing(host.run(job)) as messages:
                async for message in messages:
                    try:
                        _remember_inputs(request, message.value)
                        _remember_inferred(request, message.value)
                        changed = builder.add(message.step, message.value)
                    except ValueError as error:
                        why = f"What {host.name} answered to the step {message.step} cannot be read: {error}."
                        raise JobFailedError(message.step, StepError("host-failed", why)) from error
                    if changed:
                        yield builder.measurement()
        except JobFailedError as failed:
            builder.fail(failed.step, failed.error, group)
    builder.seal(*_evidence(request, await whole, params))
    yield builder.measurement(complete=True)


def _remember_inputs(request: ProfileRequest, value: Any) -> None:
    ref = request.file.problem.ref
    if ref is not None and isinstance(value, dict) and isinstance(value.get("input_specs"), list):
        request.input_specs[ref.content_hash] = value["input_specs"]


def _with_inference(request: ProfileRequest) -> ProfileRequest:
    """Return the request with the problem that was inferred for its file, or is to be; files without a problem and
    with kernels of one dialect only."""
    file = request.file
    if not lacks_problem(file, request.wanted):
        return request
    problem = request.inferred.get(inference_key(file))
    return replace(request, file=with_problem(file, problem) if problem else to_be_inferred(file))


def _remember_inferred(request: ProfileRequest, value: Any) -> None:
    if isinstance(value, dict) and "inferred" in value:
        request.inferred[inference_key(request.file)] = from_plain(InferredProblem, value["inferred"])


def _evidence(
    request: ProfileRequest, source: JobFiles, params: dict[Dialect, ProfileParams]
) -> tuple[JobFiles, dict[Dialect, ProfileParams]]:
    """Return the job's source and parameters with the problem that was inferred meanwhile, if one was."""
    file, inferred = request.file, request.inferred.get(inference_key(request.file))
    if file.problem.ref is None or not layout_of(file.problem.ref).inferred or inferred is None:
        return source, params
    problem = with_problem(file, inferred).problem
    whole = replace(source, files={**source.files, **problem.files})
    return whole, {dialect: replace(old, problem=problem.ref) for dialect, old in params.items()}


def request_of(receipt: Receipt, limits: Limits) -> tuple[ProfileRequest, KernelMeasurement]:
    """Return the profile that ``receipt`` is the evidence of, and what it measured.

    Raises:
        ValueError, KeyError: the receipt does not hold what is needed (an older one does not say how it was run).
    """
    source, params, measured = (
        from_plain(JobFiles, receipt.body["source"]),
        from_plain(ProfileParams, receipt.body["params"]),
        from_plain(KernelMeasurement, receipt.body["measurement"]),
    )
    root = Path("/receipt")  # nothing is read from there
    for name in source.files:
        if not Path(os.path.normpath(root / name)).is_relative_to(root):
            raise ValueError(f"its path {name!r} leaves its folder")
    problem = ProblemLookup(params.problem, root=root)
    file = replace(find_kernels(source.files[source.kernel]), path=root / source.kernel, problem=problem)
    request = ProfileRequest(
        file,
        {measured.dialect: params.target},
        kernels=[measured.name],
        limits=limits,
        options=params.options,
        source=source,
    )
    return request, measured


def _params(request: ProfileRequest, dialect: Dialect, kernels: list[Kernel], host: str) -> ProfileParams:
    ref = request.file.problem.ref
    assert ref is not None
    return ProfileParams(
        kernels, ref, target=request.targets[dialect], host=host, input_specs=request.input_specs.get(ref.content_hash),
        options=request.options,
    )  # fmt: skip


def _job(request: ProfileRequest, source: JobFiles, params: ProfileParams, host: HostFacts) -> Job:
    ref, kernels, dialect = params.problem, params.kernels, params.kernels[0].dialect
    assert ref is not None
    limits = request.limits
    layout = layout_of(ref)
    if layout.inferred:
        limits = replace(limits, seconds=2 * limits.seconds)  # its tries come first
    steps = [Step("profile", RUNTIMES[dialect], to_plain(params), limits)]
    if dialect == "triton" and host.devices and not layout.runs_itself and not layout.inferred:
        steps += timing_steps(TimeParams(kernels, ref), request.limits)
    if dialect == "nki" and host.resources.get("neuron_devices") and not layout.runs_itself:
        # here, since it brings NumPy, which an editor's start need not wait for
        from accelopt_profiling.trainium.step import DeviceParams

        on_device = DeviceParams(kernels, ref, params.target, host.name)
        steps.append(Step("trainium", "numpy", to_plain(on_device), request.limits, device=True))
    return Job(source, steps, request.background)
