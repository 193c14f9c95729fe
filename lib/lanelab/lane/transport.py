"""httpx over sockets that tell when bytes moved.

An HTTP client hands out pieces of a body when it gets round to it. A benchmark needs the moment of
the read itself, needs to know whether any byte of an answer came before a connection ended, and
whether it ended by a close or by a reset. This transport puts a thin layer under httpcore that
notes these on the `Wire` of the request that is in flight in the current task. All times are of
`time.perf_counter`, a monotonic clock.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

clock = time.perf_counter


@dataclass
class Wire:
    """What the socket saw of one attempt."""

    connected_at: float | None = None  # a new connection stood; None where one was reused
    sent_at: float | None = None  # the first byte of the request was handed to the socket
    read_at: float | None = None  # the last read that brought bytes
    bytes_read: int = 0
    closed: bool = False  # the server ended the connection properly (FIN)


_current: ContextVar[Wire | None] = ContextVar("lanelab_wire", default=None)


def watch() -> Wire:
    """A new `Wire` for the request that the current task sends next."""
    wire = Wire()
    _current.set(wire)
    return wire


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        content = await self._inner.read(max_bytes, timeout)
        if wire := _current.get():
            if content:
                wire.read_at = clock()
                wire.bytes_read += len(content)
            else:
                wire.closed = True
        return content

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        wire = _current.get()
        if wire and wire.sent_at is None:
            wire.sent_at = clock()
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        if wire := _current.get():
            wire.connected_at = clock()
        return _Stream(stream)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class TimedTransport(httpx.AsyncBaseTransport):
    """An httpx transport whose sockets note their times on the current `Wire`.

    Errors of the connection come as httpcore's own classes. Proxies of the environment are not
    used: they would be measured along.
    """

    def __init__(self) -> None:
        self._pool = httpcore.AsyncConnectionPool(  # it makes its TLS context when it first needs one
            max_connections=None,
            max_keepalive_connections=None,
            keepalive_expiry=5.0,
            network_backend=_Backend(),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                url,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


def client(*, connect_s: float = 10.0, idle_s: float = 300.0) -> httpx.AsyncClient:
    """An httpx client on a timed transport; `idle_s` is the longest silence that it bears."""
    return httpx.AsyncClient(
        transport=TimedTransport(),
        timeout=httpx.Timeout(connect=connect_s, read=idle_s, write=idle_s, pool=None),
        trust_env=False,
        headers={"Accept-Encoding": "identity"},
    )
