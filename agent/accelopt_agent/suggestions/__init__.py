"""Suggestions: the data, applying one to today's text, and recording a person's decision."""
