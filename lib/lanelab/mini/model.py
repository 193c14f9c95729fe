"""Builds the small mixture of experts: transformers' MiMoV2Flash, with weights from a seed.

The shape follows MiMo-V2-Flash in small: a dense first layer, experts elsewhere, full attention in
layer 0 and in every sixth layer, a sliding window of 128 with sinks in the others, keys wider than
values, rotary positions on a third of each head. All arithmetic is float32: a stream's greedy tokens
must not depend on which other streams share its batch, and bfloat16 rounds away the margin.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface, MiMoV2FlashConfig
from transformers.models.mimo_v2_flash.modeling_mimo_v2_flash import MiMoV2FlashForCausalLM

ATTENTION = "lanelab_grouped"


@dataclass(frozen=True)
class Shape:
    """The sizes of the model."""

    vocab: int = 512
    layers: int = 12
    hidden: int = 256
    dense_intermediate: int = 1024
    experts: int = 64
    expert_intermediate: int = 128
    top_k: int = 4
    heads: int = 8
    kv_heads: int = 2  # of full layers; sliding layers have twice as many
    key_dim: int = 48
    value_dim: int = 32
    window: int = 128

    def config(self, max_model_len: int) -> Any:
        """The transformers configuration (a `MiMoV2FlashConfig`)."""
        return MiMoV2FlashConfig(
            vocab_size=self.vocab,
            hidden_size=self.hidden,
            intermediate_size=self.dense_intermediate,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.key_dim,
            v_head_dim=self.value_dim,
            moe_intermediate_size=self.expert_intermediate,
            n_routed_experts=self.experts,
            num_experts_per_tok=self.top_k,
            sliding_window=self.window,
            max_position_embeddings=max_model_len,
            bos_token_id=None,
            attn_implementation=ATTENTION,
            experts_implementation="grouped_mm",
        )


def build(shape: Shape, seed: int, max_model_len: int) -> Any:
    """The model in evaluation mode (a `MiMoV2FlashForCausalLM`), the same one for the same seed."""
    model = MiMoV2FlashForCausalLM(shape.config(max_model_len)).float().eval()
    draw_weights(model, seed)
    return model


def draw_weights(model: Any, seed: int) -> None:
    """Fill every parameter from (seed, its name): adding or reordering parameters changes no other one.

    Matrices get a standard deviation of 1/√(inputs), so that every layer moves the hidden state; the
    norms stay at one.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
                continue
            key = hashlib.sha256(f"{seed}/{name}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(key[:8], "big") >> 1)
            scale = 1.0 if name.endswith(("embed_tokens.weight", "sinks")) else 1.0 / math.sqrt(parameter.shape[-1])
            parameter.normal_(0.0, scale, generator=generator)


def grouped_attention(
    module: Any,
    query: torch.Tensor,  # (batch, heads, queries, key_dim)
    key: torch.Tensor,  # (batch, kv_heads, keys, key_dim)
    value: torch.Tensor,  # (batch, kv_heads, keys, value_dim)
    attention_mask: torch.Tensor | None,  # (batch, 1, queries, keys), 0 or very negative
    scaling: float,
    s_aux: torch.Tensor | None = None,  # (heads,): a sink takes its share of the softmax and gives nothing
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention with grouped queries and sinks that never copies keys or values for the group's heads.

    Returns (batch, queries, heads, value_dim). Equal to transformers' eager attention of this model.
    """
    batch, heads, queries, width = query.shape
    kv_heads = key.shape[1]
    group = heads // kv_heads
    folded = query.reshape(batch, kv_heads, group * queries, width)
    scores = torch.matmul(folded, key.transpose(2, 3)) * scaling  # (batch, kv_heads, group·queries, keys)
    scores = scores.view(batch, heads, queries, -1)
    if attention_mask is not None:
        scores = scores + attention_mask
    if s_aux is not None:
        sinks = s_aux.view(1, -1, 1, 1).expand(batch, -1, queries, -1)
        share = torch.softmax(torch.cat([scores, sinks], dim=-1), dim=-1)[..., :-1]
    else:
        share = torch.softmax(scores, dim=-1)
    out = torch.matmul(share.reshape(batch, kv_heads, group * queries, -1), value)
    return out.view(batch, heads, queries, -1).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, grouped_attention)
