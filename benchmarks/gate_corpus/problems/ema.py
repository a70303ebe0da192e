import torch

entry = "ema"
shapes = [{"batch": 1, "steps": 17, "channels": 40}, {"batch": 3, "steps": 32, "channels": 8}]


def get_inputs(batch=2, steps=48, channels=24):
    decay = torch.rand(channels) * 0.5 + 0.45
    return [torch.randn(batch, steps, channels), decay, torch.randn(batch, channels)]


def reference(x, decay, initial):
    state = initial
    states = []
    for t in range(x.shape[1]):
        state = decay * state + (1 - decay) * x[:, t]
        states.append(state)
    return torch.stack(states, 1), state
