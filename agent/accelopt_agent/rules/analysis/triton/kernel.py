"""Reads a Triton kernel: its constexpr arguments, its launches in the same file, its autotune configs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from accelopt_agent.rules.analysis.data_flow import DataFlow
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import RuleContext

TL = "triton.language"


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """``kernel[grid](...)``: ``arguments`` by parameter name, ``grid`` as written between the brackets."""

    call: cst.Call
    grid: cst.BaseExpression
    arguments: dict[str, cst.BaseExpression]
    function: cst.FunctionDef | None

    def keyword(self, name: str) -> cst.Arg | None:
        return next((a for a in self.call.args if a.keyword is not None and a.keyword.value == name), None)


class TritonKernel:
    def __init__(self, subject: RuleContext) -> None:
        self.subject = subject
        self.source = subject.source
        self.names = subject.names
        self.function = subject.function
        self.flow = DataFlow(subject.source, subject.function, subject.names)

    @cached_property
    def parameters(self) -> list[str]:
        params = self.function.params
        return [p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)]

    @cached_property
    def constexprs(self) -> set[str]:
        names = set()
        for param in self.source.walk(self.function.params, cst.Param):
            annotation = param.annotation.annotation if param.annotation else None
            if isinstance(annotation, cst.SimpleString):
                with contextlib.suppress(cst.ParserSyntaxError):
                    annotation = cst.parse_expression(str(annotation.evaluated_value))
            if annotation is not None and self.names.path(annotation) == f"{TL}.constexpr":
                names.add(param.name.value)
        return names

    def is_call(self, node: cst.CSTNode | None, *functions: str) -> bool:
        """Return whether ``node`` calls one of ``functions`` of ``triton.language``."""
        return isinstance(node, cst.Call) and self.names.path(node.func) in {f"{TL}.{f}" for f in functions}

    def calls(self, *functions: str) -> list[cst.Call]:
        """Return the calls in the kernel of ``functions`` of ``triton.language``, in source order."""
        return [c for c in self.source.walk(self.function.body, cst.Call) if self.is_call(c, *functions)]

    def spell(self, function: str) -> str | None:
        return self.names.spelled(f"{TL}.{function}")

    @cached_property
    def launches(self) -> list[KernelLaunch]:
        """The launches in the file of a kernel that stands at the top level, outside of other kernels."""
        if "." in self.subject.kernel.name or "#" in self.subject.kernel.name:
            return []
        launches = []
        for call in self.source.walk(self.source.module, cst.Call):
            target = call.func
            if not isinstance(target, cst.Subscript) or len(target.slice) != 1:
                continue
            index = target.slice[0].slice
            is_ours = isinstance(target.value, cst.Name) and target.value.value == self.function.name.value
            if is_ours and isinstance(index, cst.Index) and (launch := self._launch(call, index.value)):
                launches.append(launch)
        return launches

    def _launch(self, call: cst.Call, grid: cst.BaseExpression) -> KernelLaunch | None:
        arguments, starred = {}, False
        for position, arg in enumerate(call.args):
            if arg.star == "**":
                return None
            starred = starred or bool(arg.star)  # what stands behind ``*x.stride()`` has no known place
            if arg.keyword is not None:
                arguments[arg.keyword.value] = arg.value
            elif not starred and position < len(self.parameters):
                arguments[self.parameters[position]] = arg.value
        function = next((p for p in self.source.parents(call) if isinstance(p, cst.FunctionDef)), None)
        return KernelLaunch(call, grid, arguments, function)

    def declared(self, names: Sequence[str], default: str) -> list[ByteEdit]:
        """Declare constexpr arguments behind the kernel's last one.

        With ``default`` where others before have one.
        """
        parameters = list(self.source.walk(self.function.params, cst.Param))
        # A parameter's own span leaves out its annotation and default; what is below it has the comma after it too.
        last = parameters[-1]
        parts = [part for part in (last.name, last.annotation, last.default) if part is not None]
        end = max(self.source.end(node) for part in parts for node in self.source.below(part))
        constexpr = self.spell("constexpr")
        value = f" = {default}" if any(p.default is not None for p in parameters) else ""
        return self.source.added(
            self.source.start(last.name), end, [f"{name}: {constexpr}{value}" for name in names]
        )

    @cached_property
    def heuristics(self) -> dict[str, cst.BaseExpression] | None:
        """What ``triton.heuristics`` computes at each launch, by argument.

        None where that is not written out.
        """
        heuristics: dict[str, cst.BaseExpression] = {}
        for decorator in self.function.decorators:
            call = decorator.decorator
            if not isinstance(call, cst.Call) or self.names.path(call.func) != "triton.heuristics":
                continue
            table = call.args[0].value if len(call.args) == 1 else None
            for entry in table.elements if isinstance(table, cst.Dict) else (None,):
                key = entry.key if isinstance(entry, cst.DictElement) else None
                if not isinstance(entry, cst.DictElement) or not isinstance(key, cst.SimpleString):
                    return None
                heuristics[str(key.evaluated_value)] = entry.value
        return heuristics

    @cached_property
    def autotuner(self) -> cst.Call | None:
        """The decorator that chooses among configurations: Triton's, or one of a library that is called like it."""
        for decorator in self.function.decorators:
            call = decorator.decorator
            if isinstance(call, cst.Call) and (
                self.names.path(call.func) == "triton.autotune"
                or any(a.keyword is not None and a.keyword.value == "configs" for a in call.args)
            ):
                return call
        return None

    @cached_property
    def configs(self) -> list[cst.Call]:
        """The ``triton.Config(...)`` entries written out in lists of the kernel's autotune decorator: beside one of a
        comprehension no other can stand."""
        autotune = self.autotuner
        if autotune is None:
            return []
        listed = (e.value for e in self.source.walk(autotune, cst.Element) if isinstance(e.value, cst.Call))
        return [call for call in listed if self.names.path(call.func) == "triton.Config"]

    @property
    def is_autotuned(self) -> bool:
        return self.autotuner is not None

    def assigned(self, launch: KernelLaunch, name: str) -> cst.Assign | None:
        """Return the one assignment of ``name`` in the function that launches."""
        if launch.function is None:
            return None
        assignments = []
        for assign in self.source.walk(launch.function.body, cst.Assign):
            for target in assign.targets:
                if any(
                    n.value == name for n in self.source.walk(target.target, cst.Name) if self._is_bound(n)
                ):
                    assignments.append(assign)
        others = [
            a
            for a in self.source.walk(launch.function.body, cst.AugAssign)
            if self.source.code(a.target) == name
        ]
        simple = (
            len(assignments) == 1 and isinstance(assignments[0].targets[0].target, cst.Name) and not others
        )
        return assignments[0] if simple and len(assignments[0].targets) == 1 else None

    def _is_bound(self, name: cst.Name) -> bool:
        """Return whether a name in an assignment's target is a variable, as ``size`` in ``ctx.size`` is not."""
        parent = self.source.parent(name)
        return not (isinstance(parent, cst.Attribute) and parent.attr is name)

    def grid_expression(self, launch: KernelLaunch) -> cst.BaseExpression:
        """Return the grid itself, where the launch names a variable that is assigned once before."""
        if isinstance(launch.grid, cst.Name) and (assign := self.assigned(launch, launch.grid.value)):
            return assign.value
        return launch.grid

    def hides(self, *names: str) -> bool:
        """Return whether the file gives one of these names of built-in functions to something of its own."""
        source = self.source
        bound = [f.name for f in source.walk(source.module, cst.FunctionDef)]
        bound += [p.name for p in source.walk(source.module, cst.Param)]
        targets = [t.target for t in source.walk(source.module, cst.AssignTarget)]
        imported = [
            a.asname.name if a.asname else a.name for a in source.walk(source.module, cst.ImportAlias)
        ]
        return any(isinstance(n, cst.Name) and n.value in names for n in (*bound, *targets, *imported))

    def keyword_edits(self, call: cst.Call, name: str, value: str) -> list[ByteEdit]:
        """Set a keyword argument of a call that has arguments: change it, or add it after the last one."""
        present = next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)
        if present is not None:
            return [self.source.replace(present.value, value)]
        last = call.args[-1]
        return self.source.added(self.source.start(last), self.source.end(last), [f"{name}={value}"])


def open_triton(subject: RuleContext) -> TritonKernel | None:
    """Return the kernel, or None when the file does not import ``triton.language`` in a way that names
    resolve."""
    kernel = subject.analysis(TritonKernel)
    return kernel if kernel.names.spelled(f"{TL}.load") else None


def integer(node: cst.BaseExpression | None) -> int | None:
    """Return the value of an integer literal."""
    return int(node.value, 0) if isinstance(node, cst.Integer) else None
