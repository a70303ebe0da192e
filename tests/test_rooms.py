"""The plan of the house: who may import whom, what runs on a host, and names that say something."""

import ast
import builtins
import functools
import os
import re
import sys
from pathlib import Path

import pytest

from accelopt_lsp.cli.failures import EXIT_CODES

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "accelopt_profiling": ROOT / "profiling/accelopt_profiling",
    "accelopt_memory": ROOT / "memory_db/accelopt_memory",
    "nkibench": ROOT / "nkibench/nkibench",
    "accelopt_agent": ROOT / "agent/accelopt_agent",
    "accelopt_lsp": ROOT / "accelopt_lsp/accelopt_lsp",
    "accelopt_benchmarks": ROOT / "benchmarks/accelopt_benchmarks",
}
MAY_IMPORT = {
    "accelopt_profiling": set(),
    "accelopt_memory": {"accelopt_profiling"},
    "accelopt_agent": {"accelopt_memory", "accelopt_profiling"},
    "nkibench": {"accelopt_agent", "accelopt_memory", "accelopt_profiling"},
    "accelopt_lsp": {"nkibench", "accelopt_agent", "accelopt_memory", "accelopt_profiling"},
    "accelopt_benchmarks": {
        "accelopt_lsp",
        "nkibench",
        "accelopt_agent",
        "accelopt_memory",
        "accelopt_profiling",
    },
}
#: What a host has: the standard library, NumPy, and the toolchains that are imported where they are there.
ON_A_HOST = {"numpy", "ml_dtypes", "torch", "triton", "neuronxcc", "nki"}
EDITOR_ONLY = {"lsprotocol", "pygls"}
SAY_NOTHING = {"utils", "util", "helpers", "helper", "misc", "common", "manager", "base"}


def modules(room: str) -> list[Path]:
    return sorted(ROOMS[room].rglob("*.py"))


@functools.cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(node for node in ast.walk(syntax(path)) if isinstance(node, (ast.Import, ast.ImportFrom)))


@functools.cache
def imported(path: Path) -> frozenset[str]:
    names: set[str] = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return frozenset(names)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_the_plan_allows(room):
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(room)
        for name in (imported(path) & set(ROOMS)) - MAY_IMPORT[room] - {room}
    }
    assert not wrong


def test_profiling_needs_nothing_that_a_host_may_lack():
    allowed = set(sys.stdlib_module_names) | ON_A_HOST | {"accelopt_profiling"}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules("accelopt_profiling")
        for name in imported(path)
        - allowed
        - ({"ray"} if path.parent.name == "hosts" else set())  # stays here
        - ({"pytest"} if path.name == "pytest_plugin.py" else set())  # what pytest imports
    }
    assert not wrong


@pytest.mark.parametrize("room", [r for r in ROOMS if r not in {"accelopt_lsp", "accelopt_benchmarks"}])
def test_only_the_server_knows_editors(room):
    wrong = {f"{path.relative_to(ROOT)}" for path in modules(room) if imported(path) & EDITOR_ONLY}
    assert not wrong


def edges() -> dict[str, set[str]]:
    """Each module of the project with the modules that it imports anywhere: lazily and for types alone included."""
    files = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for room, folder in ROOMS.items()
        for path in modules(room)
    }
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        targets: set[str] = set()
        for node in import_statements(path):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                full_names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets |= {full if full in files else node.module for full in full_names}
        graph[name] = {target for target in targets & files.keys() if target != name}
    return graph


def circles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """The groups of modules that reach one another, by removing again and again what imports nothing that is left."""
    remaining = dict(graph)
    while free := [name for name, targets in remaining.items() if not targets & remaining.keys()]:
        for name in free:
            del remaining[name]
    reached = {name: reachable(remaining, name) for name in remaining}
    return sorted(
        {tuple(sorted(m for m in reached[n] if n in reached[m])) for n in remaining if n in reached[n]}
    )


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    visited: set[str] = set()
    waiting = [start]
    while waiting:
        for target in (graph[waiting.pop()] & graph.keys()) - visited:
            visited.add(target)
            waiting.append(target)
    return visited


