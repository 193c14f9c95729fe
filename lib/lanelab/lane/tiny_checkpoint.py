"""Writes a tiny Qwen3-MoE checkpoint with random weights, for the real vLLM on the CPU.

Run by the engine's own interpreter (`python tiny_checkpoint.py FOLDER`), so it imports nothing of
ours. Its text means nothing; it is there to answer on the real server's wire. Greedy output is plain
ASCII: the output rows of all other tokens are zero, so that a stream's every token shows as text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SEED = 0
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 256, 4, 4, 2, 64
EXPERTS, TOP_K, EXPERT_INTERMEDIATE = 16, 4, 128
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CONTEXT = 4096
LOGIT_SCALE = 6.0  # so wide a spread that sampling at temperature 1 rarely takes a zero row
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> Tokenizer:
    """Every byte is a token; there are no merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    return made


def config(vocab: int) -> dict[str, Any]:
    """config.json."""
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": vocab,
        "hidden_size": HIDDEN,
        "intermediate_size": 4 * HIDDEN,
        "moe_intermediate_size": EXPERT_INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "num_experts": EXPERTS,
        "num_experts_per_tok": TOP_K,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "use_cache": True,
        "eos_token_id": vocab - len(SPECIAL),
        "dtype": "bfloat16",
    }


def weights(vocab: int, plain: list[int]) -> dict[str, np.ndarray]:
    """All tensors, float16; the engine casts them. `plain` are the tokens that greedy output may hold."""
    random = np.random.default_rng(SEED)

    def matrix(rows: int, columns: int) -> np.ndarray:
        drawn: np.ndarray = random.standard_normal((rows, columns)) / np.sqrt(columns)
        return drawn.astype(np.float16)

    def ones(size: int) -> np.ndarray:
        return np.ones(size, np.float16)

    tensors = {
        "model.embed_tokens.weight": random.standard_normal((vocab, HIDDEN)).astype(np.float16),
        "model.norm.weight": ones(HIDDEN),
    }
    head = np.zeros((vocab, HIDDEN), np.float16)
    head[plain] = LOGIT_SCALE * matrix(len(plain), HIDDEN)
    tensors["lm_head.weight"] = head
    for layer in range(LAYERS):
        base = f"model.layers.{layer}"
        attention = f"{base}.self_attn"
        tensors |= {
            f"{base}.input_layernorm.weight": ones(HIDDEN),
            f"{base}.post_attention_layernorm.weight": ones(HIDDEN),
            f"{attention}.q_norm.weight": ones(HEAD_DIM),
            f"{attention}.k_norm.weight": ones(HEAD_DIM),
            f"{attention}.q_proj.weight": matrix(HEADS * HEAD_DIM, HIDDEN),
            f"{attention}.k_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{attention}.v_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{attention}.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_DIM),
            f"{base}.mlp.gate.weight": matrix(EXPERTS, HIDDEN),
        }
        for expert in range(EXPERTS):
            part = f"{base}.mlp.experts.{expert}"
            tensors |= {
                f"{part}.gate_proj.weight": matrix(EXPERT_INTERMEDIATE, HIDDEN),
                f"{part}.up_proj.weight": matrix(EXPERT_INTERMEDIATE, HIDDEN),
                f"{part}.down_proj.weight": matrix(HIDDEN, EXPERT_INTERMEDIATE),
            }
    return tensors


def main(folder: Path) -> None:
    """Write the checkpoint; config.json comes last, so that its presence means that all is there."""
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizer()
    vocab = made.get_vocab_size()
    texts = [made.decode([token]) for token in range(vocab)]
    plain = [token for token, text in enumerate(texts) if len(text) == 1 and (" " <= text <= "~" or text == "\n")]
    made.save(str(folder / "tokenizer.json"))
    end = SPECIAL[0]
    for name, content in {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": end,
            "pad_token": end,
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
        "generation_config.json": {"eos_token_id": vocab - len(SPECIAL)},
    }.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")
    save_file(weights(vocab, plain), str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(vocab), indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
