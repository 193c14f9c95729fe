"""The real vLLM, when it is up (`make lane-vllm`): our files, checks and client hold on its wire."""

from __future__ import annotations

import pytest

from lanelab import lane as lanes
from lanelab.errors import LabError

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def endpoint() -> lanes.Endpoint:
    try:
        return lanes.resolve("vllm-cpu")
    except LabError as error:
        pytest.skip(f"{error} (make lane-vllm)")


def test_all_of_it_works(endpoint: lanes.Endpoint) -> None:
    found = lanes.check(endpoint)
    assert found.works == dict.fromkeys(("models", "generate", "health", "tokenize", "metrics"), True), found.why
    assert (found.engine, found.model) == ("vllm", "tiny-qwen3moe")
    assert (found.version or "").startswith("0.32")
    assert found.generate_tokens == 4


def test_what_is_engaged_is_what_was_asked_for(endpoint: lanes.Endpoint) -> None:
    recipe = lanes.load("vllm-cpu").recipe
    assert recipe is not None and endpoint.recipe == recipe.ref()
    assert endpoint.server["max_model_len"] == recipe.flags["max-model-len"].value
    assert endpoint.server["version"].split("+")[0] == recipe.version


def test_attached_by_url_it_says_the_same(endpoint: lanes.Endpoint) -> None:
    by_url = lanes.resolve(endpoint.root_url)
    assert (by_url.base_url, by_url.model) == (endpoint.base_url, endpoint.model)
    assert by_url.recipe is None
