"""The command line. ``main`` is the entry point; each other file is one group of commands."""
