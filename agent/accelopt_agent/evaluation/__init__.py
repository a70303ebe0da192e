"""Finds the cost of a version and the gate's verdict on it, through protocols and on a host."""
