"""Problems: inputs, a reference and tolerances for a kernel.

Reading order: ``discovery.find`` looks for the problem of a kernel file by syntax, in the client, and imports nothing
of the user's; the answer is a ``ref.ProblemLookup`` whose ``ProblemRef`` travels to the host; ``loading.load`` imports
the problem there, in a child process; ``problem.Problem`` is what every kind of problem then offers.
"""
