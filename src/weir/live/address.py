"""Parses the address on which the page's server listens, and checks the host in requests to this server."""

import ipaddress
import re
import socket
from dataclasses import dataclass

from weir.model.errors import UsageError

LOOPBACK = "127.0.0.1"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_HOST_PORT = re.compile(r"(?:\[([^\]]*:[^\]]*)\]|([^:\[\]]+))(?::(\d{1,5}))?")
"""Matches a host name, or an IPv6 address in brackets, with an optional port."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 means any free port."""

    host: str = LOOPBACK
    port: int = 0

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        found = _ip(self.host)
        return self.host == "localhost" or (found is not None and found.is_loopback)

    @property
    def is_any(self) -> bool:
        """Whether the address stands for all addresses of this machine, such as 0.0.0.0."""
        found = _ip(self.host)
        return found is not None and found.is_unspecified

    @property
    def shown(self) -> str:
        """The host and port for a URL. An address such as 0.0.0.0 becomes the loopback address."""
        host = self.host if not self.is_any else "::1" if ":" in self.host else LOOPBACK
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_address(text: str | None) -> Address:
    """Parses the value of `--listen`: ADDRESS or ADDRESS:PORT. None means the loopback address. Raises UsageError if
    the host is neither an address nor a name, or if the port is invalid."""
    if text is None:
        return Address()
    if _ip(text) is not None:
        return Address(text)
    match = _HOST_PORT.fullmatch(text)
    if match is not None:
        host, port = match[1] or match[2], int(match[3] or 0)
        if port <= 65535 and (_ip(host) or (match[2] and _NAME.fullmatch(host))):
            return Address(host, port)
    expected = "expected an address of this machine with an optional port: 127.0.0.1:8089, 0.0.0.0, [::1]:8089"
    raise UsageError(f"--listen: found {text!r}, {expected}")


def accepts_host(address: Address, host: str) -> bool:
    """Returns whether `host`, the `Host` header of a request, names this server. Rejects foreign DNS names. Otherwise a
    foreign page with a name for this server's address could read our page (DNS rebinding)."""
    match = _HOST_PORT.fullmatch(host)
    if match is None or int(match[3] or 80) != address.port:
        return False
    name = (match[1] or match[2]).lower()
    found = _ip(name)
    if address.is_any:
        return found is not None or name in ("localhost", socket.gethostname().lower())
    if address.is_loopback:
        return name == "localhost" or (found is not None and found.is_loopback)
    return name == address.host.lower() if found is None else found == _ip(address.host)


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
