"""A script for a test's network namespace: a machine with 100 ports makes loads of 250 connections to its null server.

Prints the loads' results as a JSON array: from one address, and from three addresses.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
from pathlib import Path

SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1


def main() -> None:
    weir, engine = sys.argv[1:]
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40099")
    with subprocess.Popen(
        [engine, "serve", "null", "--listen", "127.0.0.1:8080"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        load = [weir, "load", "http://127.0.0.1:8080/", "-c", "250", "-d", "500ms", "--json", "-"]
        results = [
            subprocess.run([*load, *more], capture_output=True, text=True, check=True).stdout
            for more in ([], ["--bind", "127.0.0.2,127.0.0.3,127.0.0.4"])
        ]
        server.terminate()
    print(json.dumps([json.loads(result) for result in results]))


main()
