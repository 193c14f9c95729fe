"""papermill's notebook client with joined and bounded streams, and a dead kernel seen within a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient

from lanelab.run.streams import BUNDLE_BUDGET, CellStreams, size

ALIVE_EVERY_S = 0.2
DRAIN_S = 0.5  # what a dying cell printed may still be on the wire
RELAY_EVERY_S = 1.0  # a cell that floods stderr is not a progress line each


class Client(PapermillNotebookClient):  # type: ignore[misc]
    """Executes cells; `streams` holds what they print, `left_early` whether a cell called exit().

    `relay` gets the last line that a running cell wrote to stderr, at most one a second: its progress.
    """

    clear_before_next_output: bool

    def __init__(self, nb_man: Any, streams: CellStreams, relay: Callable[[str], None], **settings: Any) -> None:
        super().__init__(nb_man, raise_on_iopub_timeout=False, iopub_timeout=30, **settings)
        self.streams = streams
        self._relay = relay
        self._relayed_at = 0.0
        self.left_early = False
        self.on_cell_executed = self._look_for_exit

    def _look_for_exit(self, execute_reply: dict[str, Any], **_: Any) -> None:
        payload = execute_reply["content"].get("payload") or []
        self.left_early = any(item.get("source") == "ask_exit" for item in payload)

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """Bound what is shown before nbclient and papermill keep it."""
        kind, content = msg["msg_type"], msg["content"]
        if kind in ("display_data", "execute_result", "update_display_data"):
            self.streams.bundle(content, again=kind == "update_display_data")
        elif kind == "error":
            self.streams.error(content)
        elif kind in ("comm_open", "comm_msg") and size(content.get("data")) > BUNDLE_BUDGET:
            return None  # a widget's state of that size is no output; nothing of it is shown without a browser
        return super().process_message(msg, cell, cell_index)

    def output(
        self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str | None, cell_index: int
    ) -> NotebookNode | None:
        """Join stream text; everything else goes nbclient's way."""
        if self.output_hook_stack[msg["parent_header"].get("msg_id")]:
            return super().output(outs, msg, display_id, cell_index)
        if self.clear_before_next_output:
            outs[:] = []
            self.clear_display_id_mapping(cell_index)
            self.clear_before_next_output = False
            self.streams.forget()
        if msg["msg_type"] == "stream":
            self._tell(msg["content"]["name"], msg["content"]["text"])
            fresh = self.streams.add(msg["content"]["name"], msg["content"]["text"])
            if fresh is not None:
                outs.append(fresh)
            return fresh
        if msg["msg_type"] != "error" and not self.streams.interrupted(len(outs)):
            return None
        return super().output(outs, msg, display_id, cell_index)

    def _tell(self, name: str, text: str) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        if name == "stderr" and lines and time.monotonic() - self._relayed_at >= RELAY_EVERY_S:
            self._relayed_at = time.monotonic()
            self._relay("".join(char for char in lines[-1][:160] if char.isprintable()))

    def clear_output(self, outs: list[NotebookNode], msg: dict[str, Any], cell_index: int) -> None:
        """Forget the text with the outputs."""
        super().clear_output(outs, msg, cell_index)
        if not outs:
            self.streams.forget()

    async def _async_poll_kernel_alive(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_EVERY_S)
            try:
                await self._async_check_alive()
            except DeadKernelError:
                await asyncio.sleep(DRAIN_S)
                if self.task_poll_for_reply is not None:
                    self.task_poll_for_reply.cancel()
                return
