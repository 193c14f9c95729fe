"""A recipe's digest covers what reaches the server, and only that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lanelab import recipe
from lanelab.errors import BadFile
from lanelab.recipe import Recipe

BASE: dict[str, Any] = {
    "name": "v22", "engine": "vllm", "version": "0.29.1", "model": "/model",
    "image": {"name": "vllm/vllm-openai:nightly", "digest": "sha256:" + "a" * 64},
    "flags": {
        "max-model-len": {"value": 262144, "why": "the longest prompt that fits"},
        "trust-remote-code": {"value": True, "why": "the config class is the checkpoint's"},
        "cpu-offload-params": {"value": ["w13_weight", "w2_weight"], "why": "experts only", "from": "a post"},
    },
    "environment": {"VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY": {"value": True, "why": "exact pinning"}},
    "patches": [{"name": "hotsplit", "target": "vllm/hotsplit.py", "sha256": "b" * 64, "why": "two banks", "upstream": "none yet"}],
}  # fmt: skip


def changed(**fields: Any) -> Recipe:
    return Recipe.model_validate({**BASE, **fields})


def test_words_of_the_command_line() -> None:
    assert changed().arguments() == [
        "--max-model-len", "262144", "--trust-remote-code", "--cpu-offload-params", "w13_weight", "w2_weight",
    ]  # fmt: skip
    assert changed().variables() == {"VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY": "1"}


SILENT: dict[str, dict[str, Any]] = {
    "name": {"name": "v22-again"},
    "says": {"says": "the best so far"},
    "why and from": {"flags": {name: {"value": flag["value"], "why": "other", "from": "elsewhere"} for name, flag in BASE["flags"].items()}},
    "order of flags": {"flags": dict(reversed(BASE["flags"].items()))},
    "a flag that is off": {"flags": {**BASE["flags"], "enforce-eager": {"value": False, "why": "graphs on"}}},
    "tag beside a digest": {"image": {"name": "vllm/vllm-openai:other-tag", "digest": BASE["image"]["digest"]}},
    "upstream": {"patches": [{**BASE["patches"][0], "upstream_state": "open", "drop_when": "it is merged"}]},
    "how a variable is spelt": {"environment": {"VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY": {"value": 1, "why": "x"}}},
}  # fmt: skip
HEARD: dict[str, dict[str, Any]] = {
    "engine": {"engine": "sglang"},
    "version": {"version": "0.29.2"},
    "model": {"model": "/other"},
    "image": {"image": {"name": "vllm/vllm-openai:nightly", "digest": "sha256:" + "c" * 64}},
    "no image": {"image": None},
    "a flag's value": {"flags": {**BASE["flags"], "max-model-len": {"value": 1048576, "why": "the longest prompt that fits"}}},
    "a flag more": {"flags": {**BASE["flags"], "enforce-eager": {"value": True, "why": "x"}}},
    "order in a list": {"flags": {**BASE["flags"], "cpu-offload-params": {"value": ["w2_weight", "w13_weight"], "why": "x"}}},
    "environment": {"environment": {}},
    "a patch's content": {"patches": [{**BASE["patches"][0], "sha256": "d" * 64}]},
    "a patch's target": {"patches": [{**BASE["patches"][0], "target": "vllm/other.py"}]},
}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_what_the_digest_leaves_out(name: str) -> None:
    assert changed(**SILENT[name]).digest == changed().digest


@pytest.mark.parametrize("name", HEARD)
def test_what_the_digest_covers(name: str) -> None:
    assert changed(**HEARD[name]).digest != changed().digest


def test_all_changes_that_count_give_different_digests() -> None:
    assert len({changed(**fields).digest for fields in HEARD.values()}) == len(HEARD)


@pytest.mark.parametrize(
    "fields",
    [
        {"flags": {"--max-model-len": {"value": 1, "why": "x"}}},
        {"flags": {"max_model_len": {"value": 1, "why": "x"}}},
        {"flags": {"max-model-len": {"value": 1, "why": ""}}},
        {"flags": {"max-model-len": {"value": 1}}},
        {"environment": {"A=B": {"value": 1, "why": "x"}}},
        {"environment": {"A": {"value": [1], "why": "x"}}},
        {"image": {"name": "x", "digest": "latest"}},
        {"patches": [{**BASE["patches"][0], "sha256": "b"}]},
        {"patches": BASE["patches"] * 2},
        {"engine": "other"},
        {"enigne": "vllm"},
    ],
)
def test_recipes_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        changed(**fields)


def test_a_file_with_a_mistake_names_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "v22.yaml"
    path.write_text("name: v22\nengine: vllm\nversion: '1'\nflags:\n  max-model-len:\n    value: 1\n    wyh: typo\n")
    with pytest.raises(BadFile) as caught:
        recipe.load(path)
    assert "v22.yaml:" in str(caught.value) and "max-model-len" in str(caught.value)
