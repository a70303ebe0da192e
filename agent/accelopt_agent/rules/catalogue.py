"""Loads the list of rules and applies them to a kernel, most promising first; the proposer of a search does so."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import libcst as cst

from accelopt_agent.candidate import Candidate
from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_agent.rules.analysis.new_names import without_shadowing
from accelopt_agent.rules.analysis.nki.kernel import NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.plain_subscripts import plain_subscripts, without_gaps
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.rule_context import KernelNotFoundError, Rewrite, RuleContext, open_context
from accelopt_agent.rules.analysis.triton.kernel import open_triton
from accelopt_agent.search.node import Node
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.measurement import Dialect, KernelMeasurement
from accelopt_profiling.source_text import source_lines
from accelopt_profiling.waiting import interruptible

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rule:
    """One entry of ``catalogue.json``.

    ``function`` in the file ``module`` below ``rules/`` implements it: it takes the kernel, as ``NkiKernel`` or
    ``TritonKernel``, and yields rewrites. ``moves`` names the counters that should
    change and how ("down", "up"). ``helps`` names what limits the kernels it is meant for, as
    ``KernelMeasurement.bound`` does. A ``repeat`` rule leaves nothing to do for itself where it applied, so it
    can be applied everywhere at once. A ``tunes`` rule makes a choice that fits the profiled sizes only. ``after`` are
    rules that may gain nothing but lead to this one: it is proposed on what each of them makes too. ``source``
    says where the idea or the cost rule behind it comes from; ``packages`` are the NKI packages whose kernels it
    rewrites.
    """

    name: str
    dialect: Dialect
    module: str
    title: str
    applies: str
    moves: dict[str, str]
    helps: list[str]
    source: str
    repeat: bool = False
    tunes: bool = False
    after: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    function: str = "rewrites"

    def rewrites(self, subject: RuleContext) -> Iterator[Rewrite]:
        """Yield what the rule makes of a kernel whose file imports the functions of one of its packages."""
        kernel = open_nki(subject) if self.dialect == "nki" else open_triton(subject)
        if kernel is None or (isinstance(kernel, NkiKernel) and kernel.dialect.package not in self.packages):
            return
        module = importlib.import_module(f"accelopt_agent.rules.{self.dialect}.{self.module}")
        yield from getattr(module, self.function)(kernel)


class RuleError(Exception):
    """A rule broke its contract: it made text that does not parse, lost the kernel, or edited something else."""


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of ``catalogue.json``: within a dialect, the ones that usually gain most
    come first."""
    data = json.loads(resources.files(__package__).joinpath("catalogue.json").read_text("utf-8"))
    return tuple(Rule(**entry) for entry in data["rules"])


def proposals(
    text: str,
    kernel: Kernel,
    measurement: KernelMeasurement | None = None,
    target: str = "",
    *,
    strict: bool = False,
) -> Iterator[Candidate]:
    """Yield the rewrites that the rules propose for ``kernel`` in the file ``text``, most promising first.

    A rule that helps against what bounds the kernel (``measurement.bound``) comes before one that does not; where that
    is the launch, the sizes are too small to tune anything for, and rules that do are left out. The same rewrite with
    another number comes after what all rules make first. Nothing is
    checked for correctness here. A rule that fails is logged and left out (raised when ``strict``); a file that does
    not parse, or a kernel that is no longer there, gives nothing.
    """
    try:
        source = ParsedSource(text)
        subject = open_context(source, kernel, measurement, target)
    except (cst.ParserSyntaxError, KernelNotFoundError, RecursionError) as error:
        logger.info("no rewrites for %s: %s", kernel.name, error)
        return
    texts, offers, variants = {text}, set[tuple[str, str]](), list[Candidate]()
    for rule in _promising(kernel, measurement):
        try:
            for candidate in (*_candidates_and_everywhere(rule, subject), *_after_others(rule, subject)):
                if candidate.text not in texts:
                    texts.add(candidate.text)
                    if (candidate.origin, candidate.summary) in offers:
                        candidate = _with_place(candidate, text)
                    offers.add((candidate.origin, candidate.summary))
                    if candidate.variant:
                        variants.append(candidate)
                    else:
                        yield candidate
        except Exception as error:
            if strict:
                raise
            detail = logger.isEnabledFor(logging.DEBUG)
            logger.error("rule %s failed on kernel %s: %s", rule.name, kernel.name, error, exc_info=detail)
    yield from variants


def apply(
    name: str,
    text: str,
    kernel: Kernel,
    measurement: KernelMeasurement | None = None,
    target: str = "",
    everywhere: bool = False,
) -> list[Candidate]:
    """Return everything the rule ``name`` proposes for ``kernel``, with ``everywhere`` also for all places at once.

    Empty when it does not apply.

    Raises:
        KeyError: no rule has this name.
        KernelNotFoundError: the kernel is not in ``text``.
        RuleError: the rule broke its contract.
    """
    rule = {rule.name: rule for rule in rules()}[name]
    if rule.dialect != kernel.dialect:
        return []
    subject = open_context(ParsedSource(text), kernel, measurement, target)
    return list(_candidates_and_everywhere(rule, subject) if everywhere else _candidates(rule, subject))


