"""The editor's face: LSP in, LSP out; and the command line."""
