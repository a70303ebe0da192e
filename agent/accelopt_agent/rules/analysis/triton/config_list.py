"""Finds the configurations of an autotuned kernel, wherever the file lists them, and adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel, integer


@dataclass(frozen=True)
class TuneConfig:
    """One configuration: the numbers of its arguments and options, and the text of arguments that are no numbers.

    ``numbers`` has several values for what a comprehension goes over.
    """

    numbers: dict[str, tuple[int, ...]]
    others: dict[str, str]

    @property
    def complete(self) -> bool:
        """Return whether all that is no number means the same anywhere: flags and strings."""
        constant = {"True", "False", "None"}
        return all(text in constant or text[:1] in ("'", '"') for text in self.others.values())


#: What a configuration says besides the kernel's arguments.
OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook", "ir_override"})


#: How many variables and functions are followed from the decorator to the list.
_DEEPEST = 3


class ConfigList:
    """The configurations of a kernel's autotune decorator.

    They stand in the decorator, in a variable of the module or in a function that returns them, as a list or a
    comprehension over lists of numbers.
    """

    def __init__(self, kernel: TritonKernel, expression: cst.BaseExpression) -> None:
        self.kernel, self._source, self._given = kernel, kernel.source, expression
        self._listed: cst.List | None = None
        self._calls: list[tuple[cst.Call, dict[str, tuple[int, ...]]]] = []
        self.known = self._read(expression, 0)

    @property
    def configs(self) -> list[TuneConfig]:
        return [self._config(call, names) for call, names in self._calls]

    def added(self, texts: list[str]) -> list[ByteEdit]:
        """Return the edits that add configurations, given as source text."""
        listed = self._listed
        if listed is not None and listed.elements:
            last = listed.elements[-1]
            return self._source.added(self._source.start(last), self._source.end(last.value), texts)
        at = self._source.end(self._given)
        return [ByteEdit(at, at, f" + [{', '.join(texts)}]")]

    def _read(self, node: cst.BaseExpression, depth: int) -> bool:
        """Note the configurations that an expression makes, as far as they are written out; return whether it makes a
        list."""
        if isinstance(node, cst.List):
            self._listed = self._listed or node
            for element in node.elements:
                self._note(element.value, {})
            return True
        if isinstance(node, cst.ListComp):
            self._note(node.elt, self._iterated(node.for_in))
            return True
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return self._read(node.left, depth) and self._read(node.right, depth)
        if isinstance(node, cst.Name) and depth < _DEEPEST:
            module_value = self._module_value(node.value)
            return module_value is not None and self._read(module_value, depth + 1)
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Name)
            and not node.args
            and depth < _DEEPEST
        ):
            returned = self._returned(node.func.value)
            lists = [self._read(value, depth + 1) for value in returned]
            if (
                len(returned) > 1
            ):  # which one is decided at run time: only what is added to the result is certain
                self._listed = None
            return bool(lists) and all(lists)
        return False

    def _note(self, node: cst.BaseExpression, names: dict[str, tuple[int, ...]]) -> None:
        if isinstance(node, cst.Call) and self.kernel.names.path(node.func) == "triton.Config":
            self._calls.append((node, names))

    def _config(self, call: cst.Call, names: dict[str, tuple[int, ...]]) -> TuneConfig:
        arguments: list[tuple[str, cst.BaseExpression]] = []
        for argument in call.args:
            if argument.keyword is None or argument.keyword.value == "kwargs":
                arguments += self._entries(argument.value)
            else:
                arguments.append((argument.keyword.value, argument.value))
        numbers: dict[str, tuple[int, ...]] = {}
        others: dict[str, str] = {}
        for name, value in arguments:
            number = integer(value)
            if number is not None:
                numbers[name] = (number,)
            elif isinstance(value, cst.Name) and value.value in names:
                numbers[name] = names[value.value]
            else:
                others[name] = self._source.code(value)
        return TuneConfig(numbers, others)

    def _entries(self, node: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]]:
        if isinstance(node, cst.Dict):
            pairs = [(e.key, e.value) for e in node.elements if isinstance(e, cst.DictElement)]
            return [
                (str(key.evaluated_value), value) for key, value in pairs if isinstance(key, cst.SimpleString)
            ]
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
            return [(a.keyword.value, a.value) for a in node.args if a.keyword is not None]
        return []

    def _iterated(self, part: cst.CompFor | None) -> dict[str, tuple[int, ...]]:
        """Return the numbers that the variables of a comprehension take, where they are written out."""
        values: dict[str, tuple[int, ...]] = {}
        while part is not None:
            iterable = part.iter
            if isinstance(iterable, cst.Name):
                iterable = self._module_value(iterable.value) or iterable
            elements = (
                [e.value for e in iterable.elements] if isinstance(iterable, (cst.List, cst.Tuple)) else []
            )
            targets = (
                [e.value for e in part.target.elements]
                if isinstance(part.target, cst.Tuple)
                else [part.target]
            )
            for position, target in enumerate(targets):
                if isinstance(target, cst.Name) and elements:
                    column = [
                        e.elements[position].value
                        if isinstance(e, (cst.Tuple, cst.List)) and position < len(e.elements)
                        else e
                        for e in elements
                    ]
                    numbers = [integer(c) for c in column]
                    if all(n is not None for n in numbers):
                        values[target.value] = tuple(n for n in numbers if n is not None)
            part = part.inner_for_in
        return values

    def _module_value(self, name: str) -> cst.BaseExpression | None:
        bound = [
            a.value
            for a in self._source.walk(self._source.module, cst.Assign)
            for t in a.targets
            if isinstance(t.target, cst.Name) and t.target.value == name
        ]
        return bound[0] if len(bound) == 1 else None

    def _returned(self, name: str) -> list[cst.BaseExpression]:
        functions = [
            f for f in self._source.walk(self._source.module, cst.FunctionDef) if f.name.value == name
        ]
        if len(functions) != 1:
            return []
        values = [r.value for r in self._source.walk(functions[0].body, cst.Return)]
        return [v for v in values if v is not None]


def open_configs(kernel: TritonKernel) -> ConfigList | None:
    """Return the configurations of an autotuned kernel.

    None where they are made in a way that is not read.
    """
    autotune = kernel.autotuner
    if autotune is None:
        return None
    keyword = next(
        (a.value for a in autotune.args if a.keyword is not None and a.keyword.value == "configs"), None
    )
    expression = keyword or next((a.value for a in autotune.args if a.keyword is None), None)
    configs = ConfigList(kernel, expression) if expression is not None else None
    return configs if configs is not None and configs.known and configs.configs else None


def config_text(kernel: TritonKernel, like: TuneConfig, settings: Mapping[str, int]) -> str:
    """Return a configuration as source text: ``like`` (the largest of its values each) but for
    ``settings``."""
    values = (
        {n: str(max(v)) for n, v in like.numbers.items()}
        | like.others
        | {n: str(v) for n, v in settings.items()}
    )
    inside = ", ".join(f'"{n}": {t}' for n, t in values.items() if n not in OPTIONS)
    options = "".join(f", {n}={t}" for n, t in values.items() if n in OPTIONS)
    return f"{kernel.names.spelled('triton.Config')}({{{inside}}}{options})"
