"""Counters of real engines' pages, and what they prove."""

import pytest

from lanelab.lane.metrics import BadMetrics, Verdict, Window, figures, judge, parse

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 0.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 3.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 4.0
# HELP vllm:prefix_cache_queries_total Prefix cache queries.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0"} 1000.0
# HELP vllm:prefix_cache_hits_total Prefix cache hits.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} 160.0
# HELP vllm:e2e_request_latency_seconds Histogram of e2e request latency.
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="0.3"} 1.0
vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 2.0
vllm:e2e_request_latency_seconds_count 2.0
vllm:e2e_request_latency_seconds_sum 1.5
"""


def test_samples_are_summed_over_labels() -> None:
    assert figures(parse(PAGE)) == {
        "running": 2.0, "waiting": 0.0, "finished": 7.0, "prefix_queries": 1000.0, "prefix_hits": 160.0,
    }  # fmt: skip


def test_older_and_other_engines_names() -> None:
    page = "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs 1\n# TYPE vllm:gpu_prefix_cache_hits counter\nvllm:gpu_prefix_cache_hits_total 5\n"
    assert figures(parse(page)) == {"running": 1.0, "prefix_hits": 5.0}


@pytest.mark.parametrize("page", ["<html>busy</html>", 'a{b="c} 1', "a b c d e"])
def test_a_page_that_is_none_is_one_error(page: str) -> None:
    with pytest.raises(BadMetrics):
        parse(page)


IDLE = {"running": 0.0, "waiting": 0.0, "finished": 7.0, "prefix_queries": 1000.0, "prefix_hits": 160.0}


def verdict(ours: int = 2, before: dict[str, float] | None = None, **after: float) -> Verdict:
    end = IDLE | {"finished": 7.0 + ours} | after
    return judge(Window(IDLE | (before or {}), end), sent=ours, answered=ours)


def test_cold_warm_contended_unknown() -> None:
    assert verdict(prefix_queries=1500.0).state == "cold"
    assert verdict().state == "cold"  # caching is off: nothing was looked up
    warm = verdict(prefix_queries=1500.0, prefix_hits=360.0)
    assert (warm.state, warm.evidence["prefix_hit_share"]) == ("warm", 0.4)
    assert verdict(finished=12.0).state == "contended"
    assert verdict(before={"running": 1.0}).state == "contended"
    assert verdict(waiting=3.0).state == "contended"
    assert verdict(finished=8.0).state == "unknown"  # the server does not know of a request of ours
    assert verdict(prefix_hits=0.0).state == "unknown"  # it restarted in between
    assert judge(Window(None, IDLE), sent=1, answered=1).state == "unknown"
    without = {name: value for name, value in IDLE.items() if not name.startswith("prefix")}
    assert judge(Window(without, without | {"finished": 8.0}), sent=1, answered=1).state == "unknown"
    window = Window(without, without | {"finished": 8.0})
    assert judge(window, sent=1, answered=1, cached_share=0.0).state == "cold"
    assert judge(window, sent=1, answered=1, cached_share=0.5).state == "warm"


def test_acceptance_of_speculation() -> None:
    before = {"spec_drafts": 10.0, "spec_draft_tokens": 30.0, "spec_accepted_tokens": 5.0}
    after = {"spec_drafts": 20.0, "spec_draft_tokens": 60.0, "spec_accepted_tokens": 20.0}
    assert Window(before, after).acceptance() == {"length": 2.5, "rate": 0.5}
    assert Window(before, before).acceptance() is None
    assert Window({}, {}).acceptance() is None
