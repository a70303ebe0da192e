"""Describes what a version changes of the original in one sentence."""

from __future__ import annotations

from accelopt_profiling.kernels import find_kernels

#: So many steps are told one by one.
STEPS_TOLD = 3


def net_summary(base_text: str, text: str, summary: str) -> str:
    """Return ``summary``, the steps from ``base_text`` to ``text``, as one sentence: repeated steps once, many counted,
    and before them which kernels stand in the place of which."""
    steps = list(dict.fromkeys(_bare(step) for step in summary.split("; then: ")))
    told = "; then: ".join(steps[:STEPS_TOLD])
    if len(steps) > STEPS_TOLD:
        told += f"; and {len(steps) - STEPS_TOLD} more"
    before, after = (
        {k.name for k in find_kernels(t).kernels if not k.device_function} for t in (base_text, text)
    )
    gone, added = sorted(before - after), sorted(after - before)
    if not gone:
        return told
    return (
        f"{_listed(added)} in place of {_listed(gone)}: {told}"
        if added
        else f"without {_listed(gone)}: {told}"
    )


def _bare(step: str) -> str:
    step = step.strip()
    return step if step.endswith("...") else step.rstrip(".")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
