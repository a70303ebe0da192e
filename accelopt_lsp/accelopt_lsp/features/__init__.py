"""Lenses, hints, hovers, actions and pages as plain data, without LSP types."""
