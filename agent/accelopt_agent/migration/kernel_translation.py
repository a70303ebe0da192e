"""Translates the body of a kernel of Beta 1 into today's dialect.

Calls that return a tile become instructions that write to a destination.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from accelopt_agent.migration.expression_translation import ExpressionTranslation
from accelopt_agent.migration.open_index import plus
from accelopt_agent.migration.spelling import (
    BINARY,
    ENGINES,
    INSTRUCTIONS,
    OPERATORS,
    UNARY,
    UntranslatableError,
    named_arguments,
    taken_today,
)


class InstructionTranslation(ExpressionTranslation):
    """Adds instructions with a destination, and the tiles that they write to."""

    def _creation(self, name: str, call: ast.Call, kind: str) -> list[str]:
        if kind in ("zeros_like", "empty_like"):
            return [f"{name} = {self._call(call)}"]
        parameters = ["shape", "fill_value", "dtype"] if kind == "full" else ["shape", "dtype"]
        arguments = named_arguments(call, parameters)
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
        expression = (
            f"{self._nl()}.{kind}(({', '.join(tile)}{',' if len(tile) == 1 else ''}){rest}, buffer={place})"
        )
        if at and not place.endswith("hbm"):
            self.blocks[name] = at
            for text in reversed(texts[:at]):
                expression = f"[{expression} for _ in range({text})]"
        return [f"{name} = {expression}"]

    def _buffer(self, buffer: ast.expr | None) -> str:
        if buffer is None:
            return f"{self._nl()}.sbuf"
        text = buffer.value if isinstance(buffer, ast.Constant) else ast.unparse(buffer)
        for memory in ("sbuf", "psum"):
            if memory in str(text):
                return f"{self._nl()}.{memory}"
        return f"{self._nl()}.shared_hbm"

    def _allocation(self, name: str, call: ast.expr) -> str:
        """Return the statement that makes the tile which a call returned in Beta 1."""
        fact = self.facts.tile(call)
        if fact is None:
            raise UntranslatableError(
                "this instruction did not run, so that the shape of its result is not known"
            )
        operands = self._tile_operands(call)
        like = next(
            (n for n in operands if isinstance(n, ast.Name) and self.facts.shape(n) == fact.shapes[0]), None
        )
        if like is not None:
            shape = f"{like.id}.shape"
        elif len(fact.shapes) > 1:
            raise UntranslatableError("the shape of its result varies from iteration to iteration")
        else:
            sizes = self._known_sizes(operands)
            texts = [sizes.get(n, str(n)) if n > 1 else "1" for n in fact.shapes[0]]
            shape = f"({', '.join(texts)})"
        dtype_argument = next((k.value for k in getattr(call, "keywords", []) if k.arg == "dtype"), None)
        if dtype_argument is not None and ast.unparse(dtype_argument) != "None":
            dtype = self.value(dtype_argument)
        else:
            same = next(
                (
                    n
                    for n in operands
                    if isinstance(n, ast.Name) and (t := self.facts.tile(n)) and t.dtype == fact.dtype
                ),
                None,
            )
            dtype = f"{same.id}.dtype" if same is not None else f"{self._nl()}.{_dtype_name(fact.dtype)}"
        return f"{name} = {self._nl()}.ndarray({shape}, dtype={dtype}, buffer={self._nl()}.{fact.memory})"

    def _tile_operands(self, call: ast.expr) -> list[ast.expr]:
        operands: list[ast.expr] = []
        for node in ast.walk(call):
            if node is not call and isinstance(node, (ast.Name, ast.Subscript)) and self.facts.tile(node):
                operands.append(node)
        return operands

    def _known_sizes(self, operands: Sequence[ast.expr]) -> dict[int, str]:
        """Return texts for sizes, of the operands that have them."""
        sizes: dict[int, str] = {}
        for node in operands:
            shape = self.facts.shape(node)
            if isinstance(node, ast.Subscript):
                try:
                    counts = self.view(node).counts
                except UntranslatableError:
                    continue
                if len(counts) == len(shape):
                    sizes.update({n: t for n, t in zip(shape, counts, strict=True) if t and not t.isdigit()})
            elif isinstance(node, ast.Name):
                for at, n in enumerate(shape):
                    sizes.setdefault(n, f"{node.id}.shape[{at}]")
        return sizes

    def written_to(self, name: str, call: ast.Call) -> list[str]:
        """Return the statements that make a tile ``name`` and let ``call`` write to it."""
        return [self._allocation(name, call), *self._into(name, call)]

    def _into(self, place: str, value: ast.expr, target: ast.expr | None = None) -> list[str]:
        """Return the instruction that writes ``value`` to ``place``."""
        if isinstance(value, ast.Call):
            instruction, language = (
                self.names.below(value.func, "isa"),
                self.names.below(value.func, "language"),
            )
            if instruction in INSTRUCTIONS:
                return self._instruction(place, value, instruction, target)
            if language in ("load", "load_transpose2d", "copy", "matmul", "loop_reduce") or language in UNARY:
                return self._language_into(place, value, language, target)
            if language in BINARY:
                return self._binary_into(place, value, language, value.args[:2])
        if isinstance(value, ast.BinOp) and type(value.op).__name__ in ("Add", "Sub", "Mult"):
            name = OPERATORS[type(value.op)]
            if self.facts.tile(value):
                return self._binary_into(place, value, name, [value.left, value.right])
        if self.facts.kind(value) == "number" or isinstance(value, ast.Constant):
            return [f"{self._nisa()}.memset(dst={place}, value={self.value(value)})"]
        clips = self.masks.clips(value)
        at = self._clipped_place(place, value)
        if clips and isinstance(value, ast.Call):
            return [f"{self._nisa()}.tensor_copy(dst={at}, src={self._sent(value, clips)})"]
        return [f"{self._nisa()}.tensor_copy(dst={at}, src={self._operand(value, clips)})"]

    def _clipped_place(self, place: str, value: ast.expr) -> str:
        clips = self.masks.clips(value)
        return place if not clips or "[" in place else self._cut(place, self.facts.shape(value), clips)

    def _language_into(self, place: str, call: ast.Call, name: str, target: ast.expr | None) -> list[str]:
        clips = self.masks.clips(call)
        at = self._clipped_place(place, call)
        first = call.args[0] if call.args else call.keywords[0].value
        nisa, nl = self._nisa(), self._nl()
        if name == "load":
            return [f"{nisa}.dma_copy(dst={at}, src={self._operand(first, clips)})"]
        if name == "load_transpose2d":
            return [f"{nisa}.dma_transpose(dst={at}, src={self._operand(first, clips)})"]
        if name == "copy":
            return [f"{nisa}.tensor_copy(dst={at}, src={self._operand(first, clips)})"]
        if name == "matmul":
            arguments = named_arguments(call, ["x", "y", "transpose_x"])
            turned = ast.unparse(arguments["transpose_x"]) == "True" if "transpose_x" in arguments else False
            stationary = self._operand(arguments["x"], {})
            if not turned:
                left_name = self._fresh("stationary")
                self._before.append(f"{left_name} = {nl}.copy({nl}.transpose({stationary}))")
                stationary = left_name
            return [
                f"{nisa}.nc_matmul(dst={at}, stationary={stationary}, moving={self._operand(arguments['y'], clips)})"
            ]
        if name == "loop_reduce":
            arguments = named_arguments(call, ["x", "op", "loop_indices"])
            counters = arguments["loop_indices"]
            loops = counters.elts if isinstance(counters, (ast.List, ast.Tuple)) else [counters]
            if any(self.facts.kind(c) != "number" and not isinstance(c, ast.Constant) for c in loops):
                raise UntranslatableError("the loops of loop_reduce are not listed where it is called")
            first_time = " and ".join(f"{self.value(c)} == 0" for c in loops)
            value = self._operand(arguments["x"], clips)
            op = self._operation(arguments["op"])
            return [
                f"if {first_time}:",
                f"    {nisa}.tensor_copy(dst={at}, src={value})",
                "else:",
                f"    {nisa}.tensor_tensor(dst={at}, data1={at}, data2={value}, op={op})",
            ]
        return [f"{nisa}.activation(dst={at}, op={nl}.{name}, data={self._operand(first, clips)})"]

    def _binary_into(self, place: str, value: ast.expr, name: str, sides: Sequence[ast.expr]) -> list[str]:
        clips = self.masks.clips(value)
        at = self._clipped_place(place, value)
        nisa, op = self._nisa(), f"{self._nl()}.{name}"
        shapes = [self.facts.shape(s) for s in sides]
        texts = [self._operand(s, clips) for s in sides]
        if shapes[0] and shapes[0] == shapes[1]:
            return [f"{nisa}.tensor_tensor(dst={at}, data1={texts[0]}, data2={texts[1]}, op={op})"]
        for data, other, reverse in ((0, 1, ""), (1, 0, ", reverse0=True")):
            column = (
                shapes[other]
                and shapes[data]
                and shapes[other][0] == shapes[data][0]
                and all(n == 1 for n in shapes[other][1:])
            )
            if shapes[data] and (column or not shapes[other]):
                return [
                    f"{nisa}.tensor_scalar(dst={at}, data={texts[data]}, op0={op}, operand0={texts[other]}{reverse})"
                ]
        return [f"{nisa}.tensor_copy(dst={at}, src={op}({texts[0]}, {texts[1]}))"]

    def _instruction(self, place: str, call: ast.Call, name: str, target: ast.expr | None) -> list[str]:
        arguments = named_arguments(call, INSTRUCTIONS[name])
        clips = self.masks.clips(call)
        nisa = self._nisa()
        at = self._clipped_place(place, call)
        if name in ("nc_transpose", "nc_matmul") and self._memory(target) == "sbuf":
            product = self._fresh("product")  # TensorE writes to PSUM
            return [*self.written_to(product, call), f"{nisa}.tensor_copy(dst={at}, src={product})"]
        if name == "tensor_tensor" and (sides := self._unlike_sides(arguments)):
            operation = self._operation(arguments["op"]).rpartition(".")[2]
            return self._binary_into(place, call, operation, sides)
        if name == "memset":
            return [f"{nisa}.memset(dst={at}, value={self.value(arguments['value'])})"]
        if name in ("iota", "affine_select"):
            return [self._pattern(at, arguments, name, call)]
        sent: list[str] = [f"dst={at}"]
        for parameter, node in arguments.items():
            if not taken_today(name, parameter) or ast.unparse(node) == "None":
                continue
            if parameter == "engine":
                engine = ast.unparse(node).rpartition(".")[2]
                if (chosen := ENGINES.get(engine, engine)) != "unknown":
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

    def _memory(self, target: ast.expr | None) -> str:
        """Return the memory that an assignment writes to, "" where unknown."""
        fact = self.facts.of(target.value) if isinstance(target, ast.Subscript) else None
        return "" if fact is None else fact.memory

    def _unlike_sides(self, arguments: dict[str, ast.expr]) -> list[ast.expr]:
        """Return the operands of ``tensor_tensor`` where their shapes differ.

        Today's has to have them alike.
        """
        sides = [arguments[n] for n in ("data1", "data2") if n in arguments]
        shapes = [self.facts.shape(s) for s in sides]
        return sides if len(sides) == 2 and all(shapes) and shapes[0] != shapes[1] else []

    def _pattern(self, place: str, arguments: dict[str, ast.expr], name: str, call: ast.Call) -> str:
        """``iota`` and ``affine_select``: an index expression becomes a pattern of steps."""
        node = arguments["expr"] if name == "iota" else arguments["pred"]
        rest, compare = "", ""
        if name == "affine_select":
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                raise UntranslatableError(
                    "a predicate of affine_select that is not one comparison of indices"
                )
            compare = {
                "GtE": "greater_equal",
                "Gt": "greater",
                "Eq": "equal",
                "LtE": "less_equal",
                "Lt": "less",
            }.get(type(node.ops[0]).__name__, "")
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
        if not isinstance(node, ast.Attribute) and not self.names.below(node, "language"):
            return self.value(node)  # chosen by whoever calls
        name = ast.unparse(node).rpartition(".")[2]
        name = {"max": "maximum", "min": "minimum", "sum": "add"}.get(name, name)
        return f"{self._nl()}.{name}"

    def _is_product(self, call: ast.Call) -> bool:
        return (
            self.names.below(call.func, "isa") == "nc_matmul"
            or self.names.below(call.func, "language") == "matmul"
        )


def _dtype_name(name: str) -> str:
    return "bool_" if name == "bool" else name


class KernelTranslation(InstructionTranslation):
    """Translates the statements of one function.

    ``translate`` returns lines for a statement, None to leave it.
    """

    def translate(self, statement: ast.stmt) -> list[str] | None:
        """Return today's lines for a simple statement.

        They are [] for one that goes away, None where it stays as it is.

        Raises:
            UntranslatableError: it cannot be moved by itself.
        """
        self._before.clear()
        self.masks.begin_statement()
        lines = self._statement(statement)
        if lines is None:
            return None
        lines = [*self._before, *lines]
        return None if lines == [ast.unparse(statement)] else lines

    def loop_range(self, node: ast.expr) -> str:
        """Return what a loop runs over, today.

        Raises:
            UntranslatableError: it takes statements before the loop.
        """
        self._before.clear()
        text = self.value(node)
        if self._before:
            raise UntranslatableError("what the loop runs over is computed by an instruction")
        return text

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
        return None

    def _assign(self, target: ast.expr, value: ast.expr) -> list[str]:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            pairs = [p for p in zip(target.elts, value.elts, strict=True) if self.facts.kind(p[1]) != "index"]
            if len(pairs) < len(target.elts):
                left, right = (
                    ", ".join(ast.unparse(t) for t, _ in pairs),
                    ", ".join(self.value(v) for _, v in pairs),
                )
                return [f"{left} = {right}"] if pairs else []
        indices = self.facts.kind(value) == "index" or self._is_grid(value)
        if indices and isinstance(target, (ast.Name, ast.Tuple)):
            return []
        if isinstance(target, ast.Name):
            if self.masks.named.get(target.id) is value:
                return self.masks.assignment(target.id, value)
            call = value if isinstance(value, ast.Call) else None
            language = self.names.below(call.func, "language") if call else ""
            if call and language in ("ndarray", "zeros", "ones", "full", "zeros_like", "empty_like"):
                return self._creation(target.id, call, language)
            masked = call is not None and self.masks.of(call) is not None
            instruction = self.names.below(call.func, "isa") if call else ""
            if call and (
                instruction in INSTRUCTIONS or language == "load_transpose2d" or (masked and language)
            ):
                used = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
                name = self._fresh(target.id) if target.id in used else target.id
                lines = [self._allocation(name, call), *self._into(name, call)]
                return lines if name == target.id else [*lines, f"{target.id} = {name}"]
            return [f"{target.id} = {self.value(value)}"]
        if isinstance(target, ast.Subscript) and (self._is_tensor(target.value)):
            return self._into(self.view(target, self.masks.clips(value)).text, value, target)
        names = ast.unparse(target)
        names = names[1:-1] if isinstance(target, ast.Tuple) and names.startswith("(") else names
        return [f"{names} = {self.value(value)}"]

    def _accumulate(self, node: ast.AugAssign) -> list[str] | None:
        target = node.target
        base = target.value if isinstance(target, ast.Subscript) else target
        if not self._is_tensor(base) and self.facts.tile(node.value) is None:
            return None
        if not isinstance(node.op, ast.Add):
            raise UntranslatableError("only += on a tile has a counterpart")
        clips = self.masks.clips(node.value)
        place = self.view(target, clips).text if isinstance(target, ast.Subscript) else ast.unparse(target)
        call = node.value if isinstance(node.value, ast.Call) else None
        if call and self._is_product(call):
            return self._into(place, call)
        other = self.value(node.value)
        if self.facts.tile(node.value) is None:
            return [
                f"{self._nisa()}.tensor_scalar(dst={place}, data={place}, op0={self._nl()}.add, operand0={other})"
            ]
        return [
            f"{self._nisa()}.tensor_tensor(dst={place}, data1={place}, data2={other}, op={self._nl()}.add)"
        ]

    def _expression(self, call: ast.Call) -> list[str] | None:
        language, instruction = self.names.below(call.func, "language"), self.names.below(call.func, "isa")
        if language == "store":
            arguments = named_arguments(call, ["dst", "value"])
            clips = self.masks.clips(call)
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
            arguments = named_arguments(call, [])
            if not {"dst_rmw_op", "oob_mode"}.isdisjoint(arguments):
                raise UntranslatableError(
                    "an indirect or combining dma_copy; today: .ap(vector_offset=...), dma_compute"
                )
            clips = self.masks.clips(call)
            return [
                f"{self._nisa()}.dma_copy(dst={self._operand(arguments['dst'], clips)}, "
                f"src={self._to_sbuf(arguments['src'], clips)})"
            ]
        if instruction in INSTRUCTIONS:
            name = self._fresh("unused")
            return [self._allocation(name, call), *self._into(name, call)]
        if self.names.dotted(call.func):
            return [self._call(call)]
        return [self.value(call)]
