"""What the engine counts, under vLLM's metric names, so that one reader serves both."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lanelab.mini.engine import Reason, Stream, Watcher

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640)
_REASONS: tuple[Reason, ...] = ("stop", "length", "abort", "error")


class Metrics(Watcher):
    """Prometheus series of one engine. `capacity` is the number of positions that the pool may hold."""

    def __init__(self, model_name: str, capacity: int) -> None:
        self.registry = CollectorRegistry()
        self.capacity = capacity
        names = ["engine", "model_name"]
        labels = {"engine": "0", "model_name": model_name}

        def counter(name: str, says: str) -> Counter:
            return Counter(f"vllm:{name}", says, names, registry=self.registry).labels(**labels)

        def gauge(name: str, says: str) -> Gauge:
            return Gauge(f"vllm:{name}", says, names, registry=self.registry).labels(**labels)

        def histogram(name: str, says: str) -> Histogram:
            return Histogram(f"vllm:{name}", says, names, registry=self.registry, buckets=_SECONDS).labels(**labels)

        self._running = gauge("num_requests_running", "Number of requests in model execution batches.")
        self._waiting = gauge("num_requests_waiting", "Number of requests waiting to be processed.")
        self._used = gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        for name, says in (
            ("prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens."),
            ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens."),
        ):
            counter(name, says)  # they stay at zero, as vLLM's do where prefix caching is off
        self._prompt = counter("prompt_tokens", "Number of prefill tokens processed.")
        self._generated = counter("generation_tokens", "Number of generation tokens processed.")
        self._ttft = histogram("time_to_first_token_seconds", "Time to first token in seconds.")
        self._gap = histogram("inter_token_latency_seconds", "Inter-token latency in seconds.")
        self._whole = histogram("e2e_request_latency_seconds", "End to end request latency in seconds.")
        self._config = Gauge(
            "vllm:cache_config_info", "Information of the KV cache.", [*names, "num_tokens"], registry=self.registry
        )
        self._config.labels(**labels, num_tokens=str(capacity)).set(1)
        success = Counter(
            "vllm:request_success",
            "Count of successfully processed requests.",
            [*names, "finished_reason"],
            registry=self.registry,
        )
        self._success = {reason: success.labels(**labels, finished_reason=reason) for reason in _REASONS}

    def queue(self, running: int, waiting: int, used: int) -> None:
        """Gauges of the scheduler."""
        self._running.set(running)
        self._waiting.set(waiting)
        self._used.set(used / self.capacity)

    def token(self, stream: Stream, now: float) -> None:
        """A token, and the time since the one before it or since the request came."""
        self._generated.inc()
        if stream.last_token_at is None:
            self._ttft.observe(now - stream.arrived)
        else:
            self._gap.observe(now - stream.last_token_at)

    def prompt(self, tokens: int) -> None:
        """Prompt tokens read."""
        self._prompt.inc(tokens)

    def finished(self, stream: Stream, reason: Reason, now: float) -> None:
        """The end of a request."""
        self._success[reason].inc()
        self._whole.observe(now - stream.arrived)

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self.registry)
