"""Evaluates versions on a host: costs from the profiler, verdicts from the gate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from accelopt_agent.evaluation.evaluators import CostUnavailableError, EvaluatorLostError
from accelopt_agent.evaluation.whole_time import launch_count, same_amount, together_known, whole
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.speedup import direction
from accelopt_agent.syntax.kernel_change import only_kernel_changed
from accelopt_profiling.gate.gate import check
from accelopt_profiling.gate.request import GateRequest, Tell, untold
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import Host, HostUnreachableError, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Extent, MeasureOptions
from accelopt_profiling.kernels import KernelSource, find_kernels
from accelopt_profiling.measurement import (
    NO_TIME,
    OWN_FAULTS,
    Dialect,
    FileMeasurement,
    Finding,
    KernelMeasurement,
)
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.timing.statistics import TimeComparison
from accelopt_profiling.timing.timing_job import time_on
from accelopt_profiling.waiting import interruptible


class HostCost:
    """Profiles the original completely, and candidates only as far as their time needs.

    The time of a candidate is found on stand-ins for the inputs where the original's does not depend on their values,
    and on the problem's inputs elsewhere. Where a candidate changes more than its kernel in a file of several, the sum
    of all that is launched is its time. It is stated for the same launch of the run as the original's. With
    ``all_kernels`` the original's other kernels are profiled too where one was asked for. An original that is
    ``checked`` is profiled as its candidates are.
    """

    def __init__(self, host: Host, request: OptimizeRequest, all_kernels: bool = False) -> None:
        self._host, self._request, self._all_kernels = host, request, all_kernels
        self._specs: dict[str, list[dict[str, Any]]] = {}
        self._extents: dict[str, Extent] = {}
        self._launches: dict[str, tuple[int, int]] = {}  # of which of how many the original's time is
        self._slow: dict[str, tuple[str, ...]] = {}  # configurations of the original's autotuner
        self._originals: dict[str, KernelMeasurement] = {}  # measured as candidates are
        self._original_launches = False  # known once the original was measured
        self._rests: dict[
            str, list[KernelMeasurement]
        ] = {}  # of the original, by the kernel that is not in them

    async def baseline(self) -> FileMeasurement:
        request = self._request
        extent: Extent = "cost" if request.checked else "all"
        if request.kernel is not None or len(request.inferred) < 2:
            names = None if request.kernel is None or self._all_kernels else [request.kernel]
            last = await self._profiled(request.text, request.kernel, names, extent)
        else:
            last = await self._profiled_apart(extent)
        if last is None:
            raise EvaluatorLostError(
                f"{self._host.name} gave no measurement of {request.path.name}; look at its log."
            )
        self._original_launches = any(k.launchable.status == "yes" for k in last.kernels)
        self._originals = {k.name: k for k in last.kernels if k.latency.us is not None}
        if request.checked:
            return last
        kernel_names = {request.kernel} if request.kernel is not None else {k.name for k in last.kernels}
        return replace(
            last, kernels=[await self._comparable(k) if k.name in kernel_names else k for k in last.kernels]
        )

    async def _comparable(self, measured: KernelMeasurement) -> KernelMeasurement:
        """Measure the original again in the way of a candidate: with known shapes and fewer samples its latency and
        counters may move a little, and a candidate must not gain or lose by that. Where they move more than noise
        does, candidates are measured on the problem's inputs."""
        if measured.latency.us is None:
            return measured
        again = await self._cost_or_none(measured.name)
        if again is None or direction(measured.latency, again.latency, measured.target) != "same":
            self._extents[measured.name] = "cost on inputs"
            again = await self._cost_or_none(measured.name)
        if again is None:
            return measured
        self._originals[measured.name] = again
        self._slow[measured.name] = again.slow_configurations
        if again.launch is not None and (count := again.quantities.get("launches")) is not None:
            self._launches[measured.name] = again.launch, int(count.value or 0)
        return replace(
            measured,
            latency=again.latency,
            quantities=again.quantities,
            launches=again.launches,
            launch=again.launch,
        )

    async def _cost_or_none(self, kernel: str) -> KernelMeasurement | None:
        try:
            return await self.cost(self._request.text, kernel)
        except CostUnavailableError:
            return None

    def way(self, kernel: str) -> Any:
        return [self._extents.get(kernel), self._launches.get(kernel), self._slow.get(kernel)]

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        if not await interruptible(self._alone, text, kernel):
            return await self._whole_cost(text, kernel)
        return await self._kernel_cost(text, kernel)

    def _alone(self, text: str, kernel: str) -> bool:
        """Return whether the time of ``kernel`` says all about ``text``: nothing else that is launched changed."""
        try:
            names = {k.name for t in (self._request.text, text) for k in find_kernels(t).launched}
            return names == {kernel} or only_kernel_changed(self._request.text, text, kernel)
        except (SyntaxError, ValueError, RecursionError):
            return True

    async def _whole_cost(self, text: str, kernel: str) -> KernelMeasurement:
        """Measure all that the problem launches of ``text``, and of the original what is not ``kernel``."""
        if kernel not in self._rests:
            before = _launched(await self._profiled(self._request.text, kernel, None, "cost"))
            self._rests[kernel] = [k for k in before if k.name != kernel]
        last = await self._profiled(text, kernel, None, self._extents.get(kernel, "cost"))
        kernels = _launched(last)
        self._refuse(last, kernels)
        original = self._originals.get(kernel)
        for version in kernels:
            comparable = original is None or version.name != kernel or same_amount(original, version)
            if not comparable and not (together_known(version) and original and together_known(original)):
                message = (
                    f"It launches {kernel} {launch_count(version)} times for other parts of the output than the "
                    f"original, which launches it {launch_count(original or version)} times, and the time of all "
                    "launches together is not known."
                )
                raise CostUnavailableError("not-measured", message, lasting=False)
        return whole(kernels, kernel, self._rests[kernel])

    async def _kernel_cost(self, text: str, kernel: str) -> KernelMeasurement:
        last = await self._profiled(text, kernel, [kernel], self._extents.get(kernel, "cost"))
        kernels = [k for k in (last.kernels if last else []) if k.name == kernel]
        self._refuse(last, kernels)
        original = self._originals.get(kernel)
        if original is not None and not same_amount(original, kernels[0]):
            return await self._whole_cost(text, kernel)
        return kernels[0]

    def _refuse(self, measurement: FileMeasurement | None, kernels: Sequence[KernelMeasurement]) -> None:
        """Raise CostUnavailableError where one of ``kernels`` has no cost, or where it is not known whether it can be
        launched, as it is of the original."""
        reason = NO_TIME if measurement is None else measurement.refusal(*(k.name for k in kernels))
        if reason is None and self._original_launches:
            unchecked = next((k for k in kernels if k.launchable.status != "yes"), None)
            if unchecked is not None:
                why = unchecked.launchable.detail or "it was not compiled"
                message = f"Whether {unchecked.name} can be launched is not known: {why}"
                reason = Finding("unsupported", unchecked.line, "information", message)
        if reason is not None:
            raise CostUnavailableError(reason.code, reason.message, lasting=reason.code in OWN_FAULTS)

    async def _profiled_apart(self, extent: Extent) -> FileMeasurement | None:
        """Measure the original's kernels, each with the problem that launches it."""
        whole: FileMeasurement | None = None
        for problem in self._request.inferred:
            names = [name for name in problem.launched if self._request.problem_of(name) is problem]
            last = await self._profiled(self._request.text, names[0], names, extent)
            if last is None:
                return None
            whole = last if whole is None else replace(whole, kernels=[*whole.kernels, *last.kernels])
        return whole

    async def _profiled(
        self, text: str, kernel: str | None, names: list[str] | None, extent: Extent
    ) -> FileMeasurement | None:
        """Measure the kernels ``names`` of ``text``, None for all, with the problem for ``kernel``."""
        full_request = await interruptible(
            profile_request,
            self._request,
            text,
            kernel,
            names,
            self._specs,
            MeasureOptions(
                extent, detail=False, launches=dict(self._launches), slow_configurations=dict(self._slow)
            ),
        )
        last: FileMeasurement | None = None
        try:
            async with aclosing(profile(self._host, full_request)) as growing:
                async for measurement in growing:
                    last = measurement
        except HostUnreachableError as error:
            raise EvaluatorLostError(str(error)) from error
        return last


