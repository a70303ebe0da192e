"""Profile files and infer problems on the hosts that the settings name, each host opened when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_lsp.errors import HostUnavailableError, RefusedError, UserError
from accelopt_lsp.resources import host_named
from accelopt_lsp.service.protocol import CheckedCandidate, FileRequest
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.hosts.host import Host, HostFacts, HostUnreachableError, JobFailedError
from accelopt_profiling.jobs import MeasureOptions
from accelopt_profiling.measurement import FileMeasurement
from accelopt_profiling.problem_inference import guessed, infer_problem
from accelopt_profiling.problems.inference.inferred import InferredProblem, inference_key
from accelopt_profiling.profiler import ProfileRequest, profile

if TYPE_CHECKING:
    from accelopt_agent.migration.comparison import ComparedMigration


class HostProfiles:
    """Keeps the hosts open, and what one profile teaches the next. ``surface`` hears where a host that is elsewhere
    cannot be reached, and where it can."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._connecting: set[asyncio.Future[HostFacts]] = set()
        self._hosts: dict[tuple[str, str], Host] = {}
        self._input_specs: dict[str, list[dict[str, Any]]] = {}
        self._inferred: dict[str, InferredProblem] = {}

    async def profile(
        self, file: FileRequest, kernels: Sequence[str] = (), timeline: bool = False
    ) -> AsyncGenerator[FileMeasurement, None]:
        """Profile on the host of the settings; while that cannot be reached, without hardware on this machine.

        Raises:
            HostUnavailableError: this machine's worker cannot be started.
        """
        request = ProfileRequest(
            file.source,
            file.targets,
            kernels=kernels or None,
            options=MeasureOptions(timeline=timeline),
            limits=file.settings.job_limits,
            input_specs=self._input_specs,
            inferred=self._inferred,
        )
        try:
            host = await self.connected(file.settings) if request.wanted else self._host(file.settings)
            if host.remote:
                self._surface.host_problem(None)
            async with aclosing(profile(host, request)) as growing:
                async for results in growing:
                    yield results
            return
        except HostUnreachableError as error:
            if file.settings.host == "local":
                raise HostUnavailableError(str(error)) from None
            self._surface.host_problem(str(error))
        try:
            async with aclosing(profile(await self.connected(file.settings, "local"), request)) as growing:
                async for results in growing:
                    yield results
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None

    def known_problem(self, file: FileRequest, kernel: str) -> InferredProblem | None:
        """Return the problem that a profile inferred for the file, if it has none of its own and runs ``kernel``."""
        problem = self._inferred.get(inference_key(file.source)) if file.source.problem.ref is None else None
        return problem if problem is not None and kernel in problem.launched else None

    async def infer_problem(self, file: FileRequest, kernel: str | None) -> InferredProblem:
        """Return inputs with which a kernel, or all of the first one's dialect, run, or the best that were found; of
        an untrusted folder's from its syntax alone.

        Raises:
            HostUnavailableError, UserError
        """
        chosen = file.kernels(kernel)
        first = chosen[0]
        if (folder := file.settings.untrusted) is not None:
            return guessed(file.source, first, f"{folder} is not trusted")
        if (problem := self.known_problem(file, first.name)) is not None:
            return problem
        of_dialect = [k for k in chosen if k.dialect == first.dialect]
        settings, target = file.settings, file.targets[first.dialect]
        try:
            host = await self.connected(settings)
            return await infer_problem(
                host, file.source, kernels=of_dialect, target=target, limits=settings.job_limits
            )
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None

    async def migrate(self, file: FileRequest, target: str = "") -> ComparedMigration:
        """``Service.migrate``."""
        from accelopt_agent.migration.comparison import TARGET, migrate
        from accelopt_agent.migration.file_migration import is_beta1

        if not is_beta1(file.text):
            raise RefusedError(f"{file.name} does not import neuronxcc.nki: there is nothing to move.")
        file.require_sound()
        if file.source.problem.ref is None:
            raise UserError(
                f"No problem says what to run {file.name} with; create a problem file first "
                f"(`accelopt problem {file.name}`)."
            )
        try:
            host = await self.connected(file.settings)
            return await migrate(host, file.source, target or TARGET, file.settings.job_limits)
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None
        except JobFailedError as failed:
            raise UserError(f"{file.name} cannot be run: {failed.error.message}") from None

    async def verify(self, file: FileRequest, candidate: str) -> CheckedCandidate:
        """``Service.verify``: one check per dialect of the file, up to the first refusal."""
        from accelopt_lsp.gate_check import GateCheck, gate_requests
        from accelopt_profiling.gate.gate import check
        from accelopt_profiling.gate.scope import scope

        settings = file.settings
        checked = GateCheck(
            file.source.path,
            candidate,
            original=file.text,
            problem=Path(str(settings.problem)),
            root=settings.project_root,
            targets=file.targets,
            limits=settings.job_limits,
        )
        verdicts, receipts, covered = [], [], []
        try:
            host = await self.connected(settings)
            for request in gate_requests(checked, ship_imports=host.remote):
                verdict, receipt = await check(host, request)
                receipts.append(receipt)
                if not verdict.accepted:
                    return CheckedCandidate(verdict, [], receipts)
                verdicts.append(verdict)
                covered += scope(verdict, request.dialect)
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None
        reasons = [reason for verdict in verdicts for reason in verdict.reasons]
        checks = [passed for verdict in verdicts for passed in verdict.checks]
        return CheckedCandidate(replace(verdicts[-1], reasons=reasons, checks=checks), covered, receipts)

    async def connected(self, settings: Settings, name: str | None = None) -> Host:
        """Return the host of the settings, or the one called ``name``, once it is reached. A caller that is
        cancelled leaves the connecting to go on: a process whose start is cut short in the middle is hard to
        get rid of, and the next profile needs it anyway.

        Raises:
            HostUnreachableError
        """
        host = self._host(settings, name)
        connecting = asyncio.ensure_future(host.facts())
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connection_made)
        await asyncio.shield(connecting)
        return host

    async def close(self) -> None:
        if self._connecting:
            await asyncio.wait(self._connecting, timeout=5)
        hosts = [host.close() for host in self._hosts.values()]
        await asyncio.gather(*hosts, return_exceptions=True)

    def _host(self, settings: Settings, name: str | None = None) -> Host:
        name = name or settings.host
        local = f"{settings.interpreter} {sorted(settings.env.items())} {settings.require_isolation}"
        described = local if name == "local" else repr(settings.hosts[name])
        if (name, described) not in self._hosts:
            self._hosts[name, described] = host_named(settings, name, self._surface.isolation_problem)
        return self._hosts[name, described]

    def _connection_made(self, connecting: asyncio.Future[HostFacts]) -> None:
        self._connecting.discard(connecting)
        if not connecting.cancelled():
            connecting.exception()  # told to whoever still waits
