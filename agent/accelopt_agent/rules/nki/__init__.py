"""Rules for NKI, in both dialects where both know the idea. Every module is one rule with a function ``rewrites``."""
