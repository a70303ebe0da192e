"""The only place that imports what of Triton is not public: what differs between its versions is settled here.

``versions`` says which versions work and imports nothing. A new version of Triton is tried with the tests
of Triton; what it moves is mended here, in one function for each difference, with the version beside it.
"""
