"""The data that every part of the emulator shares: types, indices, memory blocks and views, instructions and the trace."""
