#!/usr/bin/env python3
"""Check that all that has a version has the same: the package, the extensions, a lock file, the changelog.

scripts/versions.py [VERSION]       # and that it is this one, where the changelog must have its date
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def versions() -> dict[str, str]:
    """Return the version by the file that states it."""
    package = (ROOT / "profiling/accelopt_profiling/__init__.py").read_text("utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    lock = json.loads((ROOT / "vscode-extension/package-lock.json").read_text("utf-8"))
    return {
        "profiling/accelopt_profiling/__init__.py": _first(r'__version__ = "([^"]+)"', package),
        "vscode-extension/package.json": json.loads(
            (ROOT / "vscode-extension/package.json").read_text("utf-8")
        )["version"],
        "vscode-extension/package-lock.json": lock["version"],
        "vscode-extension/package-lock.json, packages": lock["packages"][""]["version"],
        "CHANGELOG.md": _first(r"^## (\S+)", changelog),
        **{
            f"editors/zed/{name}": _first(
                r'^version = "([^"]+)"', (ROOT / "editors/zed" / name).read_text("utf-8")
            )
            for name in ("extension.toml", "Cargo.toml")
        },
    }


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else "none"


def main(arguments: list[str]) -> int:
    stated = versions()
    wanted = arguments[0] if arguments else stated["profiling/accelopt_profiling/__init__.py"]
    wrong = [f"{file}: {version}, not {wanted}" for file, version in stated.items() if version != wanted]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if arguments and not re.search(
        rf"^## {re.escape(wanted)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE
    ):
        wrong.append(f"CHANGELOG.md: {wanted} has no date")
    print("\n".join(wrong) or f"All state {wanted}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
