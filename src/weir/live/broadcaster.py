"""Sends the same updates to all viewers of a page, at most twice a second. Each viewer has a queue of messages. If the
queue of a slow viewer is full, the broadcaster replaces the waiting messages with one: the whole state."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any

from weir.live.event_queue import EventQueue

PERIOD_S = 0.5
"""Seconds between two updates, equal to the shortest slice of the charts: an update should contain whole slices."""
RETRY_MS = 1000
"""Milliseconds that a browser waits before it reconnects after a lost connection."""
_MOST_WAITING = 8
_QUIET_S = 10.0
"""Seconds of silence after which the server sends a comment, because only a write detects a lost browser."""
_COMMENT = b":\n\n"
_Messages = asyncio.Queue[bytes | None]
"""The messages that wait for one viewer. None stands for a message with the whole state."""


class Broadcaster:
    """Sends updates to a page's viewers, at most one every `period_s` seconds. Only the event loop calls the methods."""

    def __init__(self, queue: EventQueue, period_s: float = PERIOD_S) -> None:
        self._queue = queue
        self._period_s = period_s
        self._viewers: set[_Messages] = set()
        self._numbers = itertools.count(1)
        self._publishing: asyncio.Task[None] | None = None
        self._is_over = False

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yields the server-sent events for one viewer: first the whole state, then updates."""
        waiting: _Messages = asyncio.Queue(_MOST_WAITING)
        waiting.put_nowait(None)
        self._viewers.add(waiting)
        if self._publishing is None or self._publishing.done():
            self._publishing = asyncio.create_task(self._publish_periodically())
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            while not (self._is_over and waiting.empty()):
                try:
                    message = await asyncio.wait_for(waiting.get(), _QUIET_S)
                except TimeoutError:
                    message = _COMMENT
                if message is None:
                    # The whole state is newer than all waiting messages.
                    _clear(waiting)
                    message = self._event(self._queue.snapshot())
                yield message
        finally:
            self._viewers.discard(waiting)

    def finish(self) -> None:
        """Sends the last update and ends all streams."""
        if self._is_over:
            return
        self._publish()
        self._is_over = True
        for waiting in self._viewers:
            if waiting.empty():
                waiting.put_nowait(_COMMENT)

    async def _publish_periodically(self) -> None:
        while self._viewers and not self._is_over:
            await asyncio.sleep(self._period_s)
            if self._viewers and not self._is_over:
                self._publish()

    def _publish(self) -> None:
        news = self._queue.changes() if self._viewers else None
        if news is None:
            return
        message = self._event(news)
        for waiting in self._viewers:
            if waiting.full():
                _clear(waiting)
                waiting.put_nowait(None)
            else:
                waiting.put_nowait(message)

    def _event(self, value: dict[str, Any]) -> bytes:
        # Writes ASCII on one line: no text can then end the event.
        data = json.dumps(value, separators=(",", ":"), allow_nan=False)
        return f"id: {next(self._numbers)}\ndata: {data}\n\n".encode("ascii")


def _clear(waiting: _Messages) -> None:
    while not waiting.empty():
        waiting.get_nowait()
