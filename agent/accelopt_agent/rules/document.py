"""The catalogue as a page of documentation: ``docs/reference/rules.md`` is what ``page`` returns."""

from __future__ import annotations

from accelopt_agent.rules.catalogue import Rule, rules

_INTRODUCTION = """# Rewrite rules

What `accelopt optimize` and the editor try without a model. A rule looks at one kernel and proposes rewrites of it;
each is a whole file in which only the kernel changed (for Triton also its launch). Rules know syntax and data flow,
not results: every proposal goes through the gate, and only what is right and faster is offered.

Rules that help against what bounds the kernel are tried first. What they did to NKIBench's baselines is in
[the results](../results/nki-rules.md).

<!-- Written by `python -m accelopt_agent.rules.document` from `agent/accelopt_agent/rules/catalogue.json`; a test keeps
it equal. -->
"""

_HEADINGS = {"nki": "NKI (Beta 1, `neuronxcc.nki`)", "triton": "Triton"}


def page() -> str:
    """The whole page in Markdown."""
    parts = [_INTRODUCTION]
    for dialect, heading in _HEADINGS.items():
        fitting = [rule for rule in rules() if rule.dialect == dialect]
        parts.append(f"## {heading}\n\n{len(fitting)} rules.\n")
        parts += [_entry(rule) for rule in fitting]
    return "\n".join(parts)


def _entry(rule: Rule) -> str:
    moves = ", ".join(f"{counter.replace('_', ' ')} {way}" for counter, way in rule.moves.items())
    return f"""### {rule.name}

{rule.title}.

- Applies when: {rule.applies}
- Should change: {moves}
- Helps kernels bound by: {", ".join(rule.helps)}
- Why: {rule.source}
"""


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  (a program that writes the page)
