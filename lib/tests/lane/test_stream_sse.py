"""The event parser: known bytes, and that no split of them matters."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lanelab.lane.sse import Event, Parser

HOSTILE = (
    "\ufeffdata: one\n\n"
    ": comment\r\n\r\n"
    "event: error\rdata: two\r\r"
    "data:  keeps one space\ndata: and lines\n\n"
    "id: 7\nretry: 10\n\n"
    "data: \u2028\u0085 日本 🚀\r\n\r\n"
    "error: broke\n"
    "data\n\n"
    "data: left over"
).encode()


def parse(pieces: list[bytes]) -> tuple[list[Event], tuple[Event | None, bool]]:
    parser = Parser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events, parser.rest()


def test_hostile_bytes_give_what_the_standard_says() -> None:
    events, rest = parse([HOSTILE])
    assert events == [
        Event("one"),
        Event("two", "error"),
        Event(" keeps one space\nand lines"),
        Event("\u2028\u0085 日本 🚀"),
        Event("broke", "error", "error_line"),
        Event(""),
    ]
    assert rest == (Event("left over"), True)


@given(st.lists(st.integers(0, len(HOSTILE)), max_size=40))
def test_any_split_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(HOSTILE)]
    pieces = [HOSTILE[a:b] for a, b in itertools.pairwise(places)]
    assert parse(pieces) == parse([HOSTILE])


@given(st.binary(max_size=200), st.integers(1, 7))
def test_any_bytes_at_any_step_are_parsed_alike(content: bytes, step: int) -> None:
    pieces = [content[at : at + step] for at in range(0, len(content), step)]
    assert parse(pieces) == parse([content])


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_data_lines_come_back_as_they_were_sent(lines: list[str]) -> None:
    body = "".join(f"data: {line}\n" for line in lines) + "\n"
    assert parse([b"\xef\xbb\xbf" + body.encode()])[0] == [Event("\n".join(lines))]


def test_a_comment_at_the_end_is_no_begun_event() -> None:
    assert parse([b"data: x\n\n: ping\n"])[1] == (None, False)
    assert parse([b"data: x\n\n"])[1] == (None, False)
    assert parse([b"data: x\n\nda"])[1] == (None, True)
