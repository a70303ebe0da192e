"""Time on a real device."""
