"""The ``neuronxcc.nki`` dialect ("Beta 1", Neuron SDK up to 2.26): its names, over the emulator's core."""
