"""Problems: inputs, a reference and tolerances for a kernel, found in one of seven ways and loaded in a child process.

``ref`` is what the editor's side knows (found by syntax, nothing imported); ``problem`` is what a child process loads.
"""
