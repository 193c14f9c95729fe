"""Small campaigns with known answers, made by hand for each test."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lanelab.receipts import Labels, Receipt, RecipeRef, Source, Store

WHEN = datetime(2026, 9, 22, 10, 0, tzinfo=UTC)


class Bench:
    """A campaign folder and short ways to fill it."""

    def __init__(self, campaign_dir: Path) -> None:
        self.dir = campaign_dir
        self.store = Store(campaign_dir)
        campaign_dir.mkdir(parents=True)

    def receipt(self, receipt_id: str, kind: str, rows: list[dict[str, Any]], **given: Any) -> Receipt:
        labels = Labels(state=given.pop("state", "warm"), emulated=given.pop("emulated", None))
        boot = given.pop("boot", None)
        base = {
            "id": receipt_id, "kind": kind, "origin": "measured", "campaign": self.dir.name, "lane": "mini",
            "started": WHEN, "finished": WHEN, "labels": labels, "boot": boot, "source": Source(citation="a test"),
            "recipe": RecipeRef(name=boot) if boot else None, "rows": rows,
        }  # fmt: skip
        return self.store.write(Receipt(**{**base, **given}))

    def decode(
        self, receipt_id: str, speeds: list[float], *, size: str = "1K", tokens: int = 1024, **given: Any
    ) -> Receipt:
        row_state = given.pop("row_state", "warm")
        rows = [
            {"size": size, "streams": 1, "stream": 0, "repeat": n, "status": "ok", "prompt_tokens": tokens,
             "ttft_s": tokens / 1000 + n / 100, "decode_tok_s": speed, "row_state": row_state}
            for n, speed in enumerate(speeds)
        ]  # fmt: skip
        return self.receipt(receipt_id, "decode", rows, **given)

    def knee(self, receipt_id: str, levels: dict[int, list[float]], **given: Any) -> Receipt:
        failed = given.pop("failed", 0)
        rows = [
            {"streams": streams, "repeat": n, "aggregate_tok_s": speed, "per_stream_tok_s": speed / streams,
             "ok": streams, "failed": failed, "row_state": given.get("row_state", "warm")}
            for streams, speeds in levels.items() for n, speed in enumerate(speeds)
        ]  # fmt: skip
        given.pop("row_state", None)
        return self.receipt(receipt_id, "knee", rows, **given)

    def facts(self, text: str) -> None:
        (self.dir / "facts.yaml").write_text(text)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """An empty campaign `trial` in a lab of its own."""
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path))
    monkeypatch.delenv("LANELAB_RUN", raising=False)
    return Bench(tmp_path / "data" / "campaigns" / "trial")


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """What a notebook would show: (data by MIME type, metadata)."""
    found: list[tuple[dict[str, str], dict[str, Any]]] = []

    def show(data: dict[str, str], *, raw: bool, metadata: dict[str, Any]) -> None:
        assert raw
        found.append((data, metadata))

    monkeypatch.setattr("IPython.display.display", show)
    return found
