import torch

entry = "int4_gemm"
shapes = [{"M": 1, "N": 48, "K": 128}, {"M": 33, "N": 40, "K": 256}]


def get_inputs(M=16, N=64, K=128, group=64):
    x = torch.randn(M, K)
    qweight = torch.randint(-(2**31), 2**31, (K // 8, N), dtype=torch.int64).to(torch.int32)
    scales = torch.rand(K // group, N) * 0.1 + 0.01
    zeros = torch.full((K // group, N), 8, dtype=torch.int32)
    return [x, qweight, scales, zeros, group]


def reference(x, qweight, scales, zeros, group):
    K = x.shape[1]
    shifts = torch.arange(8, dtype=torch.int32) * 4
    q = ((qweight[:, None, :] >> shifts[None, :, None]) & 15).reshape(K, -1)
    w = (q - zeros.repeat_interleave(group, dim=0)).to(x.dtype) * scales.repeat_interleave(group, dim=0)
    return x @ w
