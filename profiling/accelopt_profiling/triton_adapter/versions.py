"""The versions of Triton that this adapter works with."""

from __future__ import annotations

import re

OLDEST, NEWEST = (3, 3), (3, 9)
REQUIREMENT = f"triton>={OLDEST[0]}.{OLDEST[1]},<{NEWEST[0]}.{NEWEST[1] + 1}"


def minor_version(version: str) -> tuple[int, int]:
    """Return major and minor version: (3, 7) for "3.7.1+git1234"; (0, 0) for what is no version."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def unsupported(version: str, python: str) -> str:
    """Return why the Triton of that version does not work here, and the command that mends it; "" where it works."""
    if OLDEST <= minor_version(version) <= NEWEST:
        return ""
    works = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return (
        f"Triton {version} is installed, and AccelOpt works with Triton {works}: run `{python} -m pip install "
        f"'{REQUIREMENT}'`."
    )
