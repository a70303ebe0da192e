"""Determines which statements of a kernel write and read what, so that rules know that a rewrite keeps the meaning.

The analysis is by name and errs towards "may be written": views share their tensor's storage, and where tiles can be
written through an argument, an argument of a function that is not known counts as read and written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property

import libcst as cst

from accelopt_agent.rules.analysis.imported_names import ImportedNames
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.statement import Statement, root_name


class DataFlow:
    """The statements of one function, and the names each reads and writes."""

    def __init__(
        self,
        source: ParsedSource,
        function: cst.FunctionDef,
        names: ImportedNames,
        writing: frozenset[str] = frozenset(),
        packages: Collection[str] | None = None,
        written: Callable[[cst.Call], Mapping[cst.Arg, bool] | None] | None = None,
    ) -> None:
        """``writing`` are keyword arguments through which a call writes ("dst", "reduce_res").

        ``packages`` those whose functions write through nothing else. With None no function writes what it is given
        (Triton: tensors are values). ``written`` is for mutable tiles: it returns the arguments that a call of a known
        instruction writes, the destination first, each with whether it is read too; None for other calls.
        """
        self.source = source
        self.function = function
        self._writing, self._known, self._resolved = writing, packages, names
        self._written = written
        self.statements: list[Statement] = []
        self._by_node: dict[cst.CSTNode, Statement] = {}
        self._views: dict[str, set[str]] = defaultdict(set)
        self.parameters = {p.name.value for p in self.source.walk(function.params, cst.Param)}
        self._imported = names.imported()
        self.names = [n for n in self.source.walk(function.body, cst.Name) if self._is_variable(n)]
        self._collect(function.body, ())
        for statement in self.statements:
            self._add_view(statement)

    def _collect(self, block: cst.CSTNode, loops: tuple[cst.For, ...]) -> None:
        for node in getattr(block, "body", ()):
            if not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                continue
            statement = Statement(node, block, loops)
            self._set_destination(statement)
            for name in self.source.walk(node, cst.Name):
                if not self._is_variable(name):
                    continue
                reads, writes = self._role(name)
                if reads:
                    statement.reads.add(name.value)
                if writes:
                    statement.writes.add(name.value)
                if writes and (reads or isinstance(self.source.parent(name), (cst.Subscript, cst.Arg))):
                    statement.stores.add(name.value)
            self.statements.append(statement)
            self._by_node[node] = statement
            inner = (*loops, node) if isinstance(node, cst.For) else loops
            for below in self.source.children(node):
                if isinstance(below, cst.IndentedBlock):
                    self._collect(below, inner)
                elif isinstance(below, (cst.Else, cst.If, cst.Finally, cst.ExceptHandler)):
                    self._collect_branches(below, inner)

    def _set_destination(self, statement: Statement) -> None:
        """Note what an instruction that is a whole statement overwrites."""
        body = statement.node.body if isinstance(statement.node, cst.SimpleStatementLine) else ()
        only = body[0] if len(body) == 1 else None
        call = only.value if isinstance(only, cst.Expr) else None
        written = self._written(call) if self._written is not None and isinstance(call, cst.Call) else None
        argument, read = next(iter((written or {}).items()), (None, True))
        whole = argument is not None and not read and root_name(argument.value) is not None
        if isinstance(call, cst.Call) and argument is not None and whole:
            statement.destination, statement.call = argument.value, call

    def _collect_branches(self, node: cst.CSTNode, loops: tuple[cst.For, ...]) -> None:
        for below in self.source.children(node):
            if isinstance(below, cst.IndentedBlock):
                self._collect(below, loops)
            elif isinstance(below, (cst.Else, cst.If, cst.Finally, cst.ExceptHandler)):
                self._collect_branches(below, loops)

    def _is_variable(self, name: cst.Name) -> bool:
        if name.value in self._imported:
            return False
        parent = self.source.parent(name)
        if isinstance(parent, cst.Attribute):
            return parent.value is name
        if isinstance(parent, cst.Arg):
            return parent.keyword is not name
        return not isinstance(parent, (cst.ImportAlias, cst.AsName, cst.FunctionDef, cst.Param))

    def _role(self, name: cst.Name) -> tuple[bool, bool]:
        """Return whether this occurrence of a name reads, and whether it writes."""
        node: cst.CSTNode = name
        parent = self.source.parent(node)
        while isinstance(parent, cst.Subscript) and parent.value is node:
            node, parent = parent, self.source.parent(parent)
        if isinstance(parent, cst.AssignTarget):
            return False, True
        if isinstance(parent, cst.AugAssign) and parent.target is node:
            return True, True
        if isinstance(parent, cst.AnnAssign) and parent.target is node:
            return False, True
        if isinstance(parent, (cst.For, cst.CompFor)) and parent.target is node:
            return False, True
        if isinstance(parent, (cst.Element, cst.StarredElement)) and self._in_target(parent):
            return False, True
        if any(isinstance(p, (cst.Lambda, cst.FunctionDef)) for p in self._around(name)):
            return True, True
        if isinstance(parent, cst.Arg) and parent.value is node:
            call = self.source.parent(parent)
            if self._written is not None and isinstance(call, cst.Call):
                written = self._written(call)
                if written is not None:
                    return written.get(parent, True), parent in written
            return True, self._call_writes(parent)
        return True, self._written is not None and self._written_as_view(name)

    def _written_as_view(self, name: cst.Name) -> bool:
        """Return whether a call writes through a view of ``name`` that is made in its argument, or keeps it:
        ``f(t.ap(...))``, ``tiles.append(...)``."""
        node: cst.CSTNode = name
        for above in self.source.parents(name):
            if isinstance(above, cst.Arg):
                return above.value is node and self._call_writes(above)
            if isinstance(above, cst.Attribute) and above.attr.value in _MUTATING:
                return True
            chained = isinstance(above, (cst.Attribute, cst.Subscript)) and above.value is node
            if not chained and not (isinstance(above, cst.Call) and above.func is node):
                return False
            node = above
        return False

    def _around(self, name: cst.Name) -> Iterator[cst.CSTNode]:
        for node in self.source.parents(name):
            if node is self.function:
                return
            yield node

    def _in_target(self, node: cst.CSTNode) -> bool:
        """Return whether a tuple element stands left of an assignment or is a loop's target."""
        below: cst.CSTNode = node
        for above in self.source.parents(node):
            if isinstance(above, (cst.AssignTarget, cst.For)):
                return isinstance(above, cst.AssignTarget) or above.target is below
            if not isinstance(above, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
                return False
            below = above
        return False

    def _call_writes(self, arg: cst.Arg) -> bool:
        call = self.source.parent(arg)
        if not isinstance(call, cst.Call):
            return False
        if arg.keyword is not None and arg.keyword.value in self._writing:
            return True
        written = self._written(call) if self._written is not None else None
        if written is not None:
            return arg in written
        called = self.source.code(call.func).rpartition(".")[2]
        if called in STORES:
            return arg.keyword is None and call.args[0] is arg
        return self._known is not None and self._resolved.foreign(call.func, self._known)

    def _add_view(self, statement: Statement) -> None:
        """``a = b[...]``, ``a = b`` and ``a = b.method(...)``: from here on ``a`` may be a view of ``b``."""
        if self._written is not None:
            self._add_held(statement)
        value = statement.assign.value if statement.assign else None
        while isinstance(value, (cst.Subscript, cst.Attribute, cst.Call)):
            if isinstance(value, cst.Attribute) and value.attr.value in ("shape", "dtype"):
                return
            value = value.func if isinstance(value, cst.Call) else value.value
        if not isinstance(value, cst.Name) or not self._is_variable(value):
            return
        if isinstance(statement.bound, cst.Name):
            self._link(statement.bound.value, value.value)

    def _add_held(self, statement: Statement) -> None:
        """``a = [b, c]``, ``a = b if p else c`` and ``a.append(b)``: ``a`` may hold ``b``."""
        node = statement.node
        if not isinstance(node, cst.SimpleStatementLine):
            return
        for call in self.source.walk(node, cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _MUTATING:
                for one in self.variables(call.func):
                    for other in {n for arg in call.args for n in self.variables(arg)}:
                        self._link(one, other)
        value = statement.assign.value if statement.assign else None
        holds = (cst.List, cst.Tuple, cst.Dict, cst.IfExp, cst.ListComp, cst.DictComp, cst.GeneratorExp)
        target = root_name(statement.bound) if statement.bound is not None else None
        stored = isinstance(statement.bound, cst.Subscript)
        if target is not None and value is not None and (isinstance(value, holds) or stored):
            for other in self.variables(value):
                self._link(target, other)

    def _link(self, one: str, other: str) -> None:
        self._views[one].add(other)
        self._views[other].add(one)

    def statement_of(self, node: cst.CSTNode) -> Statement | None:
        """Return the innermost statement that holds ``node``."""
        if node in self._by_node:
            return self._by_node[node]
        return next((self._by_node[p] for p in self.source.parents(node) if p in self._by_node), None)

    def simple(self) -> Iterator[Statement]:
        """Return the statements that are not compound, in source order."""
        return (s for s in self.statements if s.simple)

    def sharing(self, names: Iterable[str]) -> set[str]:
        """Return ``names`` and all names that may share storage with one of them."""
        shared: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in shared:
                shared.add(name)
                todo.extend(self._views.get(name, ()))
        return shared

    def occurrences(self, name: str) -> list[cst.Name]:
        return list(self._occurrences.get(name, ()))

    def binding(self, name: str) -> list[Statement]:
        """Return the statements that give ``name`` a value: as their target, in a tuple, or as their loop variable."""
        return list(self._binding.get(name, ()))

    def writing(self, name: str) -> list[Statement]:
        """Return the statements that write ``name`` or what it stands for, those around them included."""
        return list(self._writers.get(name, ()))

    @cached_property
    def _occurrences(self) -> dict[str, list[cst.Name]]:
        occurrences: dict[str, list[cst.Name]] = defaultdict(list)
        for name in self.names:
            occurrences[name.value].append(name)
        return dict(occurrences)

    @cached_property
    def _binding(self) -> dict[str, list[Statement]]:
        binders: dict[str, list[Statement]] = defaultdict(list)
        for statement in self.statements:
            for name in statement.bound_names:
                binders[name].append(statement)
        return dict(binders)

    @cached_property
    def _writers(self) -> dict[str, list[Statement]]:
        writers: dict[str, list[Statement]] = defaultdict(list)
        for statement in self.statements:
            for name in statement.writes:
                writers[name].append(statement)
        return dict(writers)

    def variables(self, node: cst.CSTNode) -> set[str]:
        """Return the variables that occur in ``node``."""
        return {n.value for n in self.source.walk(node, cst.Name) if self._is_variable(n)}

    def between(self, first: Statement, second: Statement) -> list[Statement]:
        """Return the statements of the block after ``first`` and before ``second``.

        Both must be in one block.
        """
        block = [s for s in self.statements if s.block is first.block]
        return block[block.index(first) + 1 : block.index(second)]

    def before(self, statement: Statement) -> list[Statement]:
        """Return the statements of the same block before ``statement``."""
        block = [s for s in self.statements if s.block is statement.block]
        return block[: block.index(statement)]

    def unchanged(self, first: Statement, second: Statement, names: Iterable[str]) -> bool:
        """Return whether nothing between the two statements may write one of ``names`` or a name that shares its
        storage."""
        names = set(names)
        watched = self.sharing(names)
        return not any(names & s.writes or watched & s.stores for s in self.between(first, second))

    def varying(self, loop: cst.For) -> set[str]:
        """Return the names whose value or contents may differ between iterations of ``loop``: what it writes, and views
        of it."""
        statement = self._by_node[loop]
        return statement.writes | self.sharing(statement.stores)

    def definition(self, node: cst.BaseExpression) -> Statement | None:
        """Return the one statement that gives ``node``, a variable or a part of a tensor, the value it has
        where it stands.

        It writes exactly ``node``, in the same block or around it, and nothing else in its block writes the variable.
        """
        name = root_name(node)
        if name is None:
            return None
        in_memory = isinstance(node, cst.Subscript) or self._is_destination(name)
        allocation = self.allocation(name) if in_memory else None
        writers = [s for s in self.writing(name) if s.simple and s is not allocation]
        definitions = [s for s in writers if s.target is not None and self._follows(s, node)]
        if not definitions or (in_memory and len(writers) != 1):
            return None
        if self._is_destination(name) and (allocation is None or self._stored_through_view(name)):
            return None
        nearest = definitions[-1]
        assert nearest.target is not None
        rivals = [s for s in writers if s is not nearest and self._encloses(nearest.block, s.node)]
        loops = [s for s in self.binding(name) if not s.simple]
        return nearest if not rivals and not loops and self.source.same(nearest.target, node) else None

    def _is_destination(self, name: str) -> bool:
        """Return whether an instruction overwrites the tensor ``name`` or a part of it."""
        return name in self._destinations

    @cached_property
    def _destinations(self) -> set[str]:
        written = (root_name(s.destination) for s in self.statements if s.destination is not None)
        return {name for name in written if name is not None}

    def _stored_through_view(self, name: str) -> bool:
        others = self.sharing([name]) - {name}
        return any(others & s.stores for s in self.simple())

    def readers(self, definition: Statement) -> list[cst.BaseExpression] | None:
        """Return the expressions that read exactly the value that ``definition`` writes, in its block or
        below, after it.

        None when anything else happens to the variable: another write, a read of another part of it, a read
        through an attribute, or a read elsewhere, before, or in another iteration.
        """
        target, name = definition.target, definition.target_name
        if target is None or name is None or self.sharing([name]) != {name}:
            return None
        key = self.source.key(target)
        expressions: list[cst.BaseExpression] = []
        for occurrence in self.occurrences(name):
            whole: cst.BaseExpression = occurrence
            parent = self.source.parent(whole)
            while isinstance(parent, cst.Subscript) and parent.value is whole:
                whole, parent = parent, self.source.parent(parent)
            if whole is target or (definition.in_memory and self._is_allocation(occurrence)):
                continue
            statement = self.statement_of(occurrence)
            binds = statement is not None and statement.bound is occurrence
            if self._belongs_elsewhere(definition, occurrence, binds):
                continue
            reads, writes = self._role(occurrence)
            if writes or not reads or isinstance(parent, cst.Attribute) or self.source.key(whole) != key:
                return None
            if not self._follows(definition, occurrence):
                return None
            expressions.append(whole)
        return expressions

    def uses_after(self, definition: Statement) -> list[cst.Name] | None:
        """Return every use of the variable that ``definition`` writes, if all only read it, after it, in its
        block or below.

        Unlike ``readers``, parts and views of it may be read too, as long as nothing writes through them.
        """
        name = definition.target_name
        if name is None:
            return None
        allocation = self.allocation(name) if definition.in_memory else None
        uses: list[cst.Name] = []
        for shared in self.sharing([name]):
            for occurrence in self.occurrences(shared):
                reads, writes = self._role(occurrence)
                statement = self.statement_of(occurrence)
                if statement is None:
                    return None
                if statement in (definition, allocation) and writes and not reads:
                    continue
                binds = statement.bound is occurrence
                if shared != name:
                    if writes and not binds:
                        return None
                    continue
                if self._belongs_elsewhere(definition, occurrence, binds):
                    continue
                if writes or not self._follows(definition, occurrence):
                    return None
                uses.append(occurrence)
        return uses

    def _belongs_elsewhere(self, definition: Statement, occurrence: cst.Name, binds: bool) -> bool:
        """Return whether ``occurrence`` has to do with another binding of the name, in a block apart from
        ``definition``'s."""
        if definition.in_memory or not isinstance(definition.target, cst.Name):
            return False
        statement = self.statement_of(occurrence)
        assert statement is not None
        others = [s for s in self.binding(occurrence.value) if s.simple and s is not definition]
        for other in others:
            nested = self._encloses(other.block, definition.node) or self._encloses(
                definition.block, other.node
            )
            mine = statement is other if binds else self._follows(other, occurrence)
            if mine and not nested:
                return True
        return False

    def _encloses(self, block: cst.CSTNode, node: cst.CSTNode) -> bool:
        return any(above is block for above in self.source.parents(node))

    def only_reader(self, definition: Statement) -> tuple[cst.BaseExpression, Statement] | None:
        """Return the one expression that reads what ``definition`` writes, and its statement, if in the same
        block."""
        readers = self.readers(definition)
        if readers is None or len(readers) != 1:
            return None
        statement = self.statement_of(readers[0])
        if statement is None or statement.block is not definition.block:
            return None
        return readers[0], statement

    def allocation(self, name: str) -> Statement | None:
        """Return the statement that binds ``name`` to a fresh tensor, if that is the only one that binds
        it."""
        binding = [s for s in self.binding(name) if isinstance(s.bound, cst.Name)]
        if len(binding) == 1 and isinstance(binding[0].value, cst.Call):
            called = self.source.code(binding[0].value.func).rpartition(".")[2]
            return binding[0] if called in ALLOCATIONS else None
        return None

    def _is_allocation(self, occurrence: cst.Name) -> bool:
        allocation = self.allocation(occurrence.value)
        return allocation is not None and allocation.bound is occurrence

    def _follows(self, definition: Statement, node: cst.CSTNode) -> bool:
        if self.source.start(node) <= self.source.end(definition.node):
            return False
        return definition.block is self.function.body or definition.block in self.source.parents(node)


#: Functions whose first argument is written: stores to memory.
STORES = frozenset({"store", "atomic_rmw", "dma_copy"})
#: Methods that change what they are called on.
_MUTATING = frozenset({"append", "extend", "insert", "update", "setdefault"})
#: Functions that make a fresh tensor.
ALLOCATIONS = frozenset({"ndarray", "zeros", "ones", "full", "empty", "zeros_like", "empty_like"})
