"""Softmax of the scores of one head, each row over the keys up to its own position."""

import numpy as np

entry = "causal_softmax"
shapes = [{"s": 128}, {"s": 200}]


def get_inputs(s=384):
    return [(2 * np.random.standard_normal((s, s))).astype(np.float32)]


def reference(scores):
    n = scores.shape[0]
    masked = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    e = np.exp(masked - masked.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
