"""Find the problem of a kernel file by syntax, in the client: nothing of the user's is imported."""
