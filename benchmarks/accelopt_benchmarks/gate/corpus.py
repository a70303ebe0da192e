"""Reads the corpus that the gate is measured on: attacks, each with an honest negative control."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from accelopt_benchmarks.edit_cases import EditCase, read_edit_cases
from accelopt_lsp.gate_check import GateCheck, gate_requests
from accelopt_profiling.gate.request import GateRequest
from accelopt_profiling.jobs import Limits
from accelopt_profiling.measurement import Dialect

#: The texts of a case: the attack, and its honest negative control.
VERSIONS = ("attack", "honest")
#: What the corpus's kernels are checked for.
TARGETS: dict[Dialect, str] = {"triton": "h100", "nki": "trn1"}


@dataclass(frozen=True)
class CorpusCase:
    """One case: what the attack does (``about``), what its honest ``twin`` does, the codes of which one has to be among
    the reasons for refusing it (none: the gate still accepts it), and its numbers in the catalogue of tricks.
    ``dialect`` is the folder of its file: "triton", "nki" (Beta 1) or that of the current NKI dialect. ``texts`` has
    "attack", and "honest" unless its control is that of the case before; ``original`` is what they are rewrites of,
    "" where each is judged by itself. ``core`` is the NeuronCore that an NKI kernel is checked for.
    """

    name: str
    dialect: str
    problem: Path
    about: str
    twin: str
    refused_for: tuple[str, ...]
    tricks: tuple[int, ...]
    texts: dict[str, str]
    original: str = ""
    core: str = TARGETS["nki"]

    def request(self, version: str) -> GateRequest:
        """Return the question to the gate about "attack" or "honest", as ``accelopt verify`` asks it."""
        path, text = self.problem.with_name("kernel.py"), self.texts[version]
        check = GateCheck(
            path,
            text,
            original=self.original or text,
            problem=self.problem,
            root=None,
            targets={**TARGETS, "nki": self.core},
            limits=Limits(seconds=60),
        )
        return gate_requests(check, ship_imports=False)[0]


def read_corpus(folder: Path) -> list[CorpusCase]:
    """Return the cases below ``folder``, in the order of their names: of ``DIALECT/PROBLEM.txt``, whose base answers
    ``problems/PROBLEM.py``.

    Raises:
        ValueError: a case is incomplete, or there is none at all.
    """
    cases = [case for file in folder.glob("*/*.txt") for case in _cases(file.resolve())]
    if not cases:
        raise ValueError(f"{folder} holds no case (a file DIALECT/PROBLEM.txt)")
    return sorted(cases, key=lambda case: case.name)


def _cases(file: Path) -> list[CorpusCase]:
    base, *cases = read_edit_cases(file)
    problem = file.parents[1] / "problems" / f"{file.stem}.py"
    try:
        return [_case(problem, file.parent.name, base.lead, case) for case in cases]
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from None


def _case(problem: Path, dialect: str, base: str, case: EditCase) -> CorpusCase:
    fields = case.fields()
    return CorpusCase(
        f"{dialect}/{case.name}",
        dialect,
        problem=problem,
        about=fields["about"],
        twin=fields["twin"] if "honest" in case.parts else "",
        refused_for=tuple(code for code in fields.get("refused_for", "").split(", ") if code),
        tricks=tuple(int(number) for number in fields.get("tricks", "").split(", ") if number),
        texts={
            version: case.version(version, base)
            for version in VERSIONS
            if version in case.parts or version == "attack"
        },
        original=base if fields.get("rewrites") == "base" else "",
        core=fields.get("core", TARGETS["nki"]),
    )
