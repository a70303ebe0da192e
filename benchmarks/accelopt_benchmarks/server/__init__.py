"""Response times of the language server under edits and searches."""
