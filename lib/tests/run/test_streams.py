"""Printed text is bounded, and every byte is kept or counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lanelab.run.streams import MOST_OUTPUTS, NOTEBOOK_BUDGET, CappedText, CellStreams, cost

TEXTS = st.lists(st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=60), max_size=40)


@given(TEXTS, st.integers(40, 2000))
def test_head_and_tail_are_those_of_the_whole(texts: list[str], budget: int) -> None:
    capped = CappedText(budget)
    for text in texts:
        capped.add(text)
    whole, found = "".join(texts), capped.text()
    if cost(whole) <= int(budget * 0.15) or not capped.cut_bytes:
        assert found == whole
        return
    head, tail = found.split(f"\n[… {capped.cut_bytes} bytes cut here by the runner …]\n")
    assert whole.startswith(head) and whole.endswith(tail)
    assert len((head + tail).encode()) + capped.cut_bytes == len(whole.encode())
    assert cost(head) + cost(tail) <= budget


def test_a_notebook_of_floods_stays_bounded() -> None:
    streams = CellStreams()
    total = 0
    for number in range(20):
        streams.begin(f"cell-{number}")
        outputs = [streams.add(name, "y\n" * 200_000) for name in ("stdout", "stderr")]
        streams.put()
        total += sum(cost(output["text"]) for output in outputs if output is not None)
    assert total < NOTEBOOK_BUDGET + 20 * 20_000 and len(streams.cut_bytes) == 20


def test_overwritten_progress_is_gone() -> None:
    capped = CappedText(10_000)
    for text in ("start\r\n", "\r10 %", "\r20 %", "\r100 %\n", "end"):
        capped.add(text)
    assert capped.text() == "start\n100 %\nend"


def test_too_many_outputs_are_counted() -> None:
    streams = CellStreams()
    streams.begin("loop")
    assert all(streams.interrupted(number) for number in range(MOST_OUTPUTS))
    assert not streams.interrupted(MOST_OUTPUTS) and streams.dropped_outputs == {"loop": 1}
