"""Rules for Triton. Every module is one rule with a function ``rewrites``."""
