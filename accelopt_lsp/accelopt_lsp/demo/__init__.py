"""The tour in the terminal, through the real language server over stdio."""
