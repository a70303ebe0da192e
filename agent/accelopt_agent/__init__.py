"""Proposes rewrites: built-in rules, memory, a model team, and the search that tries them."""
