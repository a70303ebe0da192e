"""What PyTorch itself takes for a reference, eager and compiled: measured on a device, estimated without one."""
