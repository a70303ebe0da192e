"""What the editor shows of the memory, and forgets: called on the memory's own thread."""

from __future__ import annotations

from accelopt_agent.experience.standing import standings_for_kernel, standings_with_words
from accelopt_lsp.backend.protocol import FileText
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.memory_page import memory_page
from accelopt_memory.memory import Memory


def kernel_page(file: FileText, kernel: str, bound: str | None, memory: Memory) -> str:
    """Return the page about the pairs that a search would try on a kernel. Raises UserError: it is not there."""
    dialect = next((k.dialect for k in file.found.kernels if k.name == kernel), None)
    if dialect is None:
        raise UserError(f"The file has no kernel {kernel}.")
    target = file.settings.target_for(dialect)
    return memory_page(kernel, standings_for_kernel(memory, file.text, kernel, bound, target))


def words_page(words: str, memory: Memory) -> str:
    """Return the page about the pairs that hold every one of the words."""
    return memory_page(f'"{words}"', standings_with_words(memory, words))


def forget_pair(pair: str, memory: Memory) -> str:
    """Delete the pair whose id begins so, and return that in words. Raises UserError: there is none, or several."""
    found = [full for kind, full in memory.entries(pair) if kind == "pair"]
    if len(found) != 1:
        many = f"could mean {', '.join(found[:5])}" if found else "is no pair of the memory"
        raise UserError(f"{pair} {many}; nothing was forgotten.")
    memory.forget(found[0])
    return f"Forgot the pair {found[0]}."
