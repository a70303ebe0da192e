"""Write the type stubs of NKI into a folder, over older ones of ours and over nothing else."""

from __future__ import annotations

from pathlib import Path

from accelopt_lsp.language.nki_stubs import MARK, stubs
from accelopt_memory.whole_file import whole_file

#: Where Pyright and Pylance look for stubs in a project.
FOLDER = "typings"


class ForeignFileError(Exception):
    """A file stands where a stub would be written, and is none of ours."""


def write_stubs(folder: Path, version: str) -> list[str]:
    """Write the stubs of both packages, ``nki`` as its ``version`` is, and return their paths in ``folder``.

    Raises:
        ForeignFileError: a stub of another origin is there; nothing was written.
        OSError: a file cannot be written.
    """
    texts = stubs(version)
    for name in texts:
        path = folder / name
        if path.exists() and MARK not in path.read_text("utf-8", "replace"):
            raise ForeignFileError(
                f"{path} is not by `accelopt stubs`; move it away, or name another folder."
            )
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / name, mode=0o644) as out:
            out.write(text)
    return list(texts)
