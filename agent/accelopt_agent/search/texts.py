"""How the search reads the texts of versions: what names them, and where their kernel stands."""

from __future__ import annotations

from accelopt_agent.syntax.fingerprint import file_fingerprint, rewrite_fingerprint
from accelopt_profiling.kernels import Kernel, find_kernels


class Texts:
    """Reads versions of ``base_text``, whose kernel ``kernel`` is searched."""

    def __init__(self, base_text: str, kernel: str) -> None:
        self.base_text, self.name = base_text, kernel

    def fingerprints(self, text: str) -> tuple[str, str]:
        """What names the whole file, and what names the rewrite of the original: see ``fingerprint``.

        Raises:
            SyntaxError: the text does not parse.
        """
        return file_fingerprint(text), rewrite_fingerprint(self.base_text, text, self.name)

    def kernel(self, text: str) -> Kernel | None:
        """The kernel in ``text``; None when it is gone."""
        return next((k for k in find_kernels(text).kernels if k.name == self.name), None)
