"""Reads the corpus that the gate is measured on: one folder per attack, each with an honest negative control."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_lsp.gate_check import GateCheck, gate_requests
from accelopt_profiling.gate.request import GateRequest
from accelopt_profiling.jobs import Limits
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.plain import from_plain

#: What the corpus's kernels are checked for.
TARGETS: dict[Dialect, str] = {"triton": "h100", "nki": "trn1"}


@dataclass(frozen=True)
class Manifest:
    """``case.json``: what the attack does (``about``), its numbers in the catalogue of tricks, the problem's file name,
    the codes of which one has to be among the reasons for refusing it, and what the honest ``twin`` does.
    """

    about: str
    problem: str
    refused_for: list[str]
    twin: str
    tricks: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class CorpusCase:
    """One case: ``folder`` holds ``attack.py`` and ``honest.py``."""

    folder: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def dialect(self) -> str:
        """The folder that it is in: "triton", "nki" (Beta 1) or that of the current NKI dialect."""
        return self.folder.parent.name

    @property
    def problem(self) -> Path:
        return self.folder.parent.parent / "problems" / self.manifest.problem

    def request(self, file: str) -> GateRequest:
        """Return the question to the gate about ``attack.py`` or ``honest.py``, as ``accelopt verify`` asks it."""
        path = (self.folder / file).resolve()
        text = path.read_text(encoding="utf-8")
        asked = GateCheck(path, text, text, self.problem.resolve(), None, TARGETS, Limits(seconds=60))
        return gate_requests(asked, ship_imports=False)[0]


def read_corpus(folder: Path) -> list[CorpusCase]:
    """Return the cases below ``folder``, in the order of their names.

    Raises:
        ValueError: a manifest is incomplete, or there is no case at all.
    """
    cases: list[CorpusCase] = []
    for file in sorted(folder.glob("*/*/case.json")):
        try:
            manifest = from_plain(Manifest, json.loads(file.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        cases.append(CorpusCase(file.parent, manifest))
    if not cases:
        raise ValueError(f"{folder} holds no case (a folder DIALECT/NAME with case.json)")
    return cases
