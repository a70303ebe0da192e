import numpy as np

entry = "recurrence"
shapes = [{"m": 128, "n": 48}, {"m": 256, "n": 32}]


def get_inputs(m=128, n=96):
    generator = np.random.default_rng(np.random.randint(1 << 31))
    a = generator.uniform(0.6, 0.99, (m, n)).astype(np.float32)
    return [a, generator.standard_normal((m, n), dtype=np.float32), np.zeros((m, 1), dtype=np.float32)]


def reference(a, b, start):
    states = []
    state = start[:, 0]
    for j in range(a.shape[1]):
        state = a[:, j] * state + b[:, j]
        states.append(state)
    return np.stack(states, axis=1)
