"""Writes the functions of Triton with their signatures by version, from the packages of each version.

python scripts/triton_functions.py 3.3.1 3.4.0 3.5.1 3.6.0 3.7.1 3.8.0 3.9.0

It loads the wheels and reads their text; nothing of them runs. What a function is for ("kind") is written by hand in
the file and stays, as all before the functions.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FILE = Path(__file__).parents[1] / "profiling/accelopt_profiling/triton/functions/functions.json"
_MODULES = ("core", "standard", "math", "random")


def functions_in(language: dict[str, str]) -> dict[str, str]:
    """Return the signature of each function that ``triton.language`` exports, by its name.

    ``language`` holds the text of the package's modules by their names ("core"). Annotations are left out, what
    the compiler hands over itself (``_semantic``), and functions that only say that they are gone.
    """
    defined = {
        node.name: node
        for module in _MODULES
        for node in ast.parse(language[module]).body
        if isinstance(node, ast.FunctionDef) and not _is_gone(node)
    }
    exported: set[str] = set()
    for node in ast.parse(language["__init__"]).body:
        match node:
            case ast.ImportFrom(names=names, level=1):
                exported |= {name.asname or name.name for name in names}
            case ast.Assign([ast.Name("__all__")], value):
                exported |= set(ast.literal_eval(value))
    return {name: signature(defined[name].args) for name in sorted(exported & defined.keys())}


def _is_gone(function: ast.FunctionDef) -> bool:
    match function.body[-1]:
        case ast.Raise(ast.Call(ast.Name("NotImplementedError"))):
            return True
    return False


def signature(arguments: ast.arguments) -> str:
    """Return parameters with their defaults: "pointer, mask=None, *, volatile=False"."""
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    kept = [a for a in arguments.kwonlyargs if not a.arg.startswith("_")]
    text = ast.unparse(arguments).split(", ")
    parts = [part for part in text if not part.startswith("_")]
    if not kept and parts and parts[-1] == "*":
        parts.pop()
    return ", ".join(parts).replace("core.", "").replace("CONSTEXPR_0", "0")


def _language(version: str) -> dict[str, str]:
    """Return the text of the modules of ``triton.language`` of a version, from its wheel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "-d", folder, f"triton=={version}"], check=True)
        wheel = zipfile.ZipFile(io.BytesIO(next(Path(folder).glob("*.whl")).read_bytes()))
    names = ("__init__", *_MODULES)
    return {name: wheel.read(f"triton/language/{name}.py").decode() for name in names}


def main(versions: list[str]) -> None:
    content = json.loads(FILE.read_text("utf-8"))
    rows: dict[str, dict[str, str | None]] = {
        name: {"kind": row["kind"]} for name, row in content["functions"].items()
    }
    latest: dict[str, str | None] = {}
    for version in versions:
        minor = version.rpartition(".")[0]
        here = functions_in(_language(version))
        for name in {*latest, *here}:
            now = here.get(name)
            if latest.get(name) != now:
                rows.setdefault(name, {"kind": ""})[minor] = now
            latest[name] = now
    lines = (f" {json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows))
    written_by_hand = FILE.read_text("utf-8").partition('"functions": {')[0]
    FILE.write_text(f'{written_by_hand}"functions": {{\n' + ",\n".join(lines) + "\n}}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
