"""Translates the indices of a tensor into slices of today's dialect, or into ``.ap`` where they are no slices."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.open_index import IndexReader, OpenIndex, plus, times
from accelopt_agent.migration.spelling import ModuleNames, UntranslatableError, named_arguments
from accelopt_profiling.source_text import parse_expression


@dataclass
class TensorView:
    """A translated operand: its text, and the text of each dimension of the result where it is known."""

    text: str
    counts: list[str] = field(default_factory=list)


class ViewTranslation:
    """Translates the indices of one function's tensors.

    ``number`` translates an expression that is a number.
    """

    def __init__(
        self, facts: FactTable, names: ModuleNames, reader: IndexReader, number: Callable[[ast.expr], str]
    ) -> None:
        self._facts, self._names, self._reader, self._number = facts, names, reader, number

    def indexed(
        self,
        base: str,
        entries: list[ast.expr],
        sizes: list[int],
        shape: list[int],
        clips: dict[int, str] | None,
    ) -> TensorView:
        """Translate ``base[entries]``: ``sizes`` are those of the tensor, ``shape`` that of the result.

        Raises:
            UntranslatableError: the indices are neither slices nor affine.
        """
        try:
            return self._sliced(base, entries, shape, clips or {}, max(0, len(sizes) - len(entries)))
        except UntranslatableError:
            text = None if clips else self._pattern_view(base, entries, sizes, len(shape))
            if text is None:
                raise
            return TensorView(text)

    def _pattern_view(self, base: str, entries: list[ast.expr], sizes: list[int], rank: int) -> str | None:
        """Return ``base.ap(...)`` for indices that are no slices, with the strides of the size that ran; None where
        an index is not affine."""
        if len(entries) != len(sizes):
            return None
        read = [
            None if isinstance(entry, ast.Slice) or self._facts.tile(entry) else self._reader.read(entry)
            for entry in entries
        ]
        rank = max([rank, *(-axis.axis for index in read if index is not None for axis in index.axes)])
        steps = dict.fromkeys(range(-rank, 0), "0")
        counts = dict.fromkeys(range(-rank, 0), "1")
        offset = "0"
        for at, index in enumerate(read):
            stride = str(prod(sizes[at + 1 :]))
            if index is None:
                return None
            offset = plus(offset, times(index.offset, stride))
            for axis in index.axes:
                steps[axis.axis] = plus(steps[axis.axis], times(axis.step, stride))
                counts[axis.axis] = axis.count
        pattern = ", ".join(f"[{steps[a]}, {counts[a]}]" for a in range(-rank, 0))
        return f"{base}.ap(pattern=[{pattern}], offset={offset})"

    def _sliced(
        self, base: str, entries: list[ast.expr], shape: list[int], clips: dict[int, str], whole: int
    ) -> TensorView:
        """``whole`` dimensions of the tensor come after the indexed ones."""
        texts: list[str] = []
        order: list[int] = []
        counts: list[str] = []
        numbers: list[int] = []
        for node in entries:
            entry = self._plain_slice(node)
            if isinstance(entry, ast.Slice):
                axis = len(counts) - len(shape)
                low = "0" if entry.lower is None else self._number(entry.lower)
                if axis in clips and entry.step is None:
                    texts.append(f"{low}:{plus(low, clips[axis])}")
                else:
                    texts.append(self._slice(entry))
                counts.append("")
                order.append(axis)
                continue
            if isinstance(entry, ast.Constant) and entry.value in (None, Ellipsis):
                raise UntranslatableError("None or ... among the indices of a tensor")
            if self._facts.tile(entry) is not None:
                raise UntranslatableError("a tile as an index; today: .ap(vector_offset=...) in a dma_copy")
            index = self._reader.read(entry)
            if index is None:
                raise UntranslatableError(f"the index {ast.unparse(entry)} is not affine")
            text, axes, count = self._one(index, clips)
            if not axes:
                numbers.append(len(texts))
            else:
                counts.append(count)
            texts.append(text)
            order += axes
        if order != sorted(order) or len({*order}) != len(order):
            raise UntranslatableError(
                "the axes of the indices are in another order than the dimensions; today: .permute or .ap"
            )
        self._keep_rank(texts, numbers, len(shape), len(order) + whole)
        return TensorView(f"{base}[{', '.join(texts)}]", counts if len(counts) == len(shape) else [])

    def _plain_slice(self, entry: ast.expr) -> ast.expr:
        """Return ``start:start + size`` for ``nl.ds(start, size)``, other entries as they are."""
        if not isinstance(entry, ast.Call) or self._names.below(entry.func, "language") not in (
            "ds",
            "dslice",
        ):
            return entry
        start, size = (named_arguments(entry, ["start", "size"])[name] for name in ("start", "size"))
        low = self._number(start)
        return ast.Slice(parse_expression(low), parse_expression(plus(low, self._number(size))))

    def _one(self, index: OpenIndex, clips: dict[int, str]) -> tuple[str, list[int], str]:
        """Return one dimension's text, the result's axes in it, and the count."""
        if not index.axes:
            return index.offset, [], ""
        axes = sorted(index.axes, key=lambda a: a.axis)
        inner = axes[-1]
        count, step = inner.count, inner.step
        for outer in reversed(axes[:-1]):
            if step != "1" or outer.step != count:
                raise UntranslatableError("two open axes in one dimension that are not one run; today: .ap")
            count = times(outer.count, count)
            if outer.axis in clips:
                raise UntranslatableError("a mask on one of two axes in one dimension")
        if len(axes) == 1:
            count = clips.get(inner.axis, count)
        if step.startswith("-"):
            raise UntranslatableError("an index that counts down; today: .ap with a negative step")
        if step == "1":
            return f"{index.offset}:{plus(index.offset, count)}", [a.axis for a in axes], inner.count
        end = plus(
            plus(index.offset, times(plus(count, "-1") if count.isdigit() else f"({count} - 1)", step)), "1"
        )
        return f"{index.offset}:{end}:{step}", [a.axis for a in axes], inner.count

    def _keep_rank(self, texts: list[str], numbers: list[int], rank: int, slices: int) -> None:
        """Turn numbers into slices of one, so that a tile keeps two dimensions."""
        missing = min(rank, 2) - slices
        opened = [n for n in range(len(texts)) if n not in numbers]
        after = [n for n in numbers if not opened or n > opened[0]]
        chosen = after or list(reversed(numbers))
        for place in chosen[: max(0, missing)]:
            texts[place] = f"{texts[place]}:{plus(texts[place], '1')}"

    def _slice(self, node: ast.Slice) -> str:
        parts = ["" if p is None else self._number(p) for p in (node.lower, node.upper)]
        step = "" if node.step is None else f":{self._number(node.step)}"
        return f"{parts[0]}:{parts[1]}{step}"
