"""Measure what a kernel costs and check that it is right. The ground floor: knows no editor, no model, no database."""

__version__ = "0.1.0"
