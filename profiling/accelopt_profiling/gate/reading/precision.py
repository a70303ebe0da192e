"""Find low-precision formats and products of float32 in TF32."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at
from accelopt_profiling.gate.reading.vocabulary import WORDS

_KEYWORDS = ("input_precision", "allow_tf32")
#: Subjects of products that are taken in TF32.
_TF32 = frozenset(["TF32 by input_precision", "TF32 by allow_tf32", "TF32 by default", "TF32 by name"])


def precision(facts: Facts, node: ast.AST) -> Iterator[StaticFinding]:
    match node:
        case ast.Attribute(attr=name) if name in WORDS["low_precision"]:
            yield at(node, "low-precision", f".{name}", f"It uses {name}.")
        case ast.keyword("input_precision" | "allow_tf32" as name, ast.Constant("tf32" | 1)):
            yield at(node.value, "low-precision", f"TF32 by {name}", f"It asks for TF32 ({name}).")
        case ast.Call(keywords=keywords) if facts.called(node) == "triton.language.dot":
            options = {k.arg: getattr(k.value, "value", None) for k in keywords}
            if not options.keys() & _KEYWORDS:
                message = "tl.dot multiplies float32 in TF32 unless it is told otherwise."
                yield at(node, "low-precision", "TF32 by default", message)
            elif options.get("input_precision") == "ieee" or options.get("allow_tf32") is False:
                yield at(node, "full-precision", "tl.dot", "tl.dot multiplies float32 as it is.")
        case ast.Constant("tf32" | "ieee" as name):
            # the product itself tells it
            if getattr(facts.parents.get(node), "arg", "") != "input_precision":
                code, by = ("low", "TF32 by name") if name == "tf32" else ("full", "by name")
                yield at(node, f"{code}-precision", by, f"It names the precision {name}.")
        case ast.Constant(str() as name) if name in WORDS["low_precision"]:
            yield at(node, "low-precision", name, f"It names {name}.")


def lowered_products(
    findings: Iterable[StaticFinding], before: Collection[tuple[str, str]]
) -> list[StaticFinding]:
    """Return products of float32 that the original takes in full and a rewrite in TF32. ``before`` has the codes and
    subjects of the original. It counts where inputs are float32."""
    codes, subjects = {code for code, _ in before}, {subject for _, subject in before}
    products = [f for f in findings if f.subject in _TF32]
    if "full-precision" not in codes or subjects & _TF32:
        return []
    difference = "The original multiplies float32 in full."
    return [replace(f, code="lowered-products", message=f"{f.message} {difference}") for f in products]