def test_no_circle_of_modules():
    assert circles(edges()) == []


def test_no_two_folders_import_each_other():
    """A folder and one inside of it count as one: what all of it needs lies at its top."""
    graph = edges()
    used = {(n.rpartition(".")[0], t.rpartition(".")[0]) for n, targets in graph.items() for t in targets}
    mutual = sorted((a, b) for a, b in used if a < b and (b, a) in used and not b.startswith(f"{a}."))
    assert mutual == []


@pytest.mark.parametrize(
    ("graph", "expected"),
    [({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [("a", "b")]), ({"a": {"b"}, "b": set()}, [])],
)
def test_a_circle_is_found(graph, expected):
    assert circles(graph) == expected


@pytest.mark.parametrize("room", ROOMS)
def test_names_say_what_a_file_is(room):
    assert not [
        str(p.relative_to(ROOT))
        for p in modules(room)
        if p.stem in SAY_NOTHING or p.parent.name in SAY_NOTHING
    ]


def classes() -> dict[str, list[tuple[Path, ast.ClassDef]]]:
    """The classes that stand at the top of a module of the project, by name."""
    by_name: dict[str, list[tuple[Path, ast.ClassDef]]] = {}
    for room in ROOMS:
        for path in modules(room):
            for node in syntax(path).body:
                if isinstance(node, ast.ClassDef) and "tasks" not in path.parts:
                    by_name.setdefault(node.name, []).append((path.relative_to(ROOT), node))
    return by_name


def test_a_class_name_means_one_thing():
    assert {
        name: [path for path, _ in definitions]
        for name, definitions in classes().items()
        if len(definitions) > 1
    } == {}


def test_exceptions_end_in_error():
    defined = classes()

    def is_exception(name: str) -> bool:
        builtin = getattr(builtins, name, None)
        if isinstance(builtin, type):
            return issubclass(builtin, Exception)
        return any(
            is_exception(ast.unparse(base)) for _, node in defined.get(name, []) for base in node.bases
        )

    assert [name for name in defined if is_exception(name) and not name.endswith("Error")] == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_timeout_is_caught_on_python_3_10_too(room):
    """There ``asyncio.TimeoutError`` is another class than the built-in one, never raised by ``asyncio``."""

    def handlers(tree: ast.Module) -> list[tuple[int, list[ast.expr]]]:
        caught: list[tuple[int, list[ast.expr]]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                caught.append(
                    (node.lineno, node.type.elts if isinstance(node.type, ast.Tuple) else [node.type])
                )
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
                caught.append((node.lineno, node.args))
        return caught

    assert [
        f"{path}:{line}"
        for path in modules(room)
        for line, classes_caught in handlers(syntax(path))
        if "TimeoutError" in (names := [ast.unparse(caught) for caught in classes_caught])
        and "asyncio.TimeoutError" not in names
    ] == []


def test_an_enumeration_of_texts_prints_the_same_on_every_python():
    """``f"{member}"`` is the value up to Python 3.11 and the member's name from 3.12 on, unless the class says."""
    assert [
        name
        for name, definitions in classes().items()
        for _, node in definitions
        if {"str", "Enum"} <= {ast.unparse(base) for base in node.bases}
        and not any(isinstance(f, ast.FunctionDef) and f.name == "__str__" for f in node.body)
    ] == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_docstrings_name_exceptions_that_exist(room):
    """Those below "Raises:" are classes of the project, built in, or imported by the module."""
    names = classes().keys() | vars(builtins).keys()
    unknown = []
    for path in modules(room):
        text = path.read_text("utf-8")
        for section in re.findall(r"\n +Raises:\n((?: {8,}.*\n)+)", text):
            mentions = re.findall(r"^ +([A-Z]\w+):", section, re.MULTILINE)
            unknown += [(path.name, n) for n in mentions if n not in names and f"import {n}" not in text]
    assert unknown == []


def test_the_exceptions_that_choose_an_exit_code_exist():
    assert EXIT_CODES.keys() <= classes().keys()


def test_every_room_says_what_it_is_for():
    missing = [
        str(p.parent.relative_to(ROOT)) for p in ROOMS.values() if not (p.parent / "README.md").exists()
    ]
    assert not missing


def test_no_file_names_a_package_registry():
    hosts = ("pypi" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org", "pythonhosted" + ".org")
    suffixes = {".py", ".md", ".toml", ".json", ".ts", ".mjs", ".sh", ".cfg", ".yml"}
    skip = {".venv", ".tools", "node_modules", ".git", ".device", "bundled", "dist", "__pycache__"}
    skip |= {".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"}
    wrong = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skip]
        for path in [Path(folder, name) for name in files if Path(name).suffix in suffixes]:
            if path.is_file() and any(host in path.read_text(errors="replace") for host in hosts):
                wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


@functools.cache
def imported_modules(path: Path) -> frozenset[str]:
    """The dotted names of all modules that a file imports anywhere in it."""
    names: set[str] = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def test_only_commands_import_the_command_line():
    of_the_cli = {"cli", "bench", "demo"}
    room = ROOMS["accelopt_lsp"]
    wrong = {
        f"{path.relative_to(room)}: {name}"
        for path in modules("accelopt_lsp")
        if path.relative_to(room).parts[0] not in of_the_cli
        and path.name not in ("__main__.py", "lsp_command.py")
        for name in imported_modules(path)
        if name.startswith("accelopt_lsp.cli.")
    }
    assert not wrong


#: The only modules that may speak LSP: what the editor sends (setup), what is sent to it (connection, progress), what
#: it can do (client), conversions, and pygls' server, its texts and its protocol.
SPEAK_LSP = {
    "server/client.py", "server/connection.py", "server/convert.py", "server/documents.py", "server/lsp_types.py",
    "server/main.py",
    "server/progress.py", "server/server.py", "server/setup.py",
    "demo/editor.py", "demo/story.py",
}  # fmt: skip


def test_lsp_types_stay_where_lsp_is_spoken():
    """Features, state, service and the server's parts are plain data and code; type annotations alone may name LSP."""
    room = ROOMS["accelopt_lsp"]
    wrong = {
        str(path.relative_to(room))
        for path in modules("accelopt_lsp")
        if str(path.relative_to(room)) not in SPEAK_LSP and run_time_imports(path) & EDITOR_ONLY
    }
    assert not wrong
    without = {name for name in SPEAK_LSP if not run_time_imports(room / name) & EDITOR_ONLY}
    assert not without, "these need no place in the list"


def run_time_imports(path: Path) -> set[str]:
    """The packages that a file imports outside of ``if TYPE_CHECKING``."""
    for_types = {
        inner
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    names: set[str] = set()
    for node in import_statements(path):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("layer", ["state", "features", "settings", "service"])
def test_what_stands_below_the_server_does_not_import_it(layer):
    room = ROOMS["accelopt_lsp"]
    wrong = {
        f"{path.relative_to(room)}: {name}"
        for path in (room / layer).rglob("*.py")
        for name in imported_modules(path)
        if name.startswith("accelopt_lsp.server.")
    }
    assert not wrong


def test_the_server_imports_no_part_of_itself():
    """``setup.py`` alone knows the parts, each of which gets what it needs by its constructor."""
    of_server = imported_modules(ROOMS["accelopt_lsp"] / "server/server.py")
    parts = (
        "document_sync",
        "file_watcher",
        "profiles",
        "searches",
        "suggestions",
        "explanations",
        "pages",
        "publisher",
    )
    assert not [name for name in of_server if name.removeprefix("accelopt_lsp.server.").startswith(parts)]
    holds_server = [
        path.name
        for path in (ROOMS["accelopt_lsp"] / "server").glob("*.py")
        if path.name not in ("setup.py", "main.py") and "accelopt_lsp.server.server" in imported_modules(path)
    ]
    assert not holds_server
