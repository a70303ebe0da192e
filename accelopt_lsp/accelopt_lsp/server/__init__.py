"""The language server: LSP in, LSP out."""
