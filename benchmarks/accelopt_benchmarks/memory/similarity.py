"""Computes how similar two kernels are, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from accelopt_memory.features import SHINGLES_KEPT, WEIGHTS, KernelFeatures


def similarity(a: KernelFeatures, b: KernelFeatures) -> float:
    """Return the similarity of two kernels' features: 0 for different dialects or nothing in common, 1 for
    the same structure. Symmetric and deterministic."""
    if a.dialect != b.dialect:
        return 0.0
    parts = {
        "calls": weighted_jaccard(a.calls, b.calls),
        "shingles": sketch_jaccard(a.shingles, b.shingles),
        "loops": weighted_jaccard(_count(a.loops), _count(b.loops)),
        "dtypes": weighted_jaccard(_count(a.dtypes), _count(b.dtypes)),
        "bound": None if a.bound is None or b.bound is None else float(a.bound == b.bound),
    }
    scores = {name: score for name, score in parts.items() if score is not None}
    total = sum(WEIGHTS[name] for name in scores)
    if not total:
        return 0.0
    return min(1.0, sum(WEIGHTS[name] * score for name, score in scores.items()) / total)


def weighted_jaccard(a: Mapping[str, int], b: Mapping[str, int]) -> float | None:
    """Sum of minima over sum of maxima of two multisets. None when both are empty."""
    names = a.keys() | b.keys()
    most = sum(max(a.get(n, 0), b.get(n, 0)) for n in names)
    return sum(min(a.get(n, 0), b.get(n, 0)) for n in names) / most if most else None


def sketch_jaccard(a: tuple[str, ...], b: tuple[str, ...]) -> float | None:
    """Return the Jaccard index of two bottom-k sketches (exact while both fit, Broder's estimate where they
    do not)."""
    if not a and not b:
        return None
    one, other = set(a), set(b)
    union = one | other
    if len(union) > SHINGLES_KEPT:
        union = set(sorted(union)[:SHINGLES_KEPT])
    return len(one & other & union) / len(union)


def _count(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
