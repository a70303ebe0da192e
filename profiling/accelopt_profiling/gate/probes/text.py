"""What refuses a candidate by its text, or by an operation of it that ends its process: for the page of probes."""

from __future__ import annotations

#: Name and what it catches, as of any other probe. The codes of ``gate/reading`` and those of ``observe/watch``.
TEXT_PROBES = {
    "no kernel": "Files that hold no kernel any more, or not the one that was to be rewritten.",
    "reading: patches": "Functions, classes and modules of others that the text replaces.",
    "reading: fallback": "Errors of a launch that are hidden or answered with another result.",
    "reading: mode-branch": "Branches on the environment, the clock, chance, an address or a count of calls.",
    "reading: cached-result": "Look-ups by an address.",
    "reading: background-work": "Streams that nothing waits for, captured graphs, finalisers, threads, processes.",
    "reading: own-tensor": "Kinds of tensors of its own, which may compute later.",
    "reading: native-code": "Libraries that are loaded or compiled.",
    "reading: reaches-out": "Network connections.",
    "reading: reads-the-gate": "Frames, insides of Python, and the checking tool itself.",
    "reading: obfuscated": "Text that is run as code, names put together at run time, packed literals.",
    "reading: ends-the-process": "Calls that end the process.",
    "reading: writes-outside": "Files that are written or removed.",
    "reading: reads-files": "Files that the original does not read.",
    "reading: reads-environment": "Variables of the environment that the original does not read.",
    "sandbox": "Operations that end the process: threads, processes, connections, native code, foreign files.",
}
