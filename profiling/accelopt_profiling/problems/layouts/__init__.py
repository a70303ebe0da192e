"""One module per layout of problems: how it is found, how it is loaded, and what a reader has to know."""
