"""Reads a kernel for the rules: its parsed file, imported names, data flow, constants and loops."""
