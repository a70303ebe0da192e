"""Reads a plan: the lines that it wants changed, or what it wants written anew."""

from __future__ import annotations

import re
from dataclasses import dataclass

from accelopt_agent.model.edit_bounds import Bounds, beyond_bounds, fixed_lines
from accelopt_agent.model.edits import (
    Anchor,
    InvalidAnswerError,
    apply_edits,
    apply_plan_answer,
    has_changes,
    has_edits,
    parse_anchors,
    read_edits,
)
from accelopt_agent.model.rewrite import apply_code
from accelopt_agent.syntax.lines import split_lines
from accelopt_agent.syntax.module_parts import read_parts

_REWRITE = re.compile(r"^[\s*_#`>-]*REWRITE\b[\s*_`:]*(.*)$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")
_LINES_FIRST = re.compile(r"^[\s*_#`>-]*LINES?\b", re.IGNORECASE)


@dataclass(frozen=True)
class Plan:
    """``text`` as the planner wrote it.

    It wants the ``anchors`` changed, or the definitions ``rewrites`` written anew; where both are empty, the file.
    """

    text: str
    anchors: tuple[Anchor, ...] = ()
    rewrites: tuple[str, ...] = ()

    @property
    def instruction(self) -> str:
        """The plan without the line that says where."""
        head, _, rest = self.text.strip().partition("\n")
        where = _REWRITE.match(head) or _LINES_FIRST.match(head)
        return rest.strip() if where and rest.strip() else self.text.strip()


def parse_plan(answer: str, text: str, bounds: Bounds, visible: tuple[int, int] | None = None) -> Plan:
    """Read the planner's answer about the version ``text``, of which it was shown the lines ``visible``.

    Raises:
        InvalidAnswerError: it names nothing to change, what is not there, or what may not change.
    """
    match = _REWRITE.search(answer)
    if match is None:
        anchors = parse_anchors(answer, text)
        fixed = fixed_lines(bounds, text)
        for anchor in anchors:
            if visible is not None and (anchor.first < visible[0] or anchor.last > visible[1]):
                raise InvalidAnswerError(
                    f"the plan names lines {anchor.first}-{anchor.last}, which it was not shown"
                )
            for line in range(anchor.first, anchor.last + 1):
                if line in fixed and split_lines(text).texts[line - 1].strip():
                    raise InvalidAnswerError(f"line {line} may not change: {fixed[line]}")
        return Plan(answer, anchors)
    parts = read_parts(text)
    names = _NAME.findall(match[1].partition("(")[0].partition(". ")[0])
    definitions = tuple(dict.fromkeys(n for n in names if n in parts.definitions))
    if not definitions and "file" not in [n.lower() for n in names]:
        raise InvalidAnswerError(
            f"the plan rewrites {match[1].strip()[:40] or 'nothing'}, which the file does not have"
        )
    fixed = fixed_lines(bounds, text)
    for name in definitions:
        if (why := fixed.get(parts.definitions[name][-1].lineno)) is not None:
            whose = " ".join("it" if word == name else word for word in why.split())
            raise InvalidAnswerError(f"{name} may not change: {whose}")
    return Plan(answer, (), definitions)


def apply_answer(text: str, plan: Plan, answer: str, bounds: Bounds) -> str:
    """Apply the coder's answer to the version ``text``: numbered changes, search-and-replace edits, or code that stands
    in the place of the definitions of the same names.

    Raises:
        InvalidAnswerError: the answer holds none of these, or does not carry out the plan.
    """
    if plan.anchors and (has_changes(answer) or has_edits(answer)):
        try:
            return apply_plan_answer(text, plan.anchors, answer)
        except InvalidAnswerError:
            _check_edits(text, answer, bounds)
            raise
    if has_edits(answer):
        return apply_edits(text, read_edits(answer))
    return apply_code(text, answer, bounds)


def _check_edits(text: str, answer: str, bounds: Bounds) -> None:
    """Raise InvalidAnswerError where edits that do not keep to a plan leave the bounds too, which is worse."""
    try:
        beyond = beyond_bounds(bounds, text, apply_edits(text, read_edits(answer)))
    except (InvalidAnswerError, SyntaxError, ValueError, RecursionError):
        return
    if beyond is not None:
        raise InvalidAnswerError(beyond)
