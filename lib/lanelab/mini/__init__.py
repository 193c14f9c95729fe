"""The embedded lane: a small MiMo-V2-shaped mixture of experts on the CPU behind vLLM's routes.

Its weights are drawn from a seed, so its text means nothing; what is real about it is the shape
(full and sliding attention, sinks, a router over many experts), the scheduler and the wire.
`model` builds it, `kv` keeps its keys and values, `engine` batches requests, `server` speaks HTTP.
"""
