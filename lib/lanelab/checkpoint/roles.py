"""What a tensor is for, told from its name.

Names follow a few habits: `model.layers.N.…` for the decoder, `mlp.experts.I.` or
`mlp.experts.gate_up_proj` for routed experts, `mtp` or layers beyond the decoder's for the drafter.
A scale belongs to the weight that it stands beside.
"""

from __future__ import annotations

import re

from lanelab.checkpoint.facts import EXPERTS

_SCALE = re.compile(
    r"(_scale_inv|_scale|_scales|_scale_2|\.scales|\.qzeros|\.input_scale|\.weight_scale|\.g_idx|\.zeros)$"
)
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
# The first pattern that is found decides.
_PATTERNS = (
    ("vision", re.compile(r"(?:^|\.)(visual|vision\w*|image\w*|vit|mm_projector|multi_modal_projector)\.")),
    ("audio", re.compile(r"(?:^|\.)(audio\w*|speech\w*|sound\w*)\.")),
    ("drafter", re.compile(r"(?:^|\.)(mtp\w*|nextn|draft\w*|eagle\w*)\.")),
    ("shared_experts", re.compile(r"\.(shared_experts?|shared_expert_gate|shared_mlp)\.")),
    (EXPERTS, re.compile(r"\.experts\.|\.block_sparse_moe\.experts\.")),
    ("router", re.compile(r"\.(gate|router|wg)\.(weight|bias|e_score_correction_bias)|e_score_correction_bias")),
    ("norm", re.compile(r"(norm|layernorm|ln_\w+)\.(weight|bias)$|(?:^|\.)norm\.")),
    ("o_proj", re.compile(r"\.(o_proj|out_proj|wo)\.")),
    ("qkv_proj", re.compile(r"\.(q_proj|k_proj|v_proj|qkv_proj|query_key_value|wqkv|kv_proj)\.|sink")),
    ("attention", re.compile(r"\.(self_attn|attention|linear_attn|attn)\.")),
    ("dense_mlp", re.compile(r"\.(mlp|feed_forward)\.")),
    ("embedding", re.compile(r"(embed_tokens|word_embeddings|wte|tok_embeddings)\.")),
    ("head", re.compile(r"(?:^|\.)(lm_head|output)\.")),
)


def role_of(name: str, decoder_layers: int) -> str | None:
    """The role of a tensor, or None for a name that fits no habit."""
    layer = _LAYER.search(name)
    for role, pattern in _PATTERNS:
        if pattern.search(name):
            beyond = layer is not None and int(layer.group(1)) >= decoder_layers
            return "drafter" if beyond and role not in {"vision", "audio"} else role
    return None


def is_scale(name: str) -> bool:
    """Whether a tensor holds scales or zero points of another."""
    return bool(_SCALE.search(name))
