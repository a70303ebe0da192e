"""The part of ``nl`` and ``@nki.jit`` that both dialects share."""
