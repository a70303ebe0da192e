"""How much of an editor the results of other people's kernels take: lenses, findings, hints, hovers.

``tests/support/foreign_results.json`` has what the profile says of the 20 files in it: AWS's nki-samples, liger-kernel,
fla-core, flag-gems and PyTorch, most of them with inferred arguments.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_lsp.features.diagnostics import MOST_OF_KERNEL, diagnostics
from accelopt_lsp.features.hints import WIDTH, hints
from accelopt_lsp.features.hover import hover
from accelopt_lsp.features.lens import SAVES, Lens, lenses
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_lsp.state.version import REMEMBERED, Version, with_version
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Finding, KernelMeasurement, Latency
from accelopt_profiling.plain import from_plain
from accelopt_profiling.quantity import Known

FILES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "support/foreign_results.json").read_text(encoding="utf-8")
)

#: Characters of a line of lenses that VS Code shows in a window of 1000 px whatever its font: side bar (300), activity
#: bar (48), line numbers (70) and a minimap (80) leave 500 px, and a character of a lens is 7.6 px wide at most (90 %
#: of 14 px, 0.6 em). In a screenshot of that width, with VS Code's own font and no minimap, 97 characters fit.
NARROW = 60
#: The same at 1440 px.
WIDE = 120
#: What VS Code puts between two lenses.
BETWEEN = " | "


def document(file: dict[str, Any], **changes: Any) -> Document:
    shown = {k["name"]: from_plain(KernelMeasurement, {"host": "local", **k}) for k in file["kernels"]}
    states = []
    for plain in file["source"]:
        kernel = from_plain(Kernel, plain)
        result = shown.get(kernel.name)
        states.append(
            KernelState(kernel, result and replace(result, content_hash=kernel.content_hash), **changes)
        )
    found = tuple(from_plain(Finding, f) for f in file["findings"])
    return Document("file:///k.py", "/k.py", kernels=tuple(states), run_findings=found, read=True)


def with_offers(state: Document, count: int) -> Document:
    """The document after a search that checked ``count`` versions of each kernel, and was interrupted."""
    latency = Latency(9.0, 8.0, 10.0, Known.ESTIMATED)
    kernels = []
    for kernel in state.kernels:
        text_hash, name = kernel.kernel.content_hash, kernel.kernel.name
        offer = Suggestion(
            "id", "run", "/k.py", name, kernel.kernel.dialect, text_hash, "", "", "", "rule:r", "Hoist.",
            Speedup(12.3, 10.2, 14.5, Known.ESTIMATED), latency, latency, Verdict(True), "h100", "local", ("rule:r",),
        )  # fmt: skip
        run = ResumableRun("run", name, text_hash, 128)
        kernels.append(replace(kernel, suggestions=(offer,) * count, interrupted=run))
    return replace(state, kernels=tuple(kernels))


def with_saves(state: Document) -> Document:
    """The document after its kernels were rewritten many times, so that each lens has a sparkline."""
    kernels = []
    for kernel in state.kernels:
        if kernel.shown is None:
            kernels.append(kernel)
            continue
        earlier = [replace(kernel.shown, content_hash=str(n)) for n in range(REMEMBERED)]
        versions: tuple[Version, ...] = ()
        for result in (*earlier, kernel.shown):
            versions = with_version(versions, result)
        kernels.append(replace(kernel, before=earlier[-1], versions=versions))
    return replace(state, kernels=tuple(kernels))


def rows(items: list[Lens]) -> list[list[Lens]]:
    """The lenses of each line, as they stand beside each other."""
    by_line: dict[int, list[Lens]] = {}
    for item in items:
        by_line.setdefault(item.line, []).append(item)
    return list(by_line.values())


def ends(row: list[Lens]) -> dict[str, int]:
    """Where each title of a row ends; an icon takes two characters."""
    at, result = 0, {}
    for lens in row:
        at += len(lens.title) + 3 * bool(lens.icon)
        result[lens.title] = at
        at += len(BETWEEN)
    return result


@pytest.mark.parametrize("file", FILES, ids=lambda f: f["file"])
def test_no_lens_cuts_its_verb(file: dict[str, Any]) -> None:
    state = document(file)
    search = BackgroundJob.of("optimize", state.uri)
    edited = with_saves(state)
    assert all("█" in x.title[-SAVES:] for x in lenses(edited, [], {}) if "last save" in x.title)
    for offered in (state, edited, with_offers(edited, 1), with_offers(edited, 12)):
        for jobs in ([], [search], [replace(search, paused=True)]):
            for row in rows(lenses(offered, jobs, {"nki": "trn1", "triton": "h100"})):
                *verbs, result = ends(row).items()
                assert all(end - len(title) + len(title.split(" ")[0]) <= NARROW for title, end in verbs), (
                    verbs
                )
                assert all(end <= NARROW for title, end in verbs if not title.startswith("Change ")), verbs
                assert row[-1].command in ("profile", "targetCosts")
                if row[0].command == "optimize" and offered is state:
                    assert result[1] <= WIDE, result


@pytest.mark.parametrize("file", FILES, ids=lambda f: f["file"])
def test_a_kernel_has_few_diagnostics_and_no_cause_twice(file: dict[str, Any]) -> None:
    state = document(file)
    shown = diagnostics(state)
    of_kernel = Counter(at.kernel.name for d in shown if (at := state.kernel_at(d.finding.line)))
    assert all(count <= MOST_OF_KERNEL for count in of_kernel.values()), of_kernel
    names = "|".join(sorted((k.kernel.name for k in state.kernels), key=len, reverse=True)) or "$"
    causes = Counter(
        (d.finding.code, re.sub(rf"{names}|\d[\d.,]*( ?[kMG]?B)?", "", d.message.split(" Also on line")[0]))
        for d in shown
        if d.finding.severity != "error" and d.finding.code != "more-findings"
    )
    assert all(count == 1 for count in causes.values()), causes


@pytest.mark.parametrize("file", FILES, ids=lambda f: f["file"])
def test_a_hover_has_five_rows_before_its_details(file: dict[str, Any]) -> None:
    state = document(file)
    for kernel in state.kernels:
        for markdown in (True, False):
            text = hover(state, kernel.kernel.line, markdown)
            if text is not None:
                above, _, below = text.partition("\n\n---\n\n")
                assert len(above.splitlines()) == 5
                assert below
                assert "(0.0 %" not in text


#: Of a hover VS Code shows 250 px before it has to be scrolled. A line of its text takes 19 px and holds 70 characters
#: (500 px of 14 px system-ui), in a list 67; what one diagnostic or one hover says takes 9 px besides.
FOLD, LINE, PART, LETTERS, ROW_LETTERS = 250, 19, 9, 70, 67


def height(lines: list[str], letters: int) -> int:
    return PART + LINE * sum(len(textwrap.wrap(line, letters)) for line in lines)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f["file"])
def test_the_five_rows_of_a_hover_are_in_sight_below_two_findings(file: dict[str, Any]) -> None:
    """VS Code shows the findings of a line first, each with its code and a line for each further place. What lies below
    the last row need not be in sight."""
    state, name = document(file), file["file"].rpartition("/")[2]
    for kernel in state.kernels:
        text = hover(state, kernel.kernel.line, True, picture=True)
        if text is None:
            continue
        findings = [
            [
                f"{d.message} accelopt({d.finding.code})",
                *(f"{name}({at}, 1): {words}" for at, words in d.places),
            ]
            for d in diagnostics(state)
            if d.finding.line == kernel.kernel.line
        ]
        above = [height(lines, LETTERS) for lines in findings[:2]]
        rows = re.sub(r"[*\\]|^- ", "", text.partition("\n\n")[0], flags=re.MULTILINE).splitlines()
        assert sum(above) + height(rows, ROW_LETTERS) - PART // 2 <= FOLD, (findings[:2], rows)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f["file"])
def test_the_shares_in_hints_come_to_the_whole_at_most(file: dict[str, Any]) -> None:
    state = document(file)
    lines = ["pass\n"] * file["lines"]
    for kernel in state.kernels:
        shown = list(hints(replace(state, kernels=(kernel,)), lines, 1, file["lines"]))
        assert all(len(hint.text) <= WIDTH and "est." not in hint.text for hint in shown)
        shares = [
            int(share[1]) for hint in shown if (share := re.search(r"(?:, |E |DMA )(\d+) %", hint.text))
        ]
        assert sum(shares) <= 101, [hint.text for hint in shown]  # each share is rounded


def test_inferred_sizes_can_be_changed_from_the_lens() -> None:
    (file,) = (f for f in FILES if f["file"] == "ops/utils/softmax.py")
    changes = [x for x in lenses(document(file), [], {}) if x.command == "createProblem"]
    assert changes
    assert all(re.fullmatch(r"Change \d+(x\d+)* \(inferred\)", x.title) for x in changes)
    offered = lenses(with_offers(document(file), 1), [], {})
    assert [x for x in offered if x.command == "createProblem"] == []


def test_an_accepted_text_whose_profile_came_first_is_compared_with_the_one_before() -> None:
    kernels = (k for file in FILES for k in with_offers(document(file), 1).kernels)
    kernel = next(k for k in kernels if k.shown is not None and k.shown.latency.us is not None)
    assert kernel.shown is not None
    profiled = replace(kernel, shown=replace(kernel.shown, content_hash="new"), before=kernel.shown)
    accepted = profiled.with_accepted(kernel.suggestions[0], "new")
    assert accepted.before is kernel.shown
    assert accepted.shown is profiled.shown
    assert accepted.versions[-1].accepted
    assert accepted.accepted is kernel.suggestions[0]
