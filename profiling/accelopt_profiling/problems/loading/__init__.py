"""Load a problem in a child process, which imports the user's files: one module per layout."""
