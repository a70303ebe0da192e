import torch

entry = "ce_loss"
shapes = [{"rows": 3, "vocab": 100}, {"rows": 9, "vocab": 33}]


def get_inputs(rows=8, vocab=160):
    logits = torch.randn(rows, vocab) * 2
    target = torch.randint(0, vocab, (rows,))
    target[1::4] = -100
    return [logits, target, -100, 0.1, 1e-4]


def reference(logits, target, ignore_index, smoothing, z_scale):
    kept = target != ignore_index
    vocab = logits.shape[1]
    lse = torch.logsumexp(logits, dim=-1)
    safe = torch.where(kept, target, torch.zeros_like(target))
    picked = logits.gather(1, safe[:, None])[:, 0]
    each = lse - (1 - smoothing) * picked - smoothing * logits.mean(dim=-1) + z_scale * lse**2
    count = kept.sum()
    loss = torch.where(kept, each, torch.zeros_like(each)).sum() / count
    p = torch.exp(logits - lse[:, None])
    grad = p * (1 + 2 * z_scale * lse)[:, None] - smoothing / vocab
    grad = grad - (1 - smoothing) * torch.nn.functional.one_hot(safe, vocab).to(logits.dtype)
    return loss, torch.where(kept[:, None], grad / count, torch.zeros_like(grad))
