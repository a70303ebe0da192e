"""Normalizations, activations and losses of several packages, with their gradients; the argument names the layer."""

import sys

import torch

OPTIONS = {"device": "cuda", "dtype": torch.bfloat16}


def rows(count=2048, hidden=4096, of=1, **options):
    return [torch.randn(count, hidden, **{**OPTIONS, **options}).requires_grad_() for _ in range(of)]


def complex_scan(batch=4, channels=64, length=2048):
    from accelerated_scan.complex import scan

    gates, tokens = torch.randn(2, batch, channels, length, dtype=torch.complex64, device="cuda") / 2
    scan(gates.requires_grad_(), tokens.requires_grad_()).abs().sum().backward()


def axolotl_norm(hidden=4096):
    from axolotl.kernels.rms_norm_gated import FusedRMSNormGated

    FusedRMSNormGated(hidden).to(**OPTIONS)(*rows(hidden=hidden, of=2)).sum().backward()


def axolotl_swiglu():
    from axolotl.kernels.swiglu import swiglu_backward, swiglu_forward

    gate, up = (torch.randn(2, 1024, 8192, **OPTIONS) for _ in range(2))
    swiglu_backward(torch.ones_like(swiglu_forward(gate, up)), gate, up)


def conch_norm(hidden=4096):
    from conch.kernels.normalization.gemma_rms_norm import gemma_rms_norm_inplace_launcher

    gemma_rms_norm_inplace_launcher(torch.randn(2048, hidden, **OPTIONS), torch.randn(hidden, **OPTIONS))


def lightning_norm(hidden=4096):
    from lightning_attn.ops.triton.srmsnorm import SimpleRMSNorm

    SimpleRMSNorm(hidden)(*rows(hidden=hidden)).sum().backward()


def openfold_swiglu():
    from openfold3.core.kernels.triton.swiglu import LigerSiLUMulFunction

    LigerSiLUMulFunction.apply(*rows(8192, 512, of=2)).sum().backward()


def trl_logprobs(tokens=512, vocabulary=32000):
    from trl.kernels.logprob_entropy import selective_log_softmax_and_entropy

    (logits,) = rows(tokens, vocabulary)
    logprobs, entropy = selective_log_softmax_and_entropy(
        logits.view(1, tokens, vocabulary), torch.randint(0, vocabulary, (1, tokens), device="cuda")
    )
    (logprobs.sum() + entropy.sum()).backward()


def xformers_norm(hidden=4096):
    from xformers.ops.rmsnorm import rms_norm, rms_norm_add

    weight = torch.randn(hidden, **OPTIONS)
    x, y = (one.detach() for one in rows(hidden=hidden, of=2))
    rms_norm(x, weight)
    rms_norm_add(x, y, weight)


def thunder_loss(tokens=512, vocabulary=32000):
    from thunder.executors.triton_crossentropy_impl import cross_entropy

    (logits,) = rows(tokens, vocabulary, dtype=torch.float32)
    cross_entropy(logits, torch.randint(0, vocabulary, (tokens,), device="cuda")).backward()


globals()[sys.argv[1]]()
