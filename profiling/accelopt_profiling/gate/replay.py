"""A receipt of the gate as a question again, and what two receipts of one question disagree about."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.gate.cases import Case, CaseOptions
from accelopt_profiling.gate.gate import GateRequest
from accelopt_profiling.jobs import Limits, Source
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.receipt import Receipt


def request_of(receipt: Receipt) -> GateRequest:
    """The check that ``receipt`` is the evidence of, with the same seeds.

    Raises:
        ValueError, KeyError: the receipt does not hold what is needed (an older one holds no sources).
    """
    body = receipt.body
    candidate = from_plain(Source, body["candidate"])
    original = candidate if body["original"] is None else from_plain(Source, body["original"])
    for source in (candidate, original):
        if source.kernel not in source.files:
            raise ValueError(f"the file {source.kernel} is missing")
    return GateRequest(
        candidate, original, from_plain(ProblemRef, body["problem"]), str(body["kernel"]), body["dialect"],
        str(body["target"]), from_plain(Limits, body["limits"]), from_plain(CaseOptions, body["options"]),
        [from_plain(Case, case) for case in body["cases"]],
    )  # fmt: skip


def differences(then: Receipt, now: Receipt) -> list[tuple[str, Any, Any]]:
    """What came out differently: a name, and what each receipt says. Times are no difference."""
    found: list[tuple[str, Any, Any]] = []
    for name, read in (("accepted", _accepted), ("reasons", _codes), ("inputs", _inputs)):
        before, after = read(then), read(now)
        if before != after:
            found.append((name, before, after))
    outcomes = [{check["case"]: check.get("outcome") for check in r.body["checks"]} for r in (then, now)]
    for case in outcomes[0].keys() | outcomes[1].keys():
        if outcomes[0].get(case) != outcomes[1].get(case):
            found.append((f"the case {case!r}", outcomes[0].get(case), outcomes[1].get(case)))
    return found


def _accepted(receipt: Receipt) -> bool:
    return bool(receipt.body["accepted"])


def _codes(receipt: Receipt) -> list[str]:
    return sorted({str(reason["code"]) for reason in receipt.body["reasons"]})


def _inputs(receipt: Receipt) -> list[Any]:
    return [[drawn["case"], drawn["digests"]] for drawn in receipt.body["inputs"]]
