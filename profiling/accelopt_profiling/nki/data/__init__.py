"""The data that every part of the emulator shares: types, indices, memory blocks, views, instructions, the trace."""
