"""A campaign folder and receipts to fill it with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lanelab.receipts import Receipt, Store

START = datetime(2026, 9, 22, 22, 50, 30, tzinfo=UTC)


def decode_row(**fields: Any) -> dict[str, Any]:
    """A valid row of kind decode."""
    return {
        "size": "3K", "streams": 1, "stream": 0, "repeat": 0, "status": "ok", "prompt_tokens": 3072,
        "completion_tokens": 64, "tokens_by": "token_ids", "ttft_s": 0.75, "decode_tok_s": 32.5, **fields,
    }  # fmt: skip


def made(name: str, minute: int = 0, **fields: Any) -> Receipt:
    """A receipt of kind decode, `minute` minutes after START."""
    given: dict[str, Any] = {
        "id": name, "kind": "decode", "origin": "measured", "campaign": "camp", "step": "04-decode",
        "started": START + timedelta(minutes=minute), "rows": [decode_row()], **fields,
    }  # fmt: skip
    return Receipt(**given)


@pytest.fixture
def campaign_dir(tmp_path: Path) -> Path:
    """data/campaigns/camp of a fresh lab."""
    folder = tmp_path / "data" / "campaigns" / "camp"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def write(campaign_dir: Path) -> Callable[..., Receipt]:
    """Write a decode receipt into the campaign."""
    return lambda name, minute=0, **fields: Store(campaign_dir).write(made(name, minute, **fields))


@pytest.fixture(autouse=True)
def no_current_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are not a run."""
    monkeypatch.delenv("LANELAB_RUN", raising=False)
