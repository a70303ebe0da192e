"""Reads a Beta 1 NKI kernel for the rules: instructions, operands, tile shapes, values that loops compute again."""
