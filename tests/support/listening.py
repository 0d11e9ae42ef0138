"""Finds the addresses on which processes of this machine listen, in the kernel's tables."""

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

LISTENS = "0A"
"""The listening state of a socket in /proc/net/tcp."""


def listening(pid: int) -> set[str]:
    """Returns the addresses of a process's listening TCP sockets."""
    own = set(sockets(pid))
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in own:
                found.add(address(local.partition(":")[0]))
    return found


def sockets(pid: int) -> Iterator[str]:
    """Yields the targets of a process's file descriptors, which include its sockets."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # The process may have closed the descriptor.
        with suppress(OSError):
            yield os.readlink(descriptor)


def address(text: str) -> str:
    """Returns an address from words of 32 bits in this machine's byte order, lowest word first."""
    words = [text[at : at + 8] for at in range(0, len(text), 8)]
    return str(ip_address(b"".join(bytes.fromhex(word)[::-1] for word in words)))