def _promising(kernel: Kernel, measurement: KernelMeasurement | None) -> list[Rule]:
    bound = (measurement.bound or "").lower() if measurement else ""
    fitting = [rule for rule in rules() if rule.dialect == kernel.dialect]
    fitting = [rule for rule in fitting if bound != "launch" or not rule.tunes]
    return sorted(fitting, key=lambda rule: not (bound and any(word.lower() in bound for word in rule.helps)))


def _candidates(rule: Rule, subject: RuleContext) -> Iterator[Candidate]:
    """Yield what a rule makes of a kernel as it is written or, if that is nothing, with its indices written out."""
    any_candidate = False
    for candidate in _of_reading(rule, subject):
        any_candidate = True
        yield candidate
    if not any_candidate and (plain := subject.analysis(_plain)) is not None:
        for candidate in _of_reading(rule, plain):
            yield replace(candidate, text=without_gaps(candidate.text))


def _plain(subject: RuleContext) -> RuleContext | None:
    """Return the kernel with its indices written where they are used, if that makes a difference."""
    source = plain_subscripts(subject) if subject.kernel.dialect == "nki" else None
    return (
        None if source is None else open_context(source, subject.kernel, subject.measurement, subject.target)
    )


def _of_reading(rule: Rule, subject: RuleContext) -> Iterator[Candidate]:
    for rewrite in rule.rewrites(subject):
        text = _rewritten(rule, subject, rewrite)
        if text != subject.source.text:
            origin = f"rule:{rule.name}"
            expects = dict(rule.moves if rewrite.moves is None else rewrite.moves)
            yield Candidate(
                subject.kernel.name,
                text,
                origin=origin,
                summary=rewrite.summary,
                expects=expects,
                steps=(origin,),
                variant=rewrite.variant,
            )


def _everywhere(rule: Rule, subject: RuleContext) -> Iterator[Candidate]:
    """Yield the rule applied wherever it applies, if that is more than one place."""
    if not rule.repeat:
        return
    text, places = subject.source.text, 0
    while places < _MOST_PLACES:
        candidate = next(_candidates(rule, subject), None)
        if candidate is None:
            break
        text, places = candidate.text, places + 1
        subject = _reopened(text, subject)
    if places > 1:
        origin = f"rule:{rule.name}"
        summary = f"{rule.title}, in {places} places."
        yield Candidate(
            subject.kernel.name,
            text,
            origin=origin,
            summary=summary,
            expects=dict(rule.moves),
            steps=(origin,),
        )


def _candidates_and_everywhere(rule: Rule, subject: RuleContext) -> Iterator[Candidate]:
    yield from _everywhere(rule, subject)
    yield from _candidates(rule, subject)


def _after_others(rule: Rule, subject: RuleContext) -> Iterator[Candidate]:
    """Yield the rule applied to what each of the rules makes that lead to it, both as one candidate."""
    for other in rules():
        if other.name not in rule.after:
            continue
        for before in _candidates_and_everywhere(other, subject):
            candidate = next(_candidates(rule, _reopened(before.text, subject)), None)
            if candidate is not None:
                summary = f"{before.summary.rstrip('.')}, and: {candidate.summary}"
                yield replace(candidate, summary=summary, steps=(*before.steps, *candidate.steps))


def _reopened(text: str, subject: RuleContext) -> RuleContext:
    """Return the same kernel in another text."""
    name, dialect = subject.kernel.name, subject.kernel.dialect
    kernel = next(k for k in find_kernels(text).kernels if (k.name, k.dialect) == (name, dialect))
    return open_context(ParsedSource(text), kernel, subject.measurement, subject.target)


def _with_place(candidate: Candidate, before: str) -> Candidate:
    """Tell a rewrite from another one of the rule that is described in the same words."""
    old, new = source_lines(before), source_lines(candidate.text)
    same = next(
        (k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    return replace(candidate, summary=f"{candidate.summary.rstrip('.')} (from line {same + 1} on).")


#: Bounds how often a rule is applied in one candidate.
_MOST_PLACES = 24


def _rewritten(rule: Rule, subject: RuleContext, rewrite: Rewrite) -> str:
    """Return the whole file after ``rewrite``, checked against what every rule promises."""
    if any(not _inside(edit, subject) for edit in rewrite.edits):
        raise RuleError(f"{rule.name} edited something outside of {subject.kernel.name}")
    edits = [*rewrite.edits, *rewrite.launch_edits]
    try:
        text = apply_edits(subject.source.data, edits, subject.source.newline).decode()
        text = without_shadowing(subject.source.text, text)
    except (ValueError, SyntaxError) as error:
        raise RuleError(f"{rule.name} made text that does not parse: {error}") from error
    kernel = subject.kernel
    if not any((k.name, k.dialect) == (kernel.name, kernel.dialect) for k in find_kernels(text).kernels):
        raise RuleError(f"{rule.name} lost the kernel {kernel.name}")
    return text


def _inside(edit: ByteEdit, subject: RuleContext) -> bool:
    return subject.start <= edit.start and edit.end <= subject.end


class RuleProposer:
    """The rule catalogue."""

    name = "rules"

    def __init__(self, target: str) -> None:
        self._target = target

    async def propose(self, node: Node) -> list[Candidate]:
        return await interruptible(self._all, node)

    def _all(self, node: Node) -> list[Candidate]:

        return list(proposals(node.text, node.kernel, node.measurement, self._target))
