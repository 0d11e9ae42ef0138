"""How connections are made: flags of `weir load` on keep-alive, addresses, TLS and timestamps, checked and put into the plan's terms."""

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import UsageError
from weir.model.load import Tls


@dataclass(frozen=True, slots=True)
class TlsFlags:
    """The flags on TLS, as they were given."""

    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    sni: str | None = None
    no_resumption: bool = False

    def given(self) -> list[str]:
        """The names of the flags that were given."""
        values = {
            "--cacert": self.cacert,
            "--cert": self.cert,
            "--key": self.key,
            "--insecure": self.insecure,
            "--sni": self.sni,
            "--no-tls-resumption": self.no_resumption,
        }
        return [flag for flag, value in values.items() if value]


def several_targets(urls: list[str], connections: int, *, has_scenario: bool) -> tuple[str, ...]:
    """The URLs where there are several; nothing for one.

    Raises:
        UsageError: one is no URL, they are of several schemes, or there is not a connection for each.
    """
    for url in urls:
        if "://" not in url and not url.startswith("unix:"):
            raise UsageError(f"URL: found {url!r}, expected http://HOST[:PORT]/PATH", hint=f"weir load http://{url}")
    if len(urls) == 1:
        return ()
    if has_scenario:
        raise UsageError(f"URL: found {len(urls)} beside --scenario, expected one, whose users do the scenario")
    schemes = sorted({url.partition(":")[0].lower() for url in urls})
    if len(schemes) > 1:
        raise UsageError(f"URL: found {' and '.join(schemes)}, expected URLs of one scheme")
    if connections < len(urls):
        raise UsageError(f"URL: found {len(urls)} for {connections} connections, expected a connection for each", hint=f"-c {len(urls)}")
    return tuple(urls)


def tls(urls: list[str], flags: TlsFlags) -> Tls | None:
    """The plan's settings of TLS; None where no flag was given.

    Raises:
        UsageError: the URL is not https, a file cannot be read, or flags contradict each other.
    """
    given = flags.given()
    if not given:
        return None
    for url in urls:
        if not url.lower().startswith("https://"):
            raise UsageError(f"{given[0]}: found with {url!r}, expected a URL that begins with https://")
    if (flags.cert is None) != (flags.key is None):
        alone, missing = ("--cert", "--key") if flags.key is None else ("--key", "--cert")
        raise UsageError(f"{alone}: found without {missing}, expected both or neither")
    if flags.insecure and flags.cacert is not None:
        raise UsageError("--insecure: found with --cacert, expected one of the two")
    return Tls(
        ca=_file(flags.cacert, "--cacert"),
        certificate=_file(flags.cert, "--cert"),
        key=_file(flags.key, "--key"),
        insecure=flags.insecure,
        server_name=flags.sni,
        resumption=not flags.no_resumption,
    )


def _file(path: str | None, flag: str) -> str | None:
    if path is None:
        return None
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{flag}: {path}: cannot be read: {error.strerror}") from None
    if b"-----BEGIN " not in text:
        raise UsageError(f"{flag}: {path}: found no PEM, expected a file with -----BEGIN ...-----")
    return str(Path(path).absolute())


def kernel_timestamps(urls: list[str], asked: bool) -> bool:
    """Whether the kernel is to say when an answer came.

    Raises:
        UsageError: the target is a Unix socket, of which it says nothing.
    """
    url = next((url for url in urls if url.startswith("unix:")), None)
    if asked and url is not None:
        raise UsageError(
            f"--kernel-timestamps: found with {url!r}, expected a target over TCP: a Unix socket has no packets to stamp",
            hint="leave out --kernel-timestamps",
        )
    return asked


def connect_to(text: str) -> str:
    """IP and port of `HOST:PORT`, as the engine wants them.

    Raises:
        UsageError: it is not that, or the host has no address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--connect-to: found {text!r}, expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--connect-to: found {text!r}, whose host has no address ({error})") from None
    address = found[0][4][0]
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"


def local_addresses(texts: list[str]) -> tuple[str, ...]:
    """The addresses that `--bind` names, each a flag or several with commas between.

    Raises:
        UsageError: one is not an IP address.
    """
    parts = [part.strip() for text in texts for part in text.split(",")]
    for part in parts:
        try:
            ipaddress.ip_address(part)
        except ValueError:
            raise UsageError(f"--bind: found {part!r}, expected addresses of this machine, such as 127.0.0.2,127.0.0.3") from None
    return tuple(parts)
