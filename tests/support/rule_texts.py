"""Every text that a rule's test says is rewritten, with its rule, and the rewrites."""

from __future__ import annotations

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels
from support.nki_rule_cases import REWRITTEN
from support.triton_memory_cases import MEMORY_CASES
from support.triton_product_cases import PRODUCT_CASES
from support.triton_rule_cases import CASES as OTHER_CASES
from support.triton_rule_kernels import IMPORTS

TEXTS = {f"{case}": (case.rule, case.whole(case.before)) for case in REWRITTEN} | {
    f"{case.rule}: {case.name}": (case.rule, IMPORTS + case.text)
    for case in (*OTHER_CASES, *PRODUCT_CASES, *MEMORY_CASES)
    if case.changes
}


def rewrites(rule: str, text: str) -> list[str]:
    (kernel,) = find_kernels(text).kernels
    return [candidate.text for candidate in catalogue.apply(rule, text, kernel)]
