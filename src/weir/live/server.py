"""The page's web server. The server has its own thread at nice 19, because it must not take CPU time from the load.
Without viewers, the server only wakes ten times a second to check whether it should end."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace

import uvicorn

from weir.engine_process import Closing
from weir.live.address import Address
from weir.live.app import Site
from weir.live.broadcaster import Broadcaster
from weir.live.event_queue import EventQueue
from weir.live.runs import RunFolder
from weir.live.security import TOKEN, Keys, Rules
from weir.model.errors import UsageError
from weir.priority import lower_priority

_BACKLOG = 64
_END_S = 2
"""Maximum number of seconds for open requests to finish at the server's end."""


class LiveServer(Closing):
    """The web server of one page, as a context manager. The constructor opens the socket and starts the server's
    thread. The thread runs on `cpus`, the CPUs of weir's control (empty: the CPUs of the caller). Raises UsageError if
    the address is not available, WeirError if the web bundle is missing."""

    def __init__(
        self,
        queue: EventQueue,
        address: Address,
        *,
        cpus: Sequence[int] = (),
        runs: RunFolder | None = None,
        keys: Keys | None = None,
    ) -> None:
        self._keys = keys or Keys()
        self._cpus = tuple(cpus)
        self._hub = Broadcaster(queue)
        site = Site(queue, self._hub, runs, self._keys)
        self._socket = _open_socket(address)
        self.address = replace(address, port=self._socket.getsockname()[1])
        # With these settings, uvicorn prints nothing and sends no header `Server`.
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
        return f"http://{self.address.shown}/?{TOKEN}={self._keys.token}"

    def close(self) -> None:
        """Sends the last update to the viewers and ends the server. A second call does nothing."""
        if self._loop is not None:
            # The loop may have ended already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hub.finish)
        self._server.should_exit = True
        self._thread.join(2 * _END_S)
        self._socket.close()

    def _serve(self) -> None:
        lower_priority()
        if self._cpus:
            with contextlib.suppress(OSError):
                # Binds this thread, and the threads that it starts.
                os.sched_setaffinity(0, self._cpus)
        try:
            asyncio.run(self._main())
        finally:
            # The constructor waits for this event, even after a failed start.
            self._begun.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        await self._server.serve(sockets=[self._socket])


def _open_socket(address: Address) -> socket.socket:
    """Opens the listening socket. Raises UsageError if the address is not available."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = error.strerror or str(error)
        hint = "use another port, or no port: --listen 127.0.0.1" if address.port else "ip -brief address"
        raise UsageError(f"--listen: cannot listen on {address.host}:{address.port}: {why}", hint=hint) from None
