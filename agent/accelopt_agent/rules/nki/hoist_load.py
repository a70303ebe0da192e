"""Load a tile before a loop that does not change it, instead of once in each iteration."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.hoisting import departure
from accelopt_agent.rules.analysis.nki.kernel import INDEXING, open_nki
from accelopt_agent.rules.analysis.nki.list_of_tiles import hoisted, kept_chains, only_loads
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    if kernel.dialect.mutates:
        for chain in kept_chains(kernel):
            if only_loads(kernel, chain) and (edits := hoisted(kernel, chain)):
                over = kernel.source.code(chain.outer.target)
                name = chain.last.target_name
                yield Rewrite(
                    edits, f"Load {name} once before the loop over {over}, which does not change it."
                )
        return
    for load in kernel.of("nl.load"):
        if load.statement is not None and (found := departure(kernel.flow, load.statement, INDEXING)):
            yield found.rewrite(kernel.flow, f"Load {load.statement.target_name}")
