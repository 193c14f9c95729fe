"""The shape of a model: what its `config.json` says about layers, experts and attention.

Three spellings of the same thing are in use (Mixtral's, Qwen's, DeepSeek's and MiMo's), so each
quantity is looked for under its known names; a quantity that is needed and stands under none of
them is an error that lists the names, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from lanelab.errors import LabError

KNOWN = {
    "mimo_v2": "MiMo-V2", "mimo_v2_flash": "MiMo-V2", "mimo_v2_omni": "MiMo-V2", "qwen3_moe": "Qwen3-MoE",
    "mixtral": "Mixtral", "qwen3": "Qwen3", "llama": "Llama",
}  # fmt: skip


class BadConfig(LabError):
    """A config.json lacks a field or holds a value that cannot be. Data: `path`, `field`."""

    def __init__(self, path: str, field: str, why: str) -> None:
        super().__init__(f"{path} (field {field}): {why}", path=path, field=field)


class Attention(BaseModel):
    """Layers that attend alike. `window` is None for full attention."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["full", "sliding"]
    layers: int
    heads: int
    kv_heads: int
    k_dim: int
    v_dim: int
    window: int | None = None
    sinks: bool = False

    def kv_values(self) -> int:
        """K and V values of one token in one layer."""
        return self.kv_heads * (self.k_dim + self.v_dim)


class Shape(BaseModel):
    """Dimensions of a decoder. Without experts `experts`, `top_k` and `moe_layers` are 0."""

    model_config = ConfigDict(extra="forbid")

    model_type: str
    known: bool  # whether the layout behind model_type is one that Lane Lab counts parameter by parameter
    layers: int
    moe_layers: int
    hidden: int
    vocab: int
    max_context: int
    attention: list[Attention]
    dense_intermediate: int
    experts: int = 0
    top_k: int = 0
    expert_intermediate: int = 0
    shared_experts: int = 0
    router_bias: bool = False
    qk_norm: bool = False
    attention_bias: bool = False
    tied_embeddings: bool = False

    @property
    def dense_layers(self) -> int:
        """Layers with one dense MLP."""
        return self.layers - self.moe_layers

    @property
    def cells(self) -> int:
        """Routed experts of all layers: one cell is one expert of one layer."""
        return self.moe_layers * self.experts

    @property
    def expert_parameters(self) -> int:
        """Parameters of one expert: gate, up and down projections."""
        return 3 * self.hidden * self.expert_intermediate

    @property
    def picks_per_token(self) -> int:
        """Cells that one token reads."""
        return self.moe_layers * self.top_k


class _Reader:
    """Reads one config's fields, naming the file and the field in every complaint."""

    def __init__(self, config: dict[str, Any], path: str) -> None:
        self.config, self.path = config, path

    def first(self, names: Iterable[str]) -> tuple[str, Any] | None:
        for name in names:
            if self.config.get(name) is not None:
                return name, self.config[name]
        return None

    def whole(self, *names: str, default: int | None = None, least: int = 1) -> int:
        found = self.first(names)
        if found is None:
            if default is None:
                raise BadConfig(self.path, names[0], f"is needed and missing (looked for {', '.join(names)})")
            return default
        name, value = found
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadConfig(self.path, name, f"must be a whole number of at least {least}, not {value!r}")
        return value

    def flags(self, name: str, length: int) -> list[int] | None:
        value = self.config.get(name)
        if value is None or isinstance(value, int):
            return None
        if not isinstance(value, list) or len(value) != length:
            raise BadConfig(self.path, name, f"must be a list of {length} items, one a layer")
        return [int(bool(item)) for item in value]

    def kinds(self, name: str, length: int, valid: tuple[str, ...]) -> list[str] | None:
        value = self.config.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            raise BadConfig(self.path, name, f"must be a list of {length} items, one a layer")
        for item in value:
            if item not in valid:
                raise BadConfig(self.path, name, f"holds {item!r} (valid: {', '.join(valid)})")
        return value


