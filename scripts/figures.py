"""Writes the figures that README, tutorials and how-to pages show, as their commands print them today.

    python scripts/figures.py [PAGE ...]

A page that would differ in more than figures is named, and left as it is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.pages import PAGES, ROOT, blocks, run_page


def main(pages: list[Path]) -> int:
    code = 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="accelopt-figures-") as folder:
            try:
                fresh = run_page(page, Path(folder), Path(sys.executable).parent)
            except AssertionError as error:
                print(f"{page.relative_to(ROOT)}: {error}", file=sys.stderr)
                code = 1
                continue
        if page.read_text(encoding="utf-8") != text:
            print(f"{page.relative_to(ROOT)}: edited meanwhile, left as it is", file=sys.stderr)
            code = 1
            continue
        page.write_text(fresh, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {'written' if fresh != text else 'as it was'}")
    return code


if __name__ == "__main__":
    named = [Path(name).resolve() for name in sys.argv[1:]]
    sys.exit(main(named or [page for page in PAGES if any(block.runs for block in blocks(page))]))
