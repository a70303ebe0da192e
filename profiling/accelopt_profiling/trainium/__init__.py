"""Run a kernel on a Trainium device, time it and read its profile with the Neuron tools of the host.

Reading order: ``step`` (what a host runs), ``toolchain`` (which generation of tools), ``beta1`` and ``current`` (their
adapters), ``execution`` (a kernel in the SDK's Python), ``summary`` (a profile).

Not yet run on hardware: written from AWS's documentation, tested with stand-ins for the tools.
"""