def shape_of(config: dict[str, Any], path: str = "config.json") -> Shape:
    """The shape that a parsed config.json describes. Raises `BadConfig`."""
    if not isinstance(config, dict):
        raise BadConfig(path, "(whole file)", f"must be an object, not {type(config).__name__}")
    text = config.get("text_config")
    if isinstance(text, dict):
        config = {**{key: value for key, value in config.items() if key != "text_config"}, **text}
    read = _Reader(config, path)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise BadConfig(path, "model_type", "is needed and missing")
    if config.get("kv_lora_rank"):
        raise BadConfig(path, "kv_lora_rank", "latent attention (MLA) is not counted yet; use a GQA model")
    layers = read.whole("num_hidden_layers")
    hidden = read.whole("hidden_size")
    experts = read.whole("n_routed_experts", "num_experts", "num_local_experts", default=0, least=0)
    moe_layers = _moe_layers(read, layers) if experts else 0
    dense = read.whole(
        "intermediate_size", default=None if moe_layers < layers or model_type == "mixtral" else 0, least=0
    )
    expert_intermediate = (
        read.whole("moe_intermediate_size", default=dense if model_type == "mixtral" else None) if experts else 0
    )
    top_k = read.whole("num_experts_per_tok", "top_k") if experts else 0
    if top_k > experts:
        raise BadConfig(path, "num_experts_per_tok", f"{top_k} experts a token of {experts}")
    family = KNOWN.get(model_type)
    return Shape(
        model_type=model_type,
        known=family is not None,
        layers=layers,
        moe_layers=moe_layers,
        hidden=hidden,
        vocab=read.whole("vocab_size"),
        max_context=read.whole("max_position_embeddings"),
        attention=_attention(read, layers, hidden),
        dense_intermediate=dense,
        experts=experts,
        top_k=top_k,
        expert_intermediate=expert_intermediate,
        shared_experts=read.whole("n_shared_experts", "num_shared_experts", default=0, least=0),
        router_bias=family == "MiMo-V2",
        qk_norm=family in {"Qwen3-MoE", "Qwen3"},
        attention_bias=bool(config.get("attention_bias", False)),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
    )


def _moe_layers(read: _Reader, layers: int) -> int:
    kinds = read.kinds("mlp_layer_types", layers, ("dense", "sparse"))
    if kinds is not None:
        return kinds.count("sparse")
    frequency = read.flags("moe_layer_freq", layers)
    if frequency is not None:
        return sum(frequency)
    dense_only = read.config.get("mlp_only_layers") or []
    step = read.whole("decoder_sparse_step", default=1)
    first = read.whole("first_k_dense_replace", default=0, least=0)
    return sum(1 for layer in range(layers) if layer >= first and layer not in dense_only and (layer + 1) % step == 0)


def _attention(read: _Reader, layers: int, hidden: int) -> list[Attention]:
    heads = read.whole("num_attention_heads")
    if hidden % heads and read.config.get("head_dim") is None:
        raise BadConfig(read.path, "head_dim", f"is needed: hidden_size {hidden} is no multiple of {heads} heads")
    k_dim = read.whole("head_dim", default=hidden // heads)
    full = Attention(
        kind="full", layers=layers, heads=heads, kv_heads=read.whole("num_key_value_heads", default=heads),
        k_dim=k_dim, v_dim=read.whole("v_head_dim", default=k_dim), sinks=bool(read.config.get("add_full_attention_sink_bias")),
    )  # fmt: skip
    kinds = read.kinds("layer_types", layers, ("full_attention", "sliding_attention"))
    pattern = read.flags("hybrid_layer_pattern", layers)  # 1 is sliding
    sliding = kinds.count("sliding_attention") if kinds is not None else sum(pattern or [])
    if not sliding:
        return [full]
    # transformers' class has no field for it: it doubles the KV heads of sliding layers
    doubled = read.config["model_type"] == "mimo_v2_flash"
    swa_k = read.whole("swa_head_dim", default=full.k_dim)
    windowed = Attention(
        kind="sliding", layers=sliding, heads=read.whole("swa_num_attention_heads", default=heads),
        kv_heads=read.whole("swa_num_key_value_heads", default=full.kv_heads * (2 if doubled else 1)), k_dim=swa_k,
        v_dim=read.whole("swa_v_head_dim", default=full.v_dim), window=_window(read),
        sinks=bool(read.config.get("add_swa_attention_sink_bias", read.config.get("model_type", "").startswith("mimo"))),
    )  # fmt: skip
    return [full.model_copy(update={"layers": layers - sliding}), windowed]


def _window(read: _Reader) -> int:
    """Tokens a sliding layer looks back, itself included.

    transformers' class for MiMo-V2 stores the hub's `sliding_window_size: 128` as
    `sliding_window: 129`; the hub's own field wins where both stand.
    """
    if read.config.get("sliding_window_size") is not None:
        return read.whole("sliding_window_size")
    return read.whole("sliding_window")
