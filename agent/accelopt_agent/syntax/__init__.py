"""Source text by syntax: lines, functions and statements, and fingerprints of rewrites."""
