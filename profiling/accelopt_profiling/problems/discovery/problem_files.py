"""Classify a problem file by syntax: its kind, or what it lacks."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass

from accelopt_profiling.problems.ref import ProblemKind
from accelopt_profiling.recording.recorded_call import is_recording, parse_recording
from accelopt_profiling.source_text import ParsedPython, is_main_guard

NKIBENCH = ("get_inputs", "forward", "transform_to_nki_inputs", "transform_nki_outputs")
KERNELBENCH = ("Model", "get_inputs", "get_init_inputs")
MODULE = ("get_inputs", "reference")
DEFINITION = ("name", "axes", "inputs", "outputs", "reference")


@dataclass(frozen=True)
class Recognised:
    """The kind of a problem file and its top-level ``names``.

    ``kind`` is None when the file is no problem; ``fault`` then says why, at ``line`` (1-based) of the file.
    ``inferred``: it says that nobody has looked at its inputs.
    """

    kind: ProblemKind | None
    fault: str = ""
    line: int = 1
    names: frozenset[str] = frozenset()
    inferred: bool = False

    @property
    def unreferenced(self) -> bool:
        """It gives inputs and no reference: the kernels can be measured, and their results not checked."""
        return self.kind == "module" and "reference" not in self.names


def recognise_python(source: ParsedPython) -> Recognised:
    """Classify a Python file; of a file that holds parts of a problem, ``fault`` names what is missing."""
    if source.fault:
        return Recognised(None, f"it does not parse: {source.fault}", source.line)
    defined = top_level_names(source.tree)
    names = frozenset(defined)
    kinds: list[tuple[ProblemKind, tuple[str, ...]]] = [
        ("module", MODULE),
        ("nkibench", NKIBENCH),
        ("kernelbench", KERNELBENCH),
    ]
    for kind, needed in kinds:
        if names >= set(needed):
            return Recognised(kind, names=names, inferred=_says_inferred(source.tree))
    for needed in (NKIBENCH, KERNELBENCH, MODULE):
        distinctive = [n for n in needed if n in names and n != "get_inputs"]
        if distinctive:
            missing = ", ".join(f"`{n}`" for n in needed if n not in names)
            present = ", ".join(f"`{n}`" for n in needed if n in names)
            return Recognised(None, f"it has {present} but not {missing}", defined[distinctive[0]], names)
    if "get_inputs" in names:
        return Recognised("module", names=names, inferred=_says_inferred(source.tree))
    return Recognised(None, "it has neither `get_inputs` nor `reference`", names=names)


def _says_inferred(tree: ast.Module) -> bool:
    """Return whether the file holds ``inferred = True``, as a written problem does until a person removes it."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        and [t.id for t in node.targets if isinstance(t, ast.Name)] == ["inferred"]
        for node in tree.body
    )


def recognise_json(text: str) -> Recognised:
    """Classify a JSON file: a recording, a FlashInfer-Bench definition, or none."""
    try:
        data = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        return Recognised(None, f"it is not valid JSON: {error}", line)
    except RecursionError:
        return Recognised(None, "it is not valid JSON: nested too deeply")
    if not isinstance(data, dict):
        return Recognised(None, "it is not a JSON object")
    if is_recording(data):
        try:
            parse_recording(text)
        except ValueError as error:
            return Recognised(None, str(error))
        return Recognised("recording")
    missing = [name for name in DEFINITION if name not in data]
    if missing:
        listed = ", ".join(f'"{n}"' for n in missing)
        return Recognised(None, f"it is not a FlashInfer-Bench definition: it lacks {listed}")
    return Recognised("flashinfer")


def top_level_names(tree: ast.Module) -> dict[str, int]:
    """Return the functions, classes and assigned names of a module's top level with their lines.

    ``if`` and ``try`` blocks are included.
    """
    names: dict[str, int] = {}
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.setdefault(node.name, node.lineno)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    names.setdefault(target.id, node.lineno)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names.setdefault((alias.asname or alias.name).split(".")[0], node.lineno)
        elif isinstance(node, ast.Try):
            waiting = [*node.body, *(s for h in node.handlers for s in h.body), *node.orelse, *waiting]
        elif isinstance(node, ast.If) and not is_main_guard(node):
            waiting = [*node.body, *node.orelse, *waiting]
    return names
