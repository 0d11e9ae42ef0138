"""Finds the TCP ports on which a process and its descendants listen, from `/proc`."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def find_listening_ports(pid: int) -> list[int]:
    """Returns the sorted TCP ports on which a process and its descendants listen."""
    port_of = dict(_list_listeners())
    inodes = {inode for one in (pid, *_find_descendants(pid)) for inode in _list_sockets(one)}
    return sorted({port_of[inode] for inode in inodes & port_of.keys()})


def _list_listeners() -> Iterator[tuple[str, int]]:
    """Yields the inode and the port of every listening TCP socket."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN:
                    yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _list_sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if match := _SOCKET.fullmatch(os.readlink(descriptor)):
                    yield match[1]


def _find_descendants(pid: int) -> Iterable[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                # The process name in parentheses may contain any character.
                parent = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
                children[parent].append(int(folder.name))
    found, left = [], [pid]
    while left:
        found += children[left[-1]]
        left += children[left.pop()]
    return found
