"""Two ways to one total: our count from the config, and transformers' model on the meta device."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from lanelab import checkpoint
from lanelab.checkpoint import count, shape_of
from lanelab.checkpoint.load import NotYet
from lanelab.checkpoint.shape import BadConfig
from lanelab.errors import BadFile, NotFound

SMALL = dict(
    hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=100, intermediate_size=96,
    max_position_embeddings=128,
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "MiMoV2FlashConfig": {
        **SMALL, "head_dim": 24, "v_head_dim": 16, "num_key_value_heads": 1, "n_routed_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "sliding_window": 16,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
    },
    "Qwen3MoeConfig": {**SMALL, "head_dim": 16, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "MixtralConfig": {**SMALL, "num_local_experts": 8, "num_experts_per_tok": 2},
    "LlamaConfig": {**SMALL, "tie_word_embeddings": False},
    "Qwen3Config": {**SMALL, "head_dim": 16, "tie_word_embeddings": True},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_totals_equal_transformers(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra 'mini'")
    torch = pytest.importorskip("torch", reason="needs the extra 'mini'")
    config = getattr(transformers, name)(**CONFIGS[name])
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    config.save_pretrained(tmp_path)
    shape = shape_of(json.loads((tmp_path / "config.json").read_text()))
    wanted = sum({id(p): p.numel() for p in model.parameters()}.values())
    ours = sum(count.parameters(shape).values())
    if shape.router_bias:  # transformers keeps the router's correction bias as a buffer, checkpoints as a tensor
        ours -= shape.moe_layers * shape.experts
    assert shape.known
    assert ours == wanted


def bf16(path: Path, shapes: dict[str, list[int]]) -> None:
    """A checkpoint of holes: a true header, no weights."""
    header, position = {}, 0
    for name, shape in shapes.items():
        size = 2
        for side in shape:
            size *= side
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + position)


def mixtral(folder: Path, **changes: Any) -> dict[str, list[int]]:
    """Tensors of a two-layer Mixtral, and its config.json in `folder`."""
    config = {
        "model_type": "mixtral", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "vocab_size": 10, "intermediate_size": 16, "max_position_embeddings": 64, "num_local_experts": 4, "num_experts_per_tok": 2,
        **changes,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": [10, 8], "model.norm.weight": [8], "lm_head.weight": [10, 8]}
    for layer in range(2):
        stem = f"model.layers.{layer}"
        shapes |= {
            f"{stem}.self_attn.q_proj.weight": [8, 8], f"{stem}.self_attn.k_proj.weight": [4, 8],
            f"{stem}.self_attn.v_proj.weight": [4, 8], f"{stem}.self_attn.o_proj.weight": [8, 8],
            f"{stem}.input_layernorm.weight": [8], f"{stem}.post_attention_layernorm.weight": [8],
            f"{stem}.block_sparse_moe.gate.weight": [4, 8],
        }  # fmt: skip
        for expert in range(4):
            for part, shape in (("w1", [16, 8]), ("w2", [8, 16]), ("w3", [16, 8])):
                shapes[f"{stem}.block_sparse_moe.experts.{expert}.{part}.weight"] = shape
    return shapes


def test_headers_and_config_agree_role_by_role(tmp_path: Path) -> None:
    shapes = mixtral(tmp_path)
    alone = checkpoint.load(str(tmp_path / "config.json"))
    bf16(tmp_path / "model.safetensors", shapes)
    whole = checkpoint.load(str(tmp_path))
    assert not whole.warnings
    assert {item.role: item.bytes for item in whole.ledger} == {item.role: item.bytes for item in alone.ledger}
    assert whole.parameters_active == alone.parameters_active
    assert whole.cell_weight_bytes == 3 * 8 * 16 * 2
    single = checkpoint.load(str(tmp_path / "model.safetensors"))
    assert single.ledger == whole.ledger


def test_a_tied_head_counts_once(tmp_path: Path) -> None:
    bf16(tmp_path / "model.safetensors", mixtral(tmp_path, tie_word_embeddings=True))
    facts = checkpoint.load(str(tmp_path))
    assert not facts.has("head")
    assert facts.parameters_total == sum(count.parameters(facts.shape).values())


def test_a_strange_tensor_is_warned_of_and_counted(tmp_path: Path) -> None:
    bf16(tmp_path / "model.safetensors", mixtral(tmp_path) | {"zebra.stripes": [5]})
    facts = checkpoint.load(str(tmp_path))
    assert facts.entry("other_loaded").bytes == 10
    assert "zebra.stripes" in facts.warnings[0]


def test_layers_beyond_the_decoder_are_a_drafter(tmp_path: Path) -> None:
    extra = {"model.layers.2.self_attn.q_proj.weight": [8, 8], "model.mtp.0.proj.weight": [8, 8]}
    bf16(tmp_path / "model.safetensors", mixtral(tmp_path) | extra)
    facts = checkpoint.load(str(tmp_path))
    assert facts.entry("drafter").bytes == 256
    assert not facts.entry("drafter").loaded


def test_an_unknown_architecture_warns(tmp_path: Path) -> None:
    bf16(tmp_path / "model.safetensors", mixtral(tmp_path, model_type="newmoe", moe_intermediate_size=16))
    facts = checkpoint.load(str(tmp_path))
    assert "newmoe" in facts.warnings[0]
    assert facts.cells == 8


def test_experts_that_do_not_divide_into_cells(tmp_path: Path) -> None:
    shapes = mixtral(tmp_path, num_local_experts=7)
    bf16(tmp_path / "model.safetensors", shapes)
    with pytest.raises(BadConfig, match="14 cells"):
        checkpoint.load(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "8"}, "whole number"),
        ({"hidden_size": 0}, "at least 1"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"model_type": None}, "model_type"),
        ({"num_experts_per_tok": 9}, "9 experts a token of 4"),
        ({"num_attention_heads": 3}, "head_dim"),
        ({"kv_lora_rank": 512}, "MLA"),
        ({"layer_types": ["full_attention"]}, "list of 2 items"),
        ({"layer_types": ["full_attention", "spiral"]}, "spiral"),
        ({"mlp_layer_types": ["dense", "cubic"]}, "cubic"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding_window"),
    ],
)
def test_a_bad_config_names_file_and_field(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    mixtral(tmp_path, **changes)
    with pytest.raises(BadConfig, match=expected) as caught:
        checkpoint.load(str(tmp_path))
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_config_that_is_no_json_object(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(BadFile):
        checkpoint.load(str(tmp_path))


def test_models_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"did you mean 'mimo-v2\.6-pro'"):
        checkpoint.load("mimo-v2.6-por")
    with pytest.raises(NotYet, match="not read yet"):
        checkpoint.load("some-owner/some-model")
    with pytest.raises(NotFound):
        checkpoint.load("../no-such-folder")
    with pytest.raises(BadFile, match="holds no model"):
        checkpoint.load(str(tmp_path))
    with pytest.raises(BadFile, match=r"config\.json"):
        bf16(tmp_path / "model.safetensors", {"a": [1]})
        checkpoint.load(str(tmp_path))


@pytest.mark.slow
def test_the_embedded_model_is_what_its_config_says() -> None:
    """data/models/mini is the embedded lane's model: same fields as its code, same parameters as its weights."""
    torch = pytest.importorskip("torch", reason="needs the extra 'mini'")
    pytest.importorskip("transformers", reason="needs the extra 'mini'")
    from transformers import MiMoV2FlashForCausalLM

    from lanelab import paths
    from lanelab.mini.model import Shape

    stored = json.loads(paths.data("models", "mini", "config.json").read_text())
    config = Shape().config(stored["max_position_embeddings"])
    built = config.to_dict()
    assert {key: built.get(key) for key in stored if key not in {"architectures", "dtype"}} == {
        key: value for key, value in stored.items() if key not in {"architectures", "dtype"}
    }
    with torch.device("meta"):
        wanted = sum(item.numel() for item in MiMoV2FlashForCausalLM(config).parameters())
    facts = checkpoint.load("mini")
    assert facts.parameters_total - facts.shape.moe_layers * facts.shape.experts == wanted
    assert facts.entry("routed_experts").dtype == "fp32"
