"""Do something with a module right after a program imports it, without importing it oneself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def after_import(name: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Call ``then`` once, right after the module ``name`` is first imported. Return what withdraws that."""
    finder = _AfterImport(name, then)
    sys.meta_path.insert(0, finder)
    return finder.withdraw


class _AfterImport(MetaPathFinder):
    """Lets the other finders find a module, and does something when it has been executed."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then

    def withdraw(self) -> None:
        with suppress(ValueError):  # it has been imported
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        self.withdraw()
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_then(module: ModuleType) -> None:
            execute(module)
            self._then(module)

        setattr(spec.loader, "exec_module", execute_and_then)  # noqa: B010 - of this one loader
        return spec
