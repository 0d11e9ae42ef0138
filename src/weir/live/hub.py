"""The viewers of a page, and the news that all of them get: built once, at most twice a second, and not at all while there is none.

A viewer who cannot take it as fast gets no queue that grows: what was meant for it is thrown away, and it is sent everything anew.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from weir.live.board import Board

PERIOD_S = 0.5
"""No shorter than a slice of the charts, so that no news are about half of one."""
RETRY_MS = 1000
"""When a browser that has lost the connection tries again."""
_MOST_WAITING = 8
_QUIET_S = 10.0
"""After so long without news a comment is sent: only who sends notices that the other side is gone."""


class Hub:
    """The viewers of one board. All its methods belong to the server's event loop.

    Args:
        board: what they look at.
        period_s: the least time between two messages.
    """

    def __init__(self, board: Board, period_s: float = PERIOD_S) -> None:
        self._board = board
        self._period_s = period_s
        self._viewers: set[_Viewer] = set()
        self._numbers = itertools.count(1)
        self._telling: asyncio.Task[None] | None = None
        self._is_over = False

    @property
    def viewers(self) -> int:
        """How many there are."""
        return len(self._viewers)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """What one viewer is sent, until it goes or everything is over: server-sent events, the first of them the whole state."""
        viewer = _Viewer()
        self._viewers.add(viewer)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            while True:
                if viewer.wants_all:
                    viewer.forget()
                    yield self._event(self._board.whole())
                if self._is_over and viewer.waiting.empty():
                    return
                try:
                    message = await asyncio.wait_for(viewer.waiting.get(), _QUIET_S)
                except TimeoutError:
                    message = b":\n\n"
                if message:
                    yield message
        finally:
            self._viewers.discard(viewer)

    def finish(self) -> None:
        """Sends the last news and ends all streams."""
        if self._is_over:
            return
        self._publish()
        self._is_over = True
        for viewer in self._viewers:
            # Wakes it up; where its queue is full it is awake.
            with suppress(asyncio.QueueFull):
                viewer.waiting.put_nowait(b"")

    async def _tell(self) -> None:
        while self._viewers and not self._is_over:
            await asyncio.sleep(self._period_s)
            if self._viewers and not self._is_over:
                self._publish()

    def _publish(self) -> None:
        news = self._board.news() if self._viewers else None
        if news is None:
            return
        message = self._event(news)
        for viewer in self._viewers:
            viewer.offer(message)

    def _event(self, value: dict[str, Any]) -> bytes:
        # ASCII on one line: nothing in a name can end the event.
        return f"id: {next(self._numbers)}\ndata: {json.dumps(value, separators=(',', ':'), allow_nan=False)}\n\n".encode("ascii")


class _Viewer:
    def __init__(self) -> None:
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self.wants_all = True

    def offer(self, message: bytes) -> None:
        """Puts a message into its queue; where that is full, all of it is thrown away, and everything is due instead."""
        if self.waiting.full():
            self.forget()
            self.wants_all = True
            # Only wakes it up.
            message = b""
        self.waiting.put_nowait(message)

    def forget(self) -> None:
        """Empties its queue: what is sent now is younger."""
        self.wants_all = False
        while not self.waiting.empty():
            self.waiting.get_nowait()
