"""Ctrl-C and SIGTERM: noted while a notebook runs, raised elsewhere.

While cells execute, a signal only sets a flag that the runner looks at ten times a second: it then
ends the kernel, writes the partial notebook and closes the record. A second Ctrl-C changes nothing.
Between runs (a lane comes up, a plan is made) the signal is raised as `Stopped`, so that every
`finally` on the way out takes down what was started.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, TypeVar

Entered = TypeVar("Entered")


class Stopped(KeyboardInterrupt):
    """The process was told to stop. `exit_code` is the shell's: 128 and the signal's number."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signum


class Stopper:
    """The process's wish to stop. `signum` is the first signal that came, or None."""

    def __init__(self) -> None:
        self.signum: int | None = None
        self._deferred = 0

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        if self.signum is None:
            self.signum = signum
        if not self._deferred:
            raise Stopped(self.signum)

    @contextmanager
    def listening(self) -> Iterator[Stopper]:
        """Handle SIGINT, SIGTERM and SIGHUP; in a thread other than the first nothing is changed."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before: dict[int, Any] = {}
        for signum in (int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP)):
            if signal.getsignal(signum) is not signal.SIG_IGN or signum != signal.SIGHUP:
                before[signum] = signal.signal(signum, self._on_signal)
        try:
            yield self
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Signals only set the flag in here."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    def check(self) -> None:
        """Raise `Stopped` if a signal came while signals were deferred."""
        if self.signum is not None:
            raise Stopped(self.signum)

    @contextmanager
    def deferred_exit(self, manager: AbstractContextManager[Entered]) -> Iterator[Entered]:
        """`manager`, entered so that it can be cut short, left so that it cannot: a lane comes down whole."""
        entered = manager.__enter__()
        try:
            yield entered
        except BaseException:
            with self.deferred():
                if not manager.__exit__(*sys.exc_info()):
                    raise
        else:
            with self.deferred():
                manager.__exit__(None, None, None)
