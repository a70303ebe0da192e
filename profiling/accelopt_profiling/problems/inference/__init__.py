"""Infer inputs for a kernel file that has no problem: guess them by its syntax, run it, repair what errors ask for."""
