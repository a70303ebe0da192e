"""Counts the tokens of one planned and written candidate, in our prompts and in AccelOpt's layout."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from accelopt_agent.model.briefing import Briefing, attack, problem_text
from accelopt_agent.model.edit_bounds import bounds_of
from accelopt_agent.model.plan import Plan
from accelopt_agent.model.role_prompts import coder_user, debugger_user, planner_user, system_prompt
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import Role
from accelopt_agent.rules.catalogue import proposals
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.syntax.lines import split_lines
from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.proposer import CallTokens
from accelopt_benchmarks.simulated.edit import Edit, edit_of
from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.source_text import read_text

#: How many tokens a prompt of planner or coder may have, on the mean over the kernels: what a kernel needs is told, for
#: a check costs more than a prompt. How many experiences AccelOpt's planner is given.
MOST_TOKENS, EXPERIENCES = 6000, 16

#: How long a "short snippet" of an experience is taken to be.
SNIPPET_LINES = 8

#: A package that ships its vocabulary, so that nothing is loaded from elsewhere; the encoding of gpt-oss's family.
TOKENIZER, ENCODING = "bpe_openai", "o200k_base"


@dataclass(frozen=True)
class Tokens:
    """Tokens of one candidate on one kernel: in and out of the planner, in and out of who writes the code."""

    kernel: str
    ours: tuple[int, int, int, int]
    theirs: tuple[int, int, int, int]

    @property
    def share(self) -> float:
        return sum(self.ours) / sum(self.theirs)


def counter() -> Callable[[str], int]:
    """Counts tokens of a text.

    Raises:
        ModuleNotFoundError: the tokenizer's package is missing.
    """
    encoding = importlib.import_module(TOKENIZER).get_encoding(ENCODING)
    return lambda text: len(encoding.encode(text))


def realistic_edit(
    text: str, kernel: Kernel, measurement: KernelMeasurement | None, target: str
) -> Edit | None:
    """Return the first rewrite that the catalogue has for the kernel, as a planner and a coder would tell it,
    or None."""
    candidate = next(iter(proposals(text, kernel, measurement, target)), None)
    return None if candidate is None else edit_of(text, candidate)


def our_tokens(
    count: Callable[[str], int],
    data: Path,
    path: Path,
    reference: Path,
    measurement: KernelMeasurement,
    target: str,
) -> tuple[int, int, int, int] | None:
    """Return one plan and one edit with the prompts as they are rendered for the kernel in ``path``, whose problem is
    ``reference``, before anything was tried."""
    text = read_text(path)
    kernel = _kernel(text)
    edit = realistic_edit(text, kernel, measurement, target)
    if edit is None:
        return None
    node = Node(text, kernel, measurement)
    file = examine(path, text, project_root=data, problem=reference.relative_to(data).as_posix())
    bounds = bounds_of(text, kernel.name, file.problem.ref, file.problem.files.values())
    briefing = Briefing(problem_text(file, bounds), attack=attack(kernel.dialect, measurement.bound, 0))
    planner = count(system_prompt("planner", node, target)) + count(planner_user(node, _ANY, briefing))
    coder = count(system_prompt("coder", node, target)) + count(
        coder_user(node, Plan(edit.plan, edit.anchors), briefing=briefing)
    )
    return planner, count(edit.plan), coder, count(edit.answer)


def their_tokens(
    count: Callable[[str], int],
    data: Path,
    path: Path,
    reference: Path,
    measurement: KernelMeasurement,
    target: str,
) -> tuple[int, int, int, int] | None:
    """Return the same plan and edit in AccelOpt's layout, with the prompts of its checkout ``data``: the
    whole kernel, its problem, all profile fields and ``EXPERIENCES`` experiences in, the whole kernel out."""
    text, prompts = read_text(path), data / "prompts"
    kernel = _kernel(text)
    edit = realistic_edit(text, kernel, measurement, target)
    if edit is None:
        return None
    plan, problem = edit.plan.split("\n", 1)[1], read_text(reference)
    fields: list[str] = json.loads(read_text(prompts / "planner_prompts/displayed_profiles.json"))
    profile = "".join(f"{name}: 0.482913\n" for name in fields)
    experience = _experience(text, edit)
    base = read_text(prompts / "planner_prompts/base_prompt.txt") + "\n\n#Experiences\n"
    planner = base + f"{experience}\n\n" * EXPERIENCES + _filled(
        read_text(prompts / "planner_prompts/planner_prompt_template.txt"),
        problem_code=problem, kernel_code=text, profile=profile,
    )  # fmt: skip
    executor = read_text(prompts / "executor_prompts/base_prompt.txt") + _filled(
        read_text(prompts / "executor_prompts/user_prompt_template.txt"),
        problem_code=problem, kernel_code=text, optimization_plan=plan,
    )  # fmt: skip
    return count(planner), count(plan), count(executor), count(f"```python\n{edit.after}```")


def _experience(text: str, edit: Edit) -> str:
    """Return one item as its summarizer is told to write it: a title, a description, two short snippets."""
    lines = split_lines(text).texts
    old = "\n".join("\n".join(lines[a.first - 1 : a.last]) for a in edit.anchors)
    new = "\n".join(line for line in edit.answer.splitlines() if not line.startswith(("<<<<<<<", ">>>>>>>")))
    plan = edit.plan.split("\n", 1)[1]
    title = plan.split(".")[0]
    old, new = ("\n".join(snippet.splitlines()[:SNIPPET_LINES]) for snippet in (old, new))
    return f"**{title}**\n{plan}\nOriginal code:\n```\n{old}\n```\nOptimized code:\n```\n{new}\n```"


def _filled(template: str, **values: str) -> str:
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    return template


def call_tokens(measurement: KernelMeasurement, text: str, target: str) -> CallTokens:
    """Return what one call of each role takes for the kernel, at four characters per token: for simulated
    runs."""
    kernel = next(k for k in find_kernels(text).kernels if k.name == measurement.name)
    node = Node(text, kernel, measurement)
    edit = realistic_edit(text, kernel, measurement, target)
    plan, anchors, answer = (
        (edit.plan, edit.anchors, edit.answer) if edit else ("LINES 1-1\n" + "x" * 300, (), "")
    )
    failed = Node(
        text, kernel, measurement, parent=node, failure=Failure("wrong-result", "row 3 is off by 2e-3")
    )

    def taken(role: Role, user: str, reply: str) -> tuple[int, int]:
        return (len(system_prompt(role, node, target)) + len(user)) // 4, len(reply) // 4

    return CallTokens(
        taken("planner", planner_user(node, _ANY), plan),
        taken("coder", coder_user(node, Plan(plan, anchors)), answer),
        taken("debugger", debugger_user(failed, _ANY), answer),
    )


_ANY = ModelSettings("http://localhost", "any")


def rows(tokens: Sequence[Tokens]) -> list[GoalResult]:
    """Return the mean length of a planner's and a coder's prompt, against the goal, with what one candidate takes in
    AccelOpt's layout."""
    if not tokens:
        return []
    ours, theirs = (
        sum(map(sum, side)) / len(tokens) for side in zip(*((t.ours, t.theirs) for t in tokens), strict=True)
    )
    detail = f"{ours:.0f} tokens per candidate, {theirs:.0f} in AccelOpt's layout; {TOKENIZER}, {ENCODING}"
    rows = []
    for role, at in (("planner", 0), ("coder", 2)):
        mean = sum(t.ours[at] for t in tokens) / len(tokens)
        rows.append(
            GoalResult(
                f"tokens of a {role}'s prompt", f"<= {MOST_TOKENS}", mean, "", mean <= MOST_TOKENS, detail
            )
        )
    return rows


def _kernel(text: str) -> Kernel:
    return find_kernels(text).launched[0]
