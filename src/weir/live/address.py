"""The page's listening address and the host names that it accepts. Pure."""

import ipaddress
import re
import socket
from dataclasses import dataclass

from weir.model.errors import UsageError

LOOPBACK = "127.0.0.1"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 means any free port."""

    host: str = LOOPBACK
    port: int = 0

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or (_ip(self.host) is not None and ipaddress.ip_address(self.host).is_loopback)

    @property
    def is_any(self) -> bool:
        """Whether it means every address of this machine."""
        return _ip(self.host) is not None and ipaddress.ip_address(self.host).is_unspecified

    @property
    def shown(self) -> str:
        """Host and port for a URL; the loopback address in place of "every address"."""
        host = self.host
        if self.is_any:
            host = "::1" if ":" in host else LOOPBACK
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_address(text: str | None) -> Address:
    """Parses the value of `--listen`: ADDRESS or ADDRESS:PORT; loopback without a value. Raises UsageError: it is
    neither an address nor a name, or its port is invalid."""
    if text is None:
        return Address()
    expected = "expected an address of this machine with an optional port: 127.0.0.1:8089, 0.0.0.0, [::1]:8089"
    wrong = UsageError(f"--listen: found {text!r}, {expected}")
    if _ip(text) is not None:
        return Address(text)
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::(\d{1,5}))?", text)
    if match is None:
        raise wrong
    host, port = match.group(1) or match.group(2), int(match.group(3) or 0)
    is_ip = _ip(host) is not None
    is_right = is_ip and ":" in host if match.group(1) else is_ip or _NAME.fullmatch(host)
    if not is_right or port > 65535:
        raise wrong
    return Address(host, port)


def accepts_host(address: Address, host: str) -> bool:
    """Returns whether the `Host` header of a request names this server. Refuses a foreign DNS name that points here: a
    page under that name would share our origin (DNS rebinding). An IP address cannot be redirected."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]/@\s]+))(?::(\d{1,5}))?", host)
    if match is None or int(match.group(3) or 80) != address.port:
        return False
    name = (match.group(1) or match.group(2)).lower()
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
