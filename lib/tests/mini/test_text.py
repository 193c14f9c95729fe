"""Tokens and text: every text can be spelt, and stop strings never reach the client."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the embedded lane needs the extra `mini`")

from lanelab.mini.model import Shape
from lanelab.mini.text import TextStream
from lanelab.mini.tokenizer import MiniTokenizer

TOKENIZER = MiniTokenizer()


@given(st.text(max_size=80).filter(lambda text: "<|" not in text))  # the marks of turns have no text of their own
def test_every_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.lists(st.sampled_from(TOKENIZER.printable), max_size=40))
def test_generated_tokens_are_text_on_their_own(tokens: list[int]) -> None:
    assert "".join(TOKENIZER.texts[token] for token in tokens) == TOKENIZER.decode(tokens)
    assert all(TOKENIZER.texts[token].isascii() and TOKENIZER.texts[token] for token in tokens)


def test_the_vocabulary_never_changes() -> None:
    """Receipts of two machines count the same tokens; a changed vocabulary needs a new engine version."""
    pieces = json.dumps(TOKENIZER.pieces(list(range(TOKENIZER.size)))).encode()
    assert hashlib.sha256(pieces).hexdigest()[:16] == "6ad5d4dbbb6fcdb4"
    assert TOKENIZER.size == Shape().vocab


def test_lone_surrogates_do_not_break_it() -> None:
    assert TOKENIZER.decode(TOKENIZER.encode("a\ud800b")) == "a?b"


def test_the_described_model_is_the_served_one() -> None:
    """data/models/mini describes what this room builds."""
    path = Path(__file__).parents[3] / "data" / "models" / "mini" / "config.json"
    described = json.loads(path.read_text())
    built = Shape().config(described["max_position_embeddings"])
    for name, value in described.items():
        if name not in ("architectures", "dtype"):
            assert getattr(built, name) == value, name


@given(
    st.lists(st.text("ab\n", max_size=3), max_size=12), st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3)
)
def test_a_stream_stops_where_the_whole_text_would(pieces: list[str], stops: list[str]) -> None:
    stream, sent = TextStream(stops), []
    for piece in pieces:
        sent.append(stream.push(piece))
        if stream.stopped_by is not None:
            break
    sent.append(stream.flush())
    text, grown = "".join(pieces), ""
    for piece in pieces:
        grown += piece
        places = [grown.find(word) for word in stops if word in grown]
        if places:
            text = grown[: min(places)]
            break
    assert "".join(sent) == text
    assert (stream.stopped_by is not None) == any(word in "".join(pieces) for word in stops)
