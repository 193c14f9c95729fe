"""`python -m lanelab.mini serve`: builds the model, then serves it. It logs as vLLM does."""

from __future__ import annotations

import logging
import os
import time

import click

log = logging.getLogger("lanelab.mini")


@click.group()
def main() -> None:
    """The embedded lane."""


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--model-seed", type=click.IntRange(0, 2**31), default=0, show_default=True)
@click.option("--max-model-len", type=click.IntRange(16, 65536), default=8192, show_default=True)
@click.option("--max-num-seqs", type=click.IntRange(1, 64), default=16, show_default=True)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads of one pass.")
@click.option("--served-model-name", default="mini", show_default=True)
def serve(
    host: str, port: int, model_seed: int, max_model_len: int, max_num_seqs: int, threads: int, served_model_name: str
) -> None:
    """Serve a small mixture of experts whose weights come from a seed; its text means nothing."""
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise click.BadParameter(f"{host!r} is not this machine alone (valid: 127.0.0.1)", param_hint="--host")
    logging.basicConfig(
        level=logging.INFO,
        format=f"(APIServer pid={os.getpid()}) %(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s",
        datefmt="%m-%d %H:%M:%S",
    )
    given = click.get_current_context().params
    log.info("non-default args: %s", {name: value for name, value in given.items() if not _is_default(name)})
    begun = time.monotonic()
    # the layers are so small that a second thread waits more than it works, and on a busy machine it stalls the first
    os.environ["OMP_NUM_THREADS"] = str(threads)
    log.info("importing torch and transformers")
    import torch
    import uvicorn

    from lanelab.mini.engine import Engine
    from lanelab.mini.metrics import Metrics
    from lanelab.mini.model import Shape, build
    from lanelab.mini.server import ENGINE_VERSION, Server
    from lanelab.mini.tokenizer import MiniTokenizer

    torch.set_num_threads(threads)
    log.info("Initializing the embedded engine (v%s), imports took %.2f s", ENGINE_VERSION, time.monotonic() - begun)
    begun = time.monotonic()
    tokenizer = MiniTokenizer()
    shape = Shape(vocab=tokenizer.size)
    log.info("building the model: %d layers, %d experts each", shape.layers, shape.experts)
    model = build(shape, model_seed, max_model_len)
    parameters = sum(one.numel() for one in model.parameters())
    log.info(
        "Drawing weights took %.2f seconds: %d parameters, seed %d", time.monotonic() - begun, parameters, model_seed
    )
    capacity = max_num_seqs * max_model_len
    log.info("CPU KV cache size: %s tokens", f"{capacity:,}")
    log.info("Maximum concurrency for %s tokens per request: %.2fx", f"{max_model_len:,}", max_num_seqs)
    metrics = Metrics(served_model_name, capacity)
    engine = Engine(
        model,
        max_num_seqs=max_num_seqs,
        max_model_len=max_model_len,
        texts=tokenizer.texts,
        may_generate=[*tokenizer.printable, tokenizer.end_id],
        end_id=tokenizer.end_id,
        watcher=metrics,
    )
    engine.start()
    app = Server(engine, tokenizer, metrics, served_model_name).app()
    try:
        uvicorn.run(app, host=host, port=port, log_level="info", timeout_graceful_shutdown=5)
    finally:
        engine.close()


def _is_default(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT


if __name__ == "__main__":
    main(prog_name="python -m lanelab.mini")
