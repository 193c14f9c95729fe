"""Definitions of the figures on timelines whose answers are known."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab.lane.sse import Event
from lanelab.lane.timeline import Collector, StreamResult, TimedEvent, collect, need_tokens


def chunk(delta: Any = None, finish: str | None = None, **fields: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields})


def run(*timed: tuple[float, str], endpoint: str = "chat") -> StreamResult:
    collector = Collector(endpoint)  # type: ignore[arg-type]
    for t_s, data in timed:
        collector.put(Event(data), t_s)
    return collector.result()


USAGE = json.dumps({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 5}})


def test_figures_of_a_known_timeline() -> None:
    result = run(
        (0.1, chunk({"role": "assistant", "content": ""})),
        (0.5, chunk({"reasoning": "hm"})),
        (0.7, chunk({"content": "a b"})),
        (1.5, chunk({"content": "c"}, finish="stop")),
        (9.0, USAGE),
        (9.1, "[DONE]"),
    )
    assert (result.status, result.text, result.reasoning) == ("ok", "a bc", "hm")
    assert (result.ttft_s, result.first_answer_s, result.last_token_s) == (0.5, 0.7, 1.5)
    assert result.max_gap_s == pytest.approx(0.8)
    assert result.decode_tok_s == pytest.approx((5 - 1) / 1.0)
    assert result.tpot_s == pytest.approx(1.0 / 4)
    assert result.prefill_tok_s == pytest.approx(100.0)
    assert (result.tokens, result.tokens_by) == (5, "final_usage")
    assert result.flags == ["first_chunk_tokens_assumed"]


def test_a_window_without_width_has_no_speed() -> None:
    result = run((0.5, chunk({"content": "all"}, finish="stop")), (0.5, USAGE), (0.5, "[DONE]"))
    assert result.decode_tok_s is None and result.tpot_s is None
    assert result.flags == ["first_chunk_multi_token"]


def test_first_chunk_known_by_token_ids_and_logprobs() -> None:
    by_ids = [
        {"index": 0, "delta": {"content": "a b"}, "token_ids": [1, 2]},
        {"index": 0, "delta": {"content": "c d e"}, "token_ids": [3, 4, 5], "finish_reason": "length"},
    ]
    result = run(
        *((1.0 + at, json.dumps({"choices": [choice]})) for at, choice in enumerate(by_ids)),
        (3.0, USAGE),
        (3, "[DONE]"),
    )
    assert result.decode_tok_s == pytest.approx(3.0)
    assert (result.tokens, result.tokens_by, result.flags) == (5, "token_ids", ["first_chunk_multi_token"])
    logprobs = {"index": 0, "delta": {"content": "a b"}, "logprobs": {"content": [{}, {}, {}]}}
    result = run((1.0, json.dumps({"choices": [logprobs]})), (2.0, chunk({"content": "c"}, "stop")), (2.0, USAGE))
    assert result.decode_tok_s == pytest.approx(2.0)


def test_the_count_is_graded_by_how_it_is_known() -> None:
    running = [chunk({"content": "x"}, usage={"completion_tokens": n, "prompt_tokens": 1}) for n in (1, 2)]
    result = run((1, running[0]), (2, running[1]), (2, "[DONE]"))
    assert (result.tokens, result.tokens_by) == (2, "per_chunk_usage")
    result = run((1, chunk({"content": "x"})), (2, chunk({"content": "y"}, "stop")))
    assert (result.completion_tokens, result.tokens, result.tokens_by) == (None, 2, "estimated")
    assert {"tokens_estimated", "usage_missing", "no_done"} == set(result.flags)


def test_an_error_in_band_is_a_failure_even_after_a_finish_reason() -> None:
    result = run((1, chunk({"content": "x"}, "stop")), (2, '{"error": {"message": "out of memory"}}'), (3, "[DONE]"))
    assert (result.status, result.error_kind, result.error_message) == ("failed", "server_error_event", "out of memory")
    assert result.text == "x"


@pytest.mark.parametrize("data", ["", "nonsense", '{"a": NaN}', '{"choices": [', "[" * 100_000])
def test_broken_data_is_a_failure_and_never_an_exception(data: str) -> None:
    assert run((1.0, chunk({"content": "x"})), (2.0, data)).error_kind == "malformed_event"


@pytest.mark.parametrize(
    "data",
    ["null", "5", "[]", '{"choices": null}', '{"choices": [null, 3]}', '{"choices": [{"delta": 7, "index": true}]}',
     '{"choices": [{"delta": {"content": 5, "tool_calls": [{"function": null}, 1]}}], "usage": 3}', '{"object": "x"}'],
)  # fmt: skip
def test_odd_json_carries_nothing(data: str) -> None:
    result = run((1.0, data), (2.0, chunk({"content": "x"}, "stop")), (2.0, "[DONE]"))
    assert (result.status, result.ttft_s, result.text) == ("ok", 2.0, "x")


def test_a_surrogate_pair_in_two_events_is_one_character() -> None:
    result = run(
        (1, '{"choices":[{"delta":{"content":"\\ud83d"}}]}'), (2, '{"choices":[{"delta":{"content":"\\ude00"}}]}')
    )
    assert result.text == "😀"
    assert run((1, '{"choices":[{"delta":{"content":"a\\ud83d"}}]}')).text == "a\ufffd"


def test_tool_calls_without_indices_are_told_apart_by_id() -> None:
    def call(name: str, arguments: str, identity: str | None) -> str:
        return chunk({"tool_calls": [{"id": identity, "function": {"name": name, "arguments": arguments}}]})

    result = run((1, call("f", "{}", "a")), (2, call("g", '{"x":', "b")), (3, call("", "1}", None)), (3, "[DONE]"))
    assert result.tool_calls == [{"name": "f", "arguments": "{}"}, {"name": "g", "arguments": '{"x":1}'}]


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.sampled_from(["", "a", " b c", "\n"]), st.sampled_from([None, "stop"])),
        max_size=12,
    )
)
def test_figures_can_be_recomputed_from_the_kept_events(parts: list[tuple[float, str, str | None]]) -> None:
    timed = [(t_s, chunk({"content": text}, finish)) for t_s, text, finish in sorted(parts, key=lambda part: part[0])]
    result = run(*timed, (101.0, USAGE), (101.0, "[DONE]"))
    assert collect(result.events, "chat").summary() == result.summary()


def test_what_came_after_done_does_not_count() -> None:
    result = run((1, chunk({"content": "x"}, "stop")), (1, "[DONE]"), (2, chunk({"content": "y"})), (3, "broken"))
    assert (result.status, result.text) == ("ok", "x")


def test_an_unfinished_rest_counts_only_if_it_is_whole() -> None:
    whole = collect([TimedEvent(1.0, chunk({"content": "x"}, "stop"), kind="rest")], "chat")
    torn = collect([TimedEvent(1.0, '{"choices": [', kind="rest")], "chat")
    assert (whole.status, whole.text) == ("ok", "x") and "unterminated_last_event" in whole.flags
    assert (torn.status, torn.error_kind) == ("truncated", "incomplete_stream")


@pytest.mark.parametrize(
    "data",
    ['{"choices": 5}', '{"choices": [5]}', '{"choices": [{"delta": 5}]}', "[1]",
     '{"choices": [{"index": "a", "delta": {"content": 7}}], "usage": "x"}'],
)  # fmt: skip
def test_choices_of_another_format_and_no_token_are_no_success(data: str) -> None:
    result = run((1.0, data), (2.0, "[DONE]"))
    assert (result.status, result.error_kind) == ("failed", "malformed_event")
    assert "malformed_choice" in result.flags
    beside = run((1.0, data), (2.0, chunk({"content": "x"}, "stop")), (2.0, "[DONE]"))
    assert beside.status == "ok" and "malformed_choice" in beside.flags


@pytest.mark.parametrize("count", ['"zz"', "-5", "1e999", "1000000001", str(10**30), "true", "2.5", "[]"])
def test_counts_that_cannot_be_are_dropped_and_flagged(count: str) -> None:
    usage = f'{{"usage": {{"completion_tokens": {count}, "prompt_tokens": {count}}}}}'
    result = run((1.0, chunk({"content": "x"}, "stop")), (2.0, usage), (2.0, "[DONE]"))
    assert (result.completion_tokens, result.prompt_tokens) == (None, None)
    assert "bad_usage" in result.flags
    nothing = run((1.0, '{"usage": {"completion_tokens": null}}'), (2.0, "[DONE]"))
    assert "bad_usage" not in nothing.flags and nothing.status == "ok"


def test_where_tokens_are_needed_a_stream_without_is_a_failure() -> None:
    empty = need_tokens(run((1.0, chunk({"content": ""}, "stop")), (2.0, USAGE), (2.0, "[DONE]")))
    assert (empty.status, empty.error_kind) == ("failed", "no_tokens") and "counts 5" in (empty.error_message or "")
    assert need_tokens(run((1.0, chunk({"content": "x"}, "stop")))).status == "ok"
