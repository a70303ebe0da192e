"""The tour: the whole story in the terminal, through the real language server over stdio."""
