"""Load a tile before a loop that does not change it, instead of once in each iteration."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.hoisting import departure
from accelopt_agent.rules.analysis.nki.kernel import INDEXING, open_nki
from accelopt_agent.rules.analysis.nki.list_of_tiles import hoisted
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    if kernel.dialect.mutates:
        yield from hoisted(kernel, "Load", loads=True)
        return
    for load in kernel.of("nl.load"):
        if load.statement is not None and (found := departure(kernel.flow, load.statement, INDEXING)):
            yield found.rewrite(kernel.flow, f"Load {load.statement.target_name}")
