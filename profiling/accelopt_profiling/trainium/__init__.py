"""Real Trainium devices: run a kernel, time it and read its profile with the tools that the host has.

Not yet run on hardware: written from AWS's documentation, tested with stand-ins for the tools.
"""
