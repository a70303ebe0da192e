import torch

entry = "paged_decode"
shapes = [
    {"batch": 2, "heads": 4, "kv_heads": 4, "dim": 24, "pages": 3},
    {"batch": 3, "heads": 8, "kv_heads": 2, "dim": 32, "pages": 5},
]


def get_inputs(batch=3, heads=4, kv_heads=2, dim=32, pages=4):
    page = 16
    q = torch.randn(batch, heads, dim)
    k_cache = torch.randn(batch * pages + 2, page, kv_heads, dim)
    v_cache = torch.randn(batch * pages + 2, page, kv_heads, dim)
    block_tables = torch.randperm(batch * pages + 2)[: batch * pages].reshape(batch, pages).to(torch.int32)
    seq_lens = torch.randint(1, pages * page + 1, (batch,), dtype=torch.int32)
    return [q, k_cache, v_cache, block_tables, seq_lens, dim**-0.5]


def reference(q, k_cache, v_cache, block_tables, seq_lens, scale):
    batch, heads, dim = q.shape
    page, kv_heads = k_cache.shape[1:3]
    out = torch.empty_like(q)
    for b in range(batch):
        n = int(seq_lens[b])
        used = block_tables[b, : (n + page - 1) // page].long()
        k = k_cache[used].reshape(-1, kv_heads, dim)[:n].repeat_interleave(heads // kv_heads, dim=1)
        v = v_cache[used].reshape(-1, kv_heads, dim)[:n].repeat_interleave(heads // kv_heads, dim=1)
        p = torch.softmax(torch.einsum("hd,nhd->hn", q[b], k) * scale, dim=-1)
        out[b] = torch.einsum("hn,nhd->hd", p, v)
    return out
