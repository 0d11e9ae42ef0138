"""The page's web server, on one thread at nice 19: what it does must not take a CPU from the load, and it shares no thread with whoever
reads the records. While nobody looks it only wakes ten times a second, to see whether it is to end.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import uvicorn

from weir.live.address import Address
from weir.live.app import Site
from weir.live.board import Board
from weir.live.guard import TOKEN, Keys, Rules
from weir.live.hub import Hub
from weir.live.runs import RunFolder
from weir.model.errors import UsageError

_NICE = 19
_BACKLOG = 64
_END_S = 2
"""How long requests that are being answered may take when the server ends."""


class LiveServer:
    """Serves one page until it is closed. A context manager; its socket listens from the beginning.

    Args:
        board: what goes on.
        address: where it listens.
        cpus: the CPUs of weir's control, to which its thread is bound; empty: those of whoever starts it.
        runs: the folder of runs that can be browsed; None: none.
        keys: its secrets; new ones where none are given.

    Raises:
        UsageError: it cannot listen there.
        WeirError: the web bundle is missing.
    """

    def __init__(
        self, board: Board, address: Address, *, cpus: Sequence[int] = (), runs: RunFolder | None = None, keys: Keys | None = None
    ) -> None:
        self._keys = keys or Keys()
        self._cpus = tuple(cpus)
        self._hub = Hub(board)
        site = Site(board, self._hub, runs, self._keys)
        self._socket = _listening(address)
        self.address = replace(address, port=self._socket.getsockname()[1])
        # No word of its own on the terminal, and no header that says what it is.
        config = uvicorn.Config(
            site.app(Rules(self.address, self._keys)),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_END_S,
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="weir live", daemon=True)
        self._thread.start()
        self._begun.wait()

    @property
    def url(self) -> str:
        """The address to open, with the token that lets one in."""
        return f"http://{self.address.shown}/?{TOKEN}={self._keys.token}"

    @property
    def viewers(self) -> int:
        """How many look."""
        return self._hub.viewers

    def close(self) -> None:
        """Sends the viewers the last news and ends. Closing twice does nothing."""
        if self._loop is not None:
            # The loop may have ended by itself.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hub.finish)
        self._server.should_exit = True
        self._thread.join(2 * _END_S)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        if self._cpus:
            with contextlib.suppress(OSError):
                # Of this thread and of those that it starts.
                os.sched_setaffinity(0, self._cpus)
        try:
            asyncio.run(self._main())
        finally:
            # Also where it never began: nobody waits for it then.
            self._begun.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        await self._server.serve(sockets=[self._socket])


def _listening(address: Address) -> socket.socket:
    """A socket that listens there.

    Raises:
        UsageError: it cannot.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = error.strerror or str(error)
        hint = "another port, or none: --listen 127.0.0.1" if address.port else "ip -brief address"
        raise UsageError(f"--listen: {address.host}:{address.port}: cannot listen there: {why}", hint=hint) from None
