"""Stores the paid work of searches by everything that it depends on: continuing a search is running it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from accelopt_agent.evaluation.evaluators import CostUnavailableError, EvaluatorLostError
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.recorder import Recorder
from accelopt_profiling import __version__
from accelopt_profiling.content_key import content_key
from accelopt_profiling.hosts.host import HostFacts, HostUnreachableError
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.plain import from_plain
from accelopt_profiling.waiting import interruptible

T = TypeVar("T")


@dataclass(frozen=True)
class PaidCost:
    """The cost of a version: its measurement, or why it has none."""

    measurement: KernelMeasurement | None = None
    code: str = ""
    message: str = ""
    lasting: bool = False

    @property
    def lasts(self) -> bool:
        return self.measurement is not None or self.lasting

    @property
    def result(self) -> KernelMeasurement | CostUnavailableError:
        return self.measurement or CostUnavailableError(self.code, self.message, lasting=self.lasting)


class PaidWork:
    """The measurements, verdicts and answers of the searches of a file on one host.

    Each has a key of its kind, the text that it is about with its problem and imports, the target, the host with its
    packages and devices, the limits, this program's version, and what else it depends on. A search stores all that it
    pays for; one that resumes takes over what is stored. Without a ``recorder`` nothing is.
    """

    def __init__(
        self,
        recorder: Recorder | None = None,
        request: OptimizeRequest | None = None,
        host: str = "",
        facts: Callable[[], Awaitable[HostFacts]] | None = None,
    ) -> None:
        self._recorder = recorder or Recorder(None)
        self._request, self._host, self._facts = request, host, facts
        self._toolchain: Any = None

    async def __call__(
        self,
        kind: str,
        of: type[T],
        about: tuple[str, str],
        parts: Sequence[Any],
        compute: Callable[[], Awaitable[T]],
        lasts: Callable[[T], bool] = lambda value: True,
    ) -> tuple[T, bool]:
        """Return the result of ``compute``, plain data or a dataclass ``of`` that kind, and whether it was stored.

        ``about`` is a text of the file and the kernel that is searched, ``parts`` what else the result depends on.
        What does not ``last``, a limit that was met on a busy machine for instance, is not stored.

        Raises:
            EvaluatorLostError: the host is gone.
        """
        request = self._request
        if request is None or not self._recorder.keeps:
            return await compute(), False
        key = await self._key(request, kind, about, parts)
        if request.resume and (stored := await self._recorder.stored(key)) is not None:
            try:
                return from_plain(of, stored), True
            except ValueError:
                pass  # written by another version: paid for again
        value = await compute()
        if lasts(value):
            await self._recorder.store(key, value)
        return value, False

    async def knows(self, kind: str, about: tuple[str, str], parts: Sequence[Any]) -> bool:
        """Return whether this search would take over what is stored for these."""
        request = self._request
        if request is None or not request.resume:
            return False
        return await self._recorder.stored(await self._key(request, kind, about, parts)) is not None

    async def event(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event to the run."""
        await self._recorder.event(kind, data)

    async def _key(
        self, request: OptimizeRequest, kind: str, about: tuple[str, str], parts: Sequence[Any]
    ) -> str:
        if self._toolchain is None:
            try:
                facts = HostFacts("") if self._facts is None else await self._facts()
            except HostUnreachableError as error:
                raise EvaluatorLostError(str(error)) from error
            self._toolchain = [facts.python, facts.versions, [str(d.get("name")) for d in facts.devices]]
        text, kernel = about
        conditions = [kernel, request.target, self._host, self._toolchain, request.limits, __version__, parts]
        return await interruptible(lambda: content_key(kind, request.kernel_file(text, kernel), conditions))


def run_content(request: OptimizeRequest) -> str:
    """Return the key of the texts that a run begins with: one is offered to be continued for the same texts only."""
    return content_of(replace(request, inferred=()).kernel_file())


def content_of(examined: KernelSource) -> str:
    """Return ``run_content`` of a search of this file."""
    return content_key("run", examined, [])
