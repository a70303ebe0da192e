"""A server whose service follows a script written in the kernels themselves, for tests of the protocol.

``COST = 900`` in a kernel is its time in microseconds; ``WRONG = 1`` makes its result wrong. At the top level of the
file ``HOLD = 1`` lets a profile or search stop in the middle until it is cancelled (a search also until it was paused
and goes on), ``INTERRUPTED = 1`` says that a search was, ``ASK = 1`` asks the editor's model, ``DOWN = 1`` makes the
host unreachable, ``REFUSE = 1`` the service refuse and ``BUG = 1`` it fail. A suggestion halves a kernel's cost; with
``SEVERAL = 1`` another one before it takes a tenth off; with ``BESIDE = 1`` it changes that line too. With
``STEPS = 1`` it has two steps; without one of them it takes a tenth off. A version that is made again is refused with
``REFUTED = 1``.
What is accepted, rejected or made again is appended to the file that ``SCRIPTED_LOG`` names.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import itertools
import json
import logging
import os
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from accelopt_agent.events import Event, Finished, ProgressText, SuggestionFound, Usage
from accelopt_agent.migration.comparison import ComparedMigration
from accelopt_agent.migration.file_migration import UnmovedLine
from accelopt_agent.model.editor_request import EditorModelRequest
from accelopt_agent.search.history import PastRun, PastStep
from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion, VersionStep
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.server.main import start
from accelopt_lsp.service.protocol import (
    Explanation,
    FileRequest,
    LearnedPair,
    SearchRequest,
    StoredSearches,
)
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.settings.load import Settings
from accelopt_memory.connection import Connection
from accelopt_memory.profile_cache import ProfileCache
from accelopt_memory.records import Run
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import (
    Correctness,
    FileMeasurement,
    Finding,
    KernelMeasurement,
    Latency,
    LineCost,
)
from accelopt_profiling.problems.discovery.template import problem_template
from accelopt_profiling.problems.inference.inferred import InferredProblem
from accelopt_profiling.quantity import Known, executed


class Scripted:
    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self._suggestions: dict[str, Suggestion] = {}
        self._decided: set[str] = set()
        self._accepted: list[Suggestion] = []
        self._going: dict[str, asyncio.Event] = {}
        self._stopped: set[str] = set()

    async def start(self) -> None:
        pass

    async def stored_searches(self, file: FileRequest, saved: bool = False) -> StoredSearches:
        own = [s for s in self._suggestions.values() if s.file == file.path and s.id not in self._decided]
        stopped = [
            ResumableRun("run0", k.name, k.content_hash, 7)
            for k in file.source.kernels
            if _says(file.text, "INTERRUPTED")
        ]
        taken = [s for s in self._accepted if s.file == file.path]
        return StoredSearches(own, taken, stopped)

    async def profile(
        self, file: FileRequest, kernels: Sequence[str] = (), timeline: bool = False
    ) -> AsyncGenerator[FileMeasurement, None]:
        self._follow(file.text)
        kernels: list[KernelMeasurement] = []
        for kernel in file.source.kernels:
            kernels.append(_measure(file, kernel))
            yield FileMeasurement(file.path, list(kernels))
            if _says(file.text, "HOLD"):
                await asyncio.Event().wait()
        findings = []
        if not re.search(r"^def get_inputs", file.text, re.M) and file.source.kernels:
            message = "No problem was found."
            findings = [Finding("no-problem", k.line, "information", message) for k in file.source.kernels]
        if _says(file.text, "TIMEOUT"):
            message = "The run took longer than 60 s and was ended."
            findings.append(Finding("timeout", file.source.kernels[0].line, "information", message))
        if "affine_range" in file.text:
            message = "nl.affine_range is deprecated since NKI 0.7; use range."
            findings.append(Finding("deprecated", file.source.kernels[0].line, "information", message))
        complete = FileMeasurement(file.path, kernels, findings, complete=True)
        if file.key and _says(file.text, "STORE"):
            await asyncio.to_thread(_store, file, complete)
        yield complete

    async def optimize(
        self, file: FileRequest, kernel: str | None, request: SearchRequest
    ) -> AsyncGenerator[Event, None]:
        going = self._going.setdefault(request.job, asyncio.Event())
        self._follow(file.text)
        yield ProgressText("halving the cost")
        target = next(k for k in file.source.kernels if k.name == kernel)
        cost = _cost(file.text, target)
        if (again := request.repetition) is not None:
            _write_log("made again", again.suggestion)
            try:
                if _says(file.text, "HOLD"):
                    await asyncio.Event().wait()
            except asyncio.CancelledError:
                _write_log("given up", again.suggestion)
                raise
            if _says(file.text, "REFUTED"):
                yield Finished("run2", "nothing faster found (1 refused by the gate)", Usage(1))
                return
            suggestion = _suggest(file, target, cost, 0.5 if again.whole else 0.9)
            self._suggestions[suggestion.id] = suggestion
            yield SuggestionFound(suggestion)
            yield Finished("run2", "1 suggestion", Usage(1))
            return
        for factor in (0.9, 0.5) if _says(file.text, "SEVERAL") else (0.5,):
            suggestion = _suggest(file, target, cost, factor)
            self._suggestions[suggestion.id] = suggestion
            yield SuggestionFound(suggestion)
        if _says(file.text, "HOLD"):
            await going.wait()
        if request.job in self._stopped:
            yield Finished("run1", "1 suggestion: cancelled", Usage(1), ending="stopped")
            return
        if _says(file.text, "ASK"):
            reply = await self.surface.complete(
                EditorModelRequest("acme/large", "You plan.", f"The kernel {kernel}", 100)
            )
            yield Finished("run1", f"The model: {reply}", Usage(1))
            return
        how = "Resumed." if request.resume else request.instructions
        yield Finished("run1", f"1 suggestion; 2 candidates tried. {how}".strip(), Usage(2))

    async def pause(self, job: str, on: bool) -> None:
        going = self._going.setdefault(job, asyncio.Event())
        going.clear() if on else going.set()

    async def stop(self, job: str, why: str = "cancelled") -> None:
        self._stopped.add(job)
        self._going.setdefault(job, asyncio.Event()).set()

    async def migrate(self, file: FileRequest, target: str = "") -> ComparedMigration:
        moved = file.text.replace("neuronxcc.nki", "nki")
        return ComparedMigration(moved, [UnmovedLine(3, "as scripted")])

    async def infer_problem(self, file: FileRequest, kernel: str | None) -> InferredProblem:
        chosen = file.kernels(kernel)[0]
        return InferredProblem(problem_template(file.text, chosen), chosen.name)

    async def memory_for_kernel(self, file: FileRequest, kernel: str, bound: str | None) -> str:
        return f"# Remembered changes: {kernel}\n\nlimited by {bound}\n"

    async def memory_with_words(self, words: str, settings: Settings) -> str:
        return f"# Remembered changes: {words}\n\nnone\n"

    async def memory_list(self, folders: Sequence[str], settings: Settings) -> list[dict[str, Any]]:
        return [{"id": "abcd", "folders": list(folders)}]

    async def pair_texts(self, pair: str, settings: Settings) -> dict[str, str]:
        return {"slow": f"{pair} before", "fast": f"{pair} after"}

    async def forget(self, pair: str, settings: Settings) -> str:
        return f"Forgot the pair {pair}."

    async def last_runs(self, path: str, settings: Settings) -> list[PastRun]:
        own = [s for s in self._suggestions.values() if s.file == path]
        if not own:
            return []
        run = Run("run1", path, own[0].kernel, own[0].base_hash, own[0].target, started="2026-11-29T04:00:00")
        tried = [PastStep(2, "", f"tried {s.summary}", "faster", latency=s.fast, path=s.summary) for s in own]
        return [PastRun(run, (PastStep(1, "", "took it as it was", latency=own[0].slow), *tried))]

    async def past_runs(self, path: str, settings: Settings) -> str:
        return f"# Searches in {Path(path).name}\n\n1 finished\n"

    async def suggestion(self, suggestion_id: str, settings: Settings) -> Suggestion | None:
        return None if suggestion_id in self._decided else self._suggestions.get(suggestion_id)

    async def accept(self, suggestion_id: str, settings: Settings) -> str:
        await asyncio.sleep(0.2)  # as on a busy disk
        self._accepted.append(self._suggestions[suggestion_id])
        return self._log("accepted", self._suggestions[suggestion_id])

    async def reject(self, suggestion_id: str, settings: Settings, reason: str = "") -> str:
        return self._log(f"rejected {reason}".strip(), self._suggestions[suggestion_id])

    async def offer_again(self, suggestion_id: str, settings: Settings) -> None:
        self._log("offered again", self._suggestions[suggestion_id])

    async def learn(
        self, file: FileRequest, slow: str, kernel: str | None = None, summary: str = ""
    ) -> LearnedPair:
        lines = f"{len(slow.splitlines())} lines before, {len(file.text.splitlines())} now"
        return LearnedPair(lines, kernel or "", Speedup(2.0, 1.9, 2.1, Known.ESTIMATED))

    async def explain(
        self, suggestion_id: str, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[Explanation, None]:
        from accelopt_agent.search.versions import MeasuredVersions
        from accelopt_lsp.features.explanation import explanation  # takes long to import, for one test

        page = explanation(
            self._suggestions[suggestion_id],
            MeasuredVersions(),
            None,
            "The model is being asked." if ask_model else "",
        )
        yield Explanation(page)
        if ask_model:
            yield Explanation(page.replace("is being asked", "has answered"))

    async def depends_on(self, file: FileRequest, paths: frozenset[str]) -> bool:
        return f"{Path(file.path).stem}_problem.py" in {Path(path).name for path in paths}

    async def close(self) -> None:
        return None

    def _follow(self, text: str) -> None:
        if _says(text, "DOWN"):
            raise HostUnavailableError("The host lab cannot be reached: connection refused.")
        if _says(text, "REFUSE"):
            raise UserError("The scripted service refuses.")
        if _says(text, "BUG"):
            raise RuntimeError("a bug in the service")
        if _says(text, "DENIED"):
            raise PermissionError(13, "Permission denied", "/k/inputs.npy")

    def _log(self, what: str, suggestion: Suggestion) -> str:
        self._decided.add(suggestion.id)
        _write_log(what, suggestion)
        return f"{what} {suggestion.id}"


def _write_log(what: str, suggestion: Suggestion) -> None:
    with open(os.environ["SCRIPTED_LOG"], "a") as log:
        log.write(json.dumps({"what": what, "id": suggestion.id, "kernel": suggestion.kernel}) + "\n")


def _store(file: FileRequest, results: FileMeasurement) -> None:
    connection = Connection(file.settings.memory_path)
    ProfileCache(connection).put(file.key, results)
    connection.close()


def _says(text: str, word: str) -> bool:
    return re.search(rf"^{word} = 1", text, re.M) is not None


def _body(text: str, kernel: Kernel) -> str:
    return "\n".join(re.split(r"\r\n|\n", text)[kernel.first_line - 1 : kernel.end_line])


def _cost(text: str, kernel: Kernel) -> float:
    match = re.search(r"COST = (\d+)", _body(text, kernel))
    return float(match[1]) if match else 1000.0


def _latency(cost: float) -> Latency:
    """The time of a kernel, with an interval so narrow that titles read one number."""
    return Latency(cost, cost * 0.9999, cost * 1.0001, Known.ESTIMATED)


def _measure(file: FileRequest, kernel: Kernel) -> KernelMeasurement:
    wrong = "WRONG = 1" in _body(file.text, kernel)
    status = Correctness("failed", "3 of 10 elements differ") if wrong else Correctness("passed", "", 10, 10)
    findings = [Finding("wrong-result", kernel.line, "error", "3 of 10 elements differ.")] if wrong else []
    return KernelMeasurement(
        name=kernel.name,
        line=kernel.line,
        dialect=kernel.dialect,
        target=file.targets[kernel.dialect],
        correctness=status,
        latency=_latency(_cost(file.text, kernel)),
        percent_of_peak=41.0,
        bound="VectorE",
        case="x 128x512 fp32",
        quantities={"instructions": executed(2688.0)},
        lines=[
            LineCost(kernel.line + 1, "79 % of VectorE", 0.79, {"VectorE busy": executed(3.0, "us")}),
            LineCost(kernel.line + 2, "1 %", 0.01),
        ],
        findings=findings,
        content_hash=kernel.content_hash,
        stage="checked",
        toolchain={"scripted": "1"},
    )


def _suggest(file: FileRequest, kernel: Kernel, cost: float, factor: float) -> Suggestion:
    lines = re.split(r"(?<=\n)", file.text)
    for index in range(kernel.first_line - 1, kernel.end_line):
        lines[index] = lines[index].replace(f"COST = {cost:.0f}", f"COST = {cost * factor:.0f}")
    text = "".join(lines).replace("BESIDE = 1\n", "BESIDE = 2\n")
    diff = difflib.unified_diff(file.text.splitlines(True), text.splitlines(True), "before", "after")
    origin = "model:scripted" if _says(file.text, "MODEL") else "rule:halve"
    costs = (
        (cost, 0.9 * cost, cost * factor)
        if _says(file.text, "STEPS") and factor == 0.5
        else (cost, cost * factor)
    )
    way = tuple(
        VersionStep((origin,), f"Step to {after:.0f}.", _latency(before), _latency(after), f"{after:.0f}")
        for before, after in itertools.pairwise(costs)
    )
    return Suggestion(
        id=hashlib.sha256(f"{file.path} {kernel.content_hash} {factor}".encode()).hexdigest()[:12],
        run="run1",
        file=file.path,
        kernel=kernel.name,
        dialect=kernel.dialect,
        base_hash=kernel.content_hash,
        base_text=file.text,
        text=text,
        diff="".join(diff),
        origin=origin,
        summary="Halve the cost." if factor == 0.5 else "Take a tenth off.",
        speedup=Speedup(1 / factor, 0.9 / factor, 1.1 / factor, Known.ESTIMATED),
        slow=_latency(cost),
        fast=_latency(cost * factor),
        gate=Verdict(True),
        target=file.targets[kernel.dialect],
        host="local",
        steps=(origin,) * len(way),
        way=way,
        case="x 128x512 fp32",
    )


def main() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    start(open_service=Scripted)


if __name__ == "__main__":
    main()
