"""Built-in rewrites: one rule per file under ``nki/`` and ``triton/``, listed in ``catalogue.json``."""
