import torch

entry = "moe_gate"
shapes = [{"tokens": 7, "experts": 24, "top_k": 6}, {"tokens": 32, "experts": 64, "top_k": 2}]


def get_inputs(tokens=20, experts=32, top_k=4):
    logits = torch.randn(tokens, experts)
    bias = torch.rand(experts) * 0.2
    return [logits, bias, top_k, True, 2.5]


def reference(logits, bias, top_k, renormalize, scaling):
    score = torch.sigmoid(logits)
    indices = torch.sort(score + bias, dim=-1, descending=True, stable=True)[1][:, :top_k]
    weights = torch.gather(score, 1, indices)
    if renormalize:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights * scaling, indices.to(torch.int32)
