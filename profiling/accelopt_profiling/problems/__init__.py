"""Problems: inputs, a reference and tolerances for a kernel.

Reading order: ``catalogue`` lists the layouts that problems are written in, each a module of ``layouts``.
``discovery.find`` looks for the problem of a kernel file by syntax, in the client, and imports nothing of the user's;
the answer is a ``ref.ProblemLookup`` whose ``ProblemRef`` travels to the host; ``loading.load`` imports the problem
there, in a child process. ``problem.Problem`` is the one form of all, and ``loading.call`` the one place that calls a
kernel file.
"""
