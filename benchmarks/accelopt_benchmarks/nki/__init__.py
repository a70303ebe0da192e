"""The NKI time model beside published times, the emulator's speed, and the instructions that libraries call."""
