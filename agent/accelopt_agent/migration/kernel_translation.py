"""Translates the body of one kernel of Beta 1, statement by statement, into today's dialect."""

from __future__ import annotations

import ast

from accelopt_agent.migration.instruction_translation import InstructionTranslation
from accelopt_agent.migration.spelling import INSTRUCTIONS, UntranslatableError, named_arguments


class KernelTranslation(InstructionTranslation):
    """Translates the statements of one function.

    ``translate`` returns lines for a statement, None to leave it.
    """

    def translate(self, statement: ast.stmt) -> list[str] | None:
        """Return today's lines for a simple statement, [] for one that goes away, None where it stays as it is.

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
