"""On which addresses processes of this machine listen, as the kernel has it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

LISTENS = "0A"
"""The state of a socket in /proc/net/tcp."""


def listening(pid: int) -> set[str]:
    """The addresses of a process's TCP sockets that listen."""
    own = set(sockets(pid))
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in own:
                found.add(address(local.partition(":")[0]))
    return found


def sockets(pid: int) -> Iterator[str]:
    """What its file descriptors are, sockets among them."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # It may have closed it by now.
        with suppress(OSError):
            yield os.readlink(descriptor)


def address(text: str) -> str:
    """An address that is written as words of 32 bits in the order of this machine's bytes, the lowest first."""
    words = [text[at : at + 8] for at in range(0, len(text), 8)]
    return str(ip_address(b"".join(bytes.fromhex(word)[::-1] for word in words)))