class HostGate:
    """The gate on a host, with the original file's problem."""

    def __init__(self, host: Host, request: OptimizeRequest) -> None:
        self._host, self._request = host, request
        self._files: dict[
            str, KernelSource
        ] = {}  # the original, examined for the first candidate of a kernel

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        try:
            answer = await check(self._host, await interruptible(self._gate_request, text, kernel), tell)
        except HostUnreachableError as error:
            raise EvaluatorLostError(str(error)) from error
        verdict, _ = answer
        for reason in verdict.reasons:
            if verdict.invalid_problem or reason.code == "gate-failed":
                raise CostUnavailableError(reason.code, reason.message, lasting=False)
        return answer

    async def compare(self, text: str, kernel: str) -> TimeComparison | None:
        """Time candidate and original in turns of random order, in one session of a fresh process; None where no device
        can."""
        try:
            if not (await self._host.facts()).devices:
                return None
            gate_request = await interruptible(self._gate_request, text, kernel)
            request_text = self._request.text
            if gate_request.dialect != "triton" or layout_of(gate_request.problem).runs_itself:
                return None
            launched = (await interruptible(find_kernels, text)).launched
            kernels = [k for k in launched if k.name == kernel]
            if not await interruptible(only_kernel_changed, request_text, text, kernel):
                kernels = launched
            before = gate_request.original.files[gate_request.original.kernel]
            session = await time_on(
                self._host,
                gate_request.candidate,
                kernels=kernels,
                problem=gate_request.problem,
                baseline=before,
                limits=gate_request.limits,
            )
        except HostUnreachableError as error:
            raise EvaluatorLostError(str(error)) from error
        except JobFailedError as failed:
            raise CostUnavailableError(failed.error.code, failed.error.message, lasting=False) from failed
        except ValueError as error:
            raise CostUnavailableError(
                "bad-answer", f"The host's answer cannot be read: {error}.", lasting=False
            ) from error
        if session.checked is not None and session.checked.wrong:
            raise CostUnavailableError(
                "wrong-result", f"On the device: {session.checked.wrong}", lasting=True
            )
        return session.comparison

    def _gate_request(self, text: str, kernel: str) -> GateRequest:
        request = self._request
        file = self._files[kernel] = self._files.get(kernel) or request.kernel_file(kernel=kernel)
        ref = file.problem.ref
        own_kernel = file.kernel(kernel) or next(
            (k for k in find_kernels(text).kernels if k.name == kernel), None
        )
        if ref is None or own_kernel is None:
            raise CostUnavailableError(
                "no-problem", f"There is no problem to check {kernel} against.", lasting=False
            )
        candidate, original = (
            job_files(file, ship_imports=self._host.remote, text=t) for t in (text, request.text)
        )
        return GateRequest(
            candidate,
            original,
            problem=ref,
            kernel=kernel,
            dialect=own_kernel.dialect,
            target=request.target,
            limits=request.limits,
        )


def profile_request(
    request: OptimizeRequest,
    text: str,
    kernel: str | None,
    names: list[str] | None,
    specs: dict[str, list[dict[str, Any]]],
    options: MeasureOptions,
) -> ProfileRequest:
    """Build the request that profiles ``names`` of ``text`` in the place of the request's file, with the problem for
    ``kernel``; ``specs`` caches input shapes."""
    targets: dict[Dialect, str] = {"triton": request.target, "nki": request.target}
    return ProfileRequest(
        request.kernel_file(text, kernel),
        targets,
        kernels=names,
        limits=request.limits,
        options=options,
        background=True,
        input_specs=specs,
    )


def _launched(measurement: FileMeasurement | None) -> list[KernelMeasurement]:
    """Return the kernels that the problem's run launched."""
    return [
        k for k in (measurement.kernels if measurement else [])
        if not any(f.code == "never-launched" for f in k.findings)
    ]  # fmt: skip
