"""Translates the body of one kernel of Beta 1, statement by statement, into today's dialect."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.open_index import IndexReader, OpenIndex, plus, times

TABLE: dict[str, Any] = json.loads(files(__package__).joinpath("spellings.json").read_text("utf-8"))


class UntranslatableError(Exception):
    """A statement that cannot be moved by itself, and why."""


@dataclass(frozen=True)
class ModuleNames:
    """The names under which a file knows NKI's modules: ``nl``, ``nisa``; and single functions by dotted name."""

    names: dict[str, str]

    def dotted(self, node: ast.expr) -> str:
        """Return ``neuronxcc.nki.language.load`` for ``nl.load``, "" for what is not below NKI."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def below(self, node: ast.expr, module: str) -> str:
        dotted = self.dotted(node)
        prefix = f"neuronxcc.nki.{module}."
        return dotted.removeprefix(prefix) if dotted.startswith(prefix) else ""


@dataclass
class _View:
    """A translated operand: its text, and the text of each dimension of the result where it is known."""

    text: str
    counts: list[str] = field(default_factory=list)


class KernelTranslation:
    """Translates the statements of one function. ``translate`` returns lines for a statement, None to leave it."""

    def __init__(self, function: ast.FunctionDef, facts: FactTable, names: ModuleNames) -> None:
        self.facts, self.names = facts, names
        assigned = _assigned(function, facts)
        self.reader = IndexReader(assigned, lambda n: names.below(n, "language"), self.number)
        self.indices = set(assigned)
        self.blocks: dict[str, int] = {}
        self._taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        self._before: list[str] = []

    # Statements

    def translate(self, statement: ast.stmt) -> list[str] | None:
        """Return today's lines for a simple statement, [] for one that goes away, None where it stays as it is.

        Raises:
            UntranslatableError: it cannot be moved by itself.
        """
        self._before = []
        lines = self._statement(statement)
        if lines is None:
            return None
        lines = [*self._before, *lines]
        return None if lines == [ast.unparse(statement)] else lines

    def _statement(self, node: ast.stmt) -> list[str] | None:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.copy_location(ast.Assign([node.target], node.value), node)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assign(node.targets[0], node.value)
        if isinstance(node, ast.AugAssign):
            return self._accumulate(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._expression(node.value)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return [] if str(node.value.value).strip().startswith("end loop") else None
        if isinstance(node, ast.Return) and node.value is not None:
            return [f"return {self.value(node.value)}"]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return None
        return None

    def _assign(self, target: ast.expr, value: ast.expr) -> list[str]:
        if self.facts.kind(value) == "index" or self._is_grid(value):
            if isinstance(target, (ast.Name, ast.Tuple)):
                return []
        if isinstance(target, ast.Name):
            call = value if isinstance(value, ast.Call) else None
            language = self.names.below(call.func, "language") if call else ""
            if call and language in ("ndarray", "zeros", "ones", "full", "zeros_like", "empty_like"):
                return self._creation(target.id, call, language)
            masked = call is not None and self._mask(call) is not None
            instruction = self.names.below(call.func, "isa") if call else ""
            if call and (instruction in TABLE["instructions"] or (masked and language)):
                used = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
                name = self._fresh(target.id) if target.id in used else target.id
                lines = [self._allocation(name, call), *self._into(name, call)]
                return lines if name == target.id else [*lines, f"{target.id} = {name}"]
            return [f"{target.id} = {self.value(value)}"]
        if isinstance(target, ast.Subscript) and (self._is_tensor(target.value)):
            return self._into(self.view(target, self._clips(value)).text, value, target)
        return [f"{ast.unparse(target)} = {self.value(value)}"]

    def _accumulate(self, node: ast.AugAssign) -> list[str] | None:
        target = node.target
        base = target.value if isinstance(target, ast.Subscript) else target
        if not self._is_tensor(base) and self.facts.tile(node.value) is None:
            return None
        if not isinstance(node.op, ast.Add):
            raise UntranslatableError("only += on a tile has a counterpart")
        clips = self._clips(node.value)
        place = (
            self.view(target, clips).text if isinstance(target, ast.Subscript) else ast.unparse(target)
        )
        call = node.value if isinstance(node.value, ast.Call) else None
        if call and self._is_product(call):
            return self._into(place, call)
        other = self.value(node.value)
        if self.facts.kind(node.value) == "number":
            return [f"{self._nisa()}.tensor_scalar(dst={place}, data={place}, op0={self._nl()}.add, operand0={other})"]
        return [f"{self._nisa()}.tensor_tensor(dst={place}, data1={place}, data2={other}, op={self._nl()}.add)"]

    def _expression(self, call: ast.Call) -> list[str] | None:
        language, instruction = self.names.below(call.func, "language"), self.names.below(call.func, "isa")
        if language == "store":
            arguments = self._named(call, ["dst", "value"])
            clips = self._clips(call)
            target = self._operand(arguments["dst"], clips)
            value = arguments["value"]
            if self.facts.tile(value) is None:
                fact = self.facts.tile(arguments["dst"])
                if fact is None:
                    raise UntranslatableError("the place that is stored to did not run")
                name = self._fresh("filled")
                shape = ", ".join(map(str, fact.shapes[0]))
                return [
                    f"{name} = {self._nl()}.full(({shape},), {self.value(value)}, {self._nl()}.{fact.dtype}, "
                    f"buffer={self._nl()}.sbuf)",
                    f"{self._nisa()}.dma_copy(dst={target}, src={name})",
                ]
            return [f"{self._nisa()}.dma_copy(dst={target}, src={self._to_sbuf(value, clips)})"]
        if instruction == "dma_copy":
            arguments = self._named(call, [])
            if not {"dst_rmw_op", "oob_mode"}.isdisjoint(arguments):
                raise UntranslatableError("an indirect or combining dma_copy; today: .ap(vector_offset=...), dma_compute")
            clips = self._clips(call)
            return [
                f"{self._nisa()}.dma_copy(dst={self._operand(arguments['dst'], clips)}, "
                f"src={self._to_sbuf(arguments['src'], clips)})"
            ]
        if instruction in TABLE["instructions"]:
            name = self._fresh("unused")
            return [self._allocation(name, call), *self._into(name, call)]
        if self.names.dotted(call.func):
            return [self._call(call)]
        return [self.value(call)]

    # Creation

    def _creation(self, name: str, call: ast.Call, kind: str) -> list[str]:
        if kind in ("zeros_like", "empty_like"):
            return [f"{name} = {self._call(call)}"]
        parameters = ["shape", "fill_value", "dtype"] if kind == "full" else ["shape", "dtype"]
        arguments = self._named(call, parameters)
        shape = arguments.pop("shape")
        sizes = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else None
        buffer = arguments.pop("buffer", None)
        rest = "".join(f", {n}={self.value(v)}" for n, v in arguments.items() if n in ("fill_value", "dtype"))
        place = self._buffer(buffer)
        at = next((i for i, e in enumerate(sizes or []) if self._par_dim(e) is not None), 0)
        if sizes is None:
            return [f"{name} = {self._nl()}.{kind}({self.value(shape)}{rest}, buffer={place})"]
        texts = [self.value(e) for e in sizes]
        tile = texts[at:] if len(texts) - at > 1 else [*texts[at:], "1"]
        if place.endswith("hbm"):
            tile = texts
        made = f"{self._nl()}.{kind}(({', '.join(tile)}{',' if len(tile) == 1 else ''}){rest}, buffer={place})"
        if at:
            self.blocks[name] = at
            for text in reversed(texts[:at]):
                made = f"[{made} for _ in range({text})]"
        return [f"{name} = {made}"]

    def _buffer(self, buffer: ast.expr | None) -> str:
        if buffer is None:
            return f"{self._nl()}.sbuf"
        text = buffer.value if isinstance(buffer, ast.Constant) else ast.unparse(buffer)
        for memory in ("sbuf", "psum"):
            if memory in str(text):
                return f"{self._nl()}.{memory}"
        return f"{self._nl()}.shared_hbm"

    def _par_dim(self, node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Call) and self.names.below(node.func, "language") == "par_dim":
            return node.args[0]
        return None

    def _allocation(self, name: str, call: ast.expr) -> str:
        """Return the statement that makes the tile which a call returned in Beta 1."""
        fact = self.facts.tile(call)
        if fact is None:
            raise UntranslatableError("this instruction did not run, so that the shape of its result is not known")
        operands = self._tile_operands(call)
        like = next((n for n in operands if isinstance(n, ast.Name) and self.facts.shape(n) == fact.shapes[0]), None)
        if like is not None:
            shape = f"{like.id}.shape"
        elif len(fact.shapes) > 1:
            raise UntranslatableError("the shape of its result varies from iteration to iteration")
        else:
            known = self._known_sizes(operands)
            texts = [known.get(n, str(n)) if n > 1 else "1" for n in fact.shapes[0]]
            shape = f"({', '.join(texts)})"
        wanted = next((k.value for k in getattr(call, "keywords", []) if k.arg == "dtype"), None)
        if wanted is not None and ast.unparse(wanted) != "None":
            dtype = self.value(wanted)
        else:
            same = next(
                (n for n in operands if isinstance(n, ast.Name) and (t := self.facts.tile(n)) and t.dtype == fact.dtype),
                None,
            )
            dtype = f"{same.id}.dtype" if same is not None else f"{self._nl()}.{_dtype_name(fact.dtype)}"
        return f"{name} = {self._nl()}.ndarray({shape}, dtype={dtype}, buffer={self._nl()}.{fact.memory})"

    def _tile_operands(self, call: ast.expr) -> list[ast.expr]:
        found: list[ast.expr] = []
        for node in ast.walk(call):
            if node is not call and isinstance(node, (ast.Name, ast.Subscript)) and self.facts.tile(node):
                found.append(node)
        return found

    def _known_sizes(self, operands: Sequence[ast.expr]) -> dict[int, str]:
        """Return texts for sizes, of the operands that have them."""
        known: dict[int, str] = {}
        for node in operands:
            shape = self.facts.shape(node)
            if isinstance(node, ast.Subscript):
                try:
                    counts = self.view(node).counts
                except UntranslatableError:
                    continue
                if len(counts) == len(shape):
                    known.update({n: t for n, t in zip(shape, counts, strict=True) if t and not t.isdigit()})
            elif isinstance(node, ast.Name):
                for at, n in enumerate(shape):
                    known.setdefault(n, f"{node.id}.shape[{at}]")
        return known

    # Instructions with a destination

    def _into(self, place: str, value: ast.expr, target: ast.expr | None = None) -> list[str]:
        """Return the instruction that writes ``value`` to ``place``."""
        if isinstance(value, ast.Call):
            instruction, language = self.names.below(value.func, "isa"), self.names.below(value.func, "language")
            if instruction in TABLE["instructions"]:
                return self._instruction(place, value, instruction, target)
            if language in ("load", "copy", "matmul", "loop_reduce") or language in TABLE["unary"]:
                return self._language_into(place, value, language, target)
            if language in TABLE["binary"]:
                return self._binary_into(place, value, language, value.args[:2])
        if isinstance(value, ast.BinOp) and type(value.op).__name__ in ("Add", "Sub", "Mult"):
            name = TABLE["operators"][type(value.op).__name__]
            if self.facts.tile(value):
                return self._binary_into(place, value, name, [value.left, value.right])
        if self.facts.kind(value) == "number" or isinstance(value, ast.Constant):
            return [f"{self._nisa()}.memset(dst={place}, value={self.value(value)})"]
        return [f"{self._nisa()}.tensor_copy(dst={self._clipped_place(place, value)}, src={self._operand(value, self._clips(value))})"]

    def _clipped_place(self, place: str, value: ast.expr) -> str:
        clips = self._clips(value)
        return place if not clips or "[" in place else self._cut(place, self.facts.shape(value), clips)

    def _language_into(self, place: str, call: ast.Call, name: str, target: ast.expr | None) -> list[str]:
        clips = self._clips(call)
        at = self._clipped_place(place, call)
        first = call.args[0] if call.args else call.keywords[0].value
        nisa, nl = self._nisa(), self._nl()
        if name == "load":
            return [f"{nisa}.dma_copy(dst={at}, src={self._operand(first, clips)})"]
        if name == "copy":
            return [f"{nisa}.tensor_copy(dst={at}, src={self._operand(first, clips)})"]
        if name == "matmul":
            arguments = self._named(call, ["x", "y", "transpose_x"])
            turned = ast.unparse(arguments["transpose_x"]) == "True" if "transpose_x" in arguments else False
            left = self._operand(arguments["x"], {})
            if not turned:
                left_name = self._fresh("stationary")
                self._before.append(f"{left_name} = {nl}.copy({nl}.transpose({left}))")
                left = left_name
            return [f"{nisa}.nc_matmul(dst={at}, stationary={left}, moving={self._operand(arguments['y'], clips)})"]
        if name == "loop_reduce":
            arguments = self._named(call, ["value", "op", "loop_indices"])
            counters = arguments["loop_indices"]
            if not isinstance(counters, (ast.List, ast.Tuple)):
                raise UntranslatableError("the loops of loop_reduce are not listed where it is called")
            first_time = " and ".join(f"{self.value(c)} == 0" for c in counters.elts)
            value = self._operand(arguments["value"], clips)
            op = self._operation(arguments["op"])
            return [
                f"if {first_time}:",
                f"    {nisa}.tensor_copy(dst={at}, src={value})",
                "else:",
                f"    {nisa}.tensor_tensor(dst={at}, data1={at}, data2={value}, op={op})",
            ]
        return [f"{nisa}.activation(dst={at}, op={nl}.{name}, data={self._operand(first, clips)})"]

    def _binary_into(self, place: str, value: ast.expr, name: str, sides: Sequence[ast.expr]) -> list[str]:
        clips = self._clips(value)
        at = self._clipped_place(place, value)
        nisa, op = self._nisa(), f"{self._nl()}.{name}"
        shapes = [self.facts.shape(s) for s in sides]
        texts = [self._operand(s, clips) for s in sides]
        if shapes[0] and shapes[0] == shapes[1]:
            return [f"{nisa}.tensor_tensor(dst={at}, data1={texts[0]}, data2={texts[1]}, op={op})"]
        for data, other, reverse in ((0, 1, ""), (1, 0, ", reverse0=True")):
            column = shapes[other] and shapes[data] and shapes[other] == [shapes[data][0]] + [1] * (len(shapes[data]) - 1)
            if shapes[data] and (column or not shapes[other]):
                return [
                    f"{nisa}.tensor_scalar(dst={at}, data={texts[data]}, op0={op}, operand0={texts[other]}{reverse})"
                ]
        return [f"{nisa}.tensor_copy(dst={at}, src={op}({texts[0]}, {texts[1]}))"]

    def _instruction(
        self, place: str, call: ast.Call, name: str, target: ast.expr | None
    ) -> list[str]:
        arguments = self._named(call, TABLE["instructions"][name])
        clips = self._clips(call)
        nisa = self._nisa()
        at = self._clipped_place(place, call)
        if name == "memset":
            return [f"{nisa}.memset(dst={at}, value={self.value(arguments['value'])})"]
        if name in ("iota", "affine_select"):
            return [self._pattern(at, arguments, name, call)]
        sent: list[str] = [f"dst={at}"]
        for parameter, node in arguments.items():
            if parameter in TABLE["dropped_arguments"] or ast.unparse(node) == "None":
                continue
            if parameter == "engine":
                engine = ast.unparse(node).rpartition(".")[2]
                if (chosen := TABLE["engines"].get(engine, engine)) != "unknown":
                    sent.append(f"engine={nisa}.engine.{chosen}")
            elif parameter in ("op", "op0", "op1", "reduce_op", "comp_op0", "comp_op1"):
                sent.append(f"{parameter}={self._operation(node)}")
            elif name == "nc_matmul" and parameter == "stationary":
                sent.append(f"{parameter}={self._operand(node, {-1: clips[-2]} if -2 in clips else {})}")
            elif name == "nc_matmul" and parameter == "moving":
                sent.append(f"{parameter}={self._operand(node, {k: v for k, v in clips.items() if k != -2})}")
            else:
                sent.append(f"{parameter}={self._operand(node, clips)}")
        return [f"{nisa}.{name}({', '.join(sent)})"]

    def _pattern(self, place: str, arguments: dict[str, ast.expr], name: str, call: ast.Call) -> str:
        """``iota`` and ``affine_select``: an index expression becomes a pattern of steps."""
        node = arguments["expr"] if name == "iota" else arguments["pred"]
        rest, compare = "", ""
        if name == "affine_select":
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                raise UntranslatableError("a predicate of affine_select that is not one comparison of indices")
            compare = {"GtE": "greater_equal", "Gt": "greater", "Eq": "equal", "LtE": "less_equal", "Lt": "less"}.get(
                type(node.ops[0]).__name__, ""
            )
            node = ast.copy_location(ast.BinOp(node.left, ast.Sub(), node.comparators[0]), node)
            rest = (
                f", on_true_tile={self._operand(arguments['on_true_tile'], {})}, "
                f"on_false_value={self.value(arguments['on_false_value'])}, cmp_op={self._nl()}.{compare}"
            )
            if not compare:
                raise UntranslatableError("a comparison that affine_select does not have")
        index = self.reader.read(node)
        fact = self.facts.tile(call)
        if index is None or fact is None:
            raise UntranslatableError(f"the index expression of {name} is not affine")
        rank = len(fact.shapes[0])
        steps = {a.axis: "0" for a in index.axes}
        for axis in index.axes:
            steps[axis.axis] = plus(steps[axis.axis], axis.step)
        pattern = ", ".join(
            f"[{steps.get(axis, '0')}, {fact.shapes[0][axis + rank]}]" for axis in range(1 - rank, 0)
        )
        multiplier = steps.get(-rank, "0")
        return (
            f"{self._nisa()}.{name}(dst={place}, pattern=[{pattern}], offset={index.offset}, "
            f"channel_multiplier={multiplier}{rest})"
        )

    def _operation(self, node: ast.expr) -> str:
        """``np.add`` and ``nl.add`` alike: today's operations are those of ``nl``."""
        name = ast.unparse(node).rpartition(".")[2]
        name = {"max": "maximum", "min": "minimum", "sum": "add"}.get(name, name)
        return f"{self._nl()}.{name}"

    def _is_product(self, call: ast.Call) -> bool:
        return (
            self.names.below(call.func, "isa") == "nc_matmul" or self.names.below(call.func, "language") == "matmul"
        )

    # Operands

    def _to_sbuf(self, node: ast.expr, clips: dict[int, str]) -> str:
        """Return a source of DMA: what lies in PSUM goes through SBUF."""
        fact = self.facts.tile(node)
        text = self._operand(node, clips)
        return f"{self._nl()}.copy({text})" if fact is not None and fact.memory == "psum" else text

    def _operand(self, node: ast.expr, clips: dict[int, str]) -> str:
        shape = self.facts.shape(node)
        if isinstance(node, ast.Subscript) and self._is_tensor(node.value):
            return self.view(node, clips).text
        text = self.value(node)
        return self._cut(text, shape, clips) if clips and shape else text

    def _cut(self, text: str, shape: list[int], clips: dict[int, str]) -> str:
        """Return a whole tile cut to what a mask leaves."""
        entries = [":"] * len(shape)
        for axis, limit in clips.items():
            if -axis <= len(shape) and shape[axis] > 1:
                entries[axis] = f"0:{limit}"
        return text if all(e == ":" for e in entries) else f"{text}[{', '.join(entries)}]"

    def view(self, node: ast.Subscript, clips: dict[int, str] | None = None) -> _View:
        """Translate ``tensor[indices]``: block dimensions to a list's, open axes to slices.

        Raises:
            UntranslatableError: the indices are no slices.
        """
        base = self.value(node.value)
        entries = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.value, ast.Name) and self._is_grid_name(entries):
            entries = self._grid_entries(entries[0])
        blocks = self.blocks.get(node.value.id, 0) if isinstance(node.value, ast.Name) else 0
        for entry in entries[:blocks]:
            if isinstance(entry, ast.Slice) or (index := self.reader.read(entry)) is None or index.axes:
                raise UntranslatableError("a block dimension is indexed by more than a number")
            base = f"{base}[{index.offset}]"
        entries = entries[blocks:]
        if not entries or all(isinstance(e, ast.Constant) and e.value is Ellipsis for e in entries):
            shape = self.facts.shape(node)
            return _View(self._cut(base, shape, clips) if clips and shape else base)
        return self._sliced(base, entries, self.facts.shape(node), clips or {})

    def _sliced(self, base: str, entries: list[ast.expr], shape: list[int], clips: dict[int, str]) -> _View:
        texts: list[str] = []
        order: list[int] = []
        counts: list[str] = []
        numbers: list[int] = []
        for entry in entries:
            if isinstance(entry, ast.Slice):
                axis = len(counts) - len(shape)
                low = "0" if entry.lower is None else self.number(entry.lower)
                if axis in clips and entry.step is None:
                    texts.append(f"{low}:{plus(low, clips[axis])}")
                else:
                    texts.append(self._slice(entry))
                counts.append("")
                order.append(axis)
                continue
            if isinstance(entry, ast.Constant) and entry.value in (None, Ellipsis):
                raise UntranslatableError("None or ... among the indices of a tensor")
            if self.facts.tile(entry) is not None:
                raise UntranslatableError("a tile as an index; today: .ap(vector_offset=...) in a dma_copy")
            index = self.reader.read(entry)
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
            raise UntranslatableError("the axes of the indices are in another order than the dimensions; today: .permute or .ap")
        self._keep_rank(texts, numbers, len(shape), len(order))
        return _View(f"{base}[{', '.join(texts)}]", counts if len(counts) == len(shape) else [])

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
        end = plus(plus(index.offset, times(plus(count, "-1") if count.isdigit() else f"({count} - 1)", step)), "1")
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
        parts = ["" if p is None else self.number(p) for p in (node.lower, node.upper)]
        step = "" if node.step is None else f":{self.number(node.step)}"
        return f"{parts[0]}:{parts[1]}{step}"

    def _is_grid_name(self, entries: list[ast.expr]) -> bool:
        return len(entries) == 1 and self._is_grid(entries[0])

    def _is_grid(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Subscript) and self.names.below(node.value, "language") == "mgrid"

    def _grid_entries(self, grid: ast.expr) -> list[ast.expr]:
        assert isinstance(grid, ast.Subscript)
        return list(grid.slice.elts) if isinstance(grid.slice, ast.Tuple) else [grid.slice]

    def _is_tensor(self, node: ast.expr) -> bool:
        return self.facts.kind(node) in ("tile", "blocks") or (isinstance(node, ast.Name) and node.id in self.blocks)

    # Masks

    def _mask(self, value: ast.expr) -> ast.expr | None:
        for keyword in getattr(value, "keywords", []):
            if keyword.arg == "mask" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
                mask: ast.expr = keyword.value
                return mask
        return None

    def _clips(self, value: ast.expr) -> dict[int, str]:
        """Return what a call's mask leaves of each axis: the number of positions."""
        mask = self._mask(value)
        if mask is None:
            return {}
        clips: dict[int, str] = {}
        for part in _conjunction(mask):
            axis, limit = self._bound(part)
            clips[axis] = f"min({clips[axis]}, {limit})" if axis in clips else limit
        return clips

    def _bound(self, part: ast.expr) -> tuple[int, str]:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            raise UntranslatableError("a mask that is not made of comparisons of indices")
        left, right = self.reader.read(part.left), self.reader.read(part.comparators[0])
        operator = type(part.ops[0]).__name__
        if left is None or right is None or len(left.axes) + len(right.axes) != 1 or operator not in _STRICT:
            raise UntranslatableError("a mask over more than one axis, or none")
        axis = (left.axes or right.axes)[0]
        below = operator in ("Lt", "LtE")
        rising = not axis.step.startswith("-")
        if (left.axes != () and below == rising) or (right.axes != () and below != rising):
            index, bound = (left, right) if left.axes else (right, left)
            if axis.step not in ("1", "-1"):
                raise UntranslatableError("a mask on an index with steps")
            difference = (
                plus(bound.offset, _negative(index.offset)) if rising else plus(index.offset, _negative(bound.offset))
            )
            limit = difference if _STRICT[operator] else plus(difference, "1")
            return axis.axis, f"min({axis.count}, {limit})"
        raise UntranslatableError("a mask that cuts off the beginning of an axis")

    # Expressions

    def value(self, node: ast.expr) -> str:
        """Translate an expression, and put what has to come first before the statement."""
        if isinstance(node, ast.Subscript) and self._is_tensor(node.value):
            return self.view(node).text
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp) and self.facts.tile(node):
            return self._operator(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and self.facts.tile(node):
            return f"{self._nl()}.multiply({self.value(node.operand)}, -1.0)"
        if isinstance(node, ast.Compare) and self.facts.tile(node.left) and len(node.ops) == 1:
            name = TABLE["operators"].get(type(node.ops[0]).__name__)
            if name:
                return f"{self._nl()}.{name}({self.value(node.left)}, {self.value(node.comparators[0])})"
        if isinstance(node, (ast.Tuple, ast.List)):
            inner = ", ".join(self.value(e) for e in node.elts)
            comma = "," if len(node.elts) == 1 and isinstance(node, ast.Tuple) else ""
            return f"({inner}{comma})" if isinstance(node, ast.Tuple) else f"[{inner}]"
        return self._plain(node)

    def number(self, node: ast.expr) -> str:
        """Translate an expression that is a number."""
        return self.value(node)

    def _plain(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            engine = self.names.below(node, "isa")
            if engine in TABLE["engines"]:
                return f"{self._nisa()}.engine.{TABLE['engines'][engine]}"
            return f"{self.value(node.value)}.{node.attr}"
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            if (left, right) == (ast.unparse(node.left), ast.unparse(node.right)):
                return ast.unparse(node)
            copy = ast.BinOp(_parsed(left), node.op, _parsed(right))
            return ast.unparse(ast.fix_missing_locations(copy))
        return ast.unparse(node)

    def _operator(self, node: ast.BinOp) -> str:
        left, right = self.value(node.left), self.value(node.right)
        name = TABLE["operators"].get(type(node.op).__name__)
        if name is not None:
            return f"{self._nl()}.{name}({left}, {right})"
        if isinstance(node.op, ast.Div):
            return self._quotient(left, right, self.facts.tile(node.right) is not None)
        raise UntranslatableError(f"the operator {type(node.op).__name__} on tiles")

    def _quotient(self, left: str, right: str, by_tile: bool) -> str:
        nl = self._nl()
        if by_tile:
            return f"{nl}.multiply({left}, {nl}.reciprocal({right}))"
        return f"{nl}.multiply({left}, 1.0 / {right if _is_atom(right) else f'({right})'})"

    def _call(self, call: ast.Call) -> str:
        language, instruction = self.names.below(call.func, "language"), self.names.below(call.func, "isa")
        if (size := self._par_dim(call)) is not None:
            return self.value(size)
        if instruction in TABLE["instructions"] or (language == "matmul" and self.facts.tile(call)):
            name = self._fresh("result")
            self._before += [self._allocation(name, call), *self._into(name, call)]
            return name
        if language and self._mask(call) is not None:
            if self.facts.tile(call) is None:
                raise UntranslatableError("a masked call that did not run")
            name = self._fresh("result")
            self._before += [self._allocation(name, call), *self._into(name, call)]
            return name
        if language in TABLE["loops"]:
            return f"range({', '.join(self.value(a) for a in call.args)})"
        if language == "loop_reduce":
            raise UntranslatableError("nl.loop_reduce that is not assigned to a tile")
        if language == "divide":
            first, second = call.args[:2]
            return self._quotient(self.value(first), self.value(second), self.facts.tile(second) is not None)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "broadcast_to" and self.facts.tile(call.func.value):
            shape = [*call.args, *(k.value for k in call.keywords if k.arg == "shape")]
            wanted = self.value(shape[0]) if len(shape) == 1 else f"({', '.join(self.value(s) for s in shape)})"
            return f"{self._nl()}.broadcast_to({self.value(call.func.value)}, {wanted})"
        function = self.value(call.func)
        sent = [self.value(a) for a in call.args]
        sent += [
            f"{k.arg}={self.value(k.value)}" if k.arg else f"**{self.value(k.value)}"
            for k in call.keywords
            if not (k.arg == "mask" and language) and not (k.arg == "dtype" and ast.unparse(k.value) == "None")
        ]
        return f"{function}({', '.join(sent)})"

    # Names

    def _named(self, call: ast.Call, parameters: Sequence[str]) -> dict[str, ast.expr]:
        named = dict(zip(parameters, call.args, strict=False))
        if len(call.args) > len(parameters):
            raise UntranslatableError("more arguments by position than the instruction has")
        return named | {k.arg: k.value for k in call.keywords if k.arg}

    def _nl(self) -> str:
        return self._module("neuronxcc.nki.language", "nl")

    def _nisa(self) -> str:
        return self._module("neuronxcc.nki.isa", "nisa")

    def _module(self, dotted: str, usual: str) -> str:
        return next((name for name, module in self.names.names.items() if module == dotted), usual)

    def _fresh(self, name: str) -> str:
        number = 1
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"


_STRICT = {"Lt": True, "Gt": True, "LtE": False, "GtE": False}


def _negative(text: str) -> str:
    if text == "0":
        return "0"
    return times(text, "-1") if text.lstrip("-").isdigit() else f"-{text if _is_atom(text) else f'({text})'}"


def _is_atom(text: str) -> bool:
    return not isinstance(_parsed(text), (ast.BinOp, ast.IfExp, ast.Compare, ast.BoolOp))


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _dtype_name(name: str) -> str:
    return "bool_" if name == "bool" else name


def _conjunction(mask: ast.expr) -> list[ast.expr]:
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
        return [*_conjunction(mask.left), *_conjunction(mask.right)]
    if isinstance(mask, ast.BoolOp) and isinstance(mask.op, ast.And):
        return [part for value in mask.values for part in _conjunction(value)]
    return [mask]


def _assigned(function: ast.FunctionDef, facts: FactTable) -> dict[str, ast.expr]:
    """Return the index expressions that names of the function stand for; a name with two different ones is left out."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(target, ast.Name) and (facts.kind(value) == "index" or "mgrid" in ast.unparse(value)):
            pairs = [(target.id, value)]
        elif isinstance(target, ast.Tuple) and "mgrid" in ast.unparse(value):
            for at, name in enumerate(target.elts):
                if isinstance(name, ast.Name):
                    part = ast.Subscript(value, ast.Constant(at), ast.Load())
                    pairs.append((name.id, ast.copy_location(part, value)))
        for name, expression in pairs:
            if name in found and ast.unparse(found[name]) != ast.unparse(expression):
                twice.add(name)
            found[name] = expression
    return {name: value for name, value in found.items() if name not in twice}
