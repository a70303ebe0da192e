"""Cross entropy of next-token logits with a mean over the tokens that count, and the log-sum-exp for a z-loss."""

import torch

entry = "cross_entropy"
shapes = [{"tokens": 9, "vocab": 1000}, {"tokens": 33, "vocab": 4096}]


def get_inputs(tokens=128, vocab=8000, ignore_index=-100):
    logits = torch.randn(tokens, vocab, device="cuda", dtype=torch.bfloat16) * 3
    targets = torch.randint(0, vocab, (tokens,), device="cuda")
    targets[::7] = ignore_index
    return [logits, targets, ignore_index]


def reference(logits, targets, ignore_index):
    wide = logits if logits.dtype == torch.float64 else logits.float()
    loss = torch.nn.functional.cross_entropy(wide, targets, ignore_index=ignore_index, reduction="mean")
    return loss, torch.logsumexp(wide, dim=-1)
