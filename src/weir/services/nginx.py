"""The service `nginx`: a reverse proxy before the processes of a stack. Its settings, configuration and command. Pure."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from weir.services.settings import understood
from weir.toml_file import Table

_CONFIGURATION = """\
daemon off;
worker_processes {settings.worker_processes};
worker_rlimit_nofile {files};
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections {settings.worker_connections}; }}
http {{
    # A line for each request would be written to the disk of the machine that is measured.
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream stack {{
{servers}
        keepalive {settings.keepalive};
        keepalive_timeout {settings.keepalive_timeout}s;
    }}
    server {{
        listen {address}:{port} backlog=4096;
        location / {{
            proxy_pass http://stack;
            # What keepalive to the stack takes: nginx speaks HTTP/1.0 to it otherwise, and closes.
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""

# At the level `warn` of the configuration above.
_LEFT_OUT = re.compile(r"upstream server temporarily disabled .* upstream: \"http://([^/\"]+)")


class NginxSettings(Table):
    """What a manifest or a study may set, by nginx's own names."""

    worker_processes: int = Field(strict=False, ge=1)
    """Event loops."""
    worker_connections: int = Field(strict=False, ge=16)
    """Of each, to clients and to the stack together."""
    keepalive: int = Field(strict=False, ge=1)
    """Idle connections to the stack that each keeps."""
    keepalive_timeout: int = Field(strict=False, ge=1)
    """Seconds that it keeps one of them for. Less than the stack does: nginx takes a process out of its turn whose connection was closed
    while a request was on its way to it."""


def nginx_settings(settings: Mapping[str, str]) -> NginxSettings:
    """Settings as text, understood.

    Raises:
        ValueError: one is unknown or does not fit; the message names them all.
    """
    return understood(NginxSettings, settings)


def nginx_configuration(
    settings: Mapping[str, str], *, port: int, stack_ports: Sequence[int], folder: Path, address: str = "127.0.0.1"
) -> str:
    """The configuration of a proxy that spreads requests over a stack's processes, one after the other.

    Args:
        settings: as text.
        port: where it listens.
        stack_ports: where the processes listen, on loopback.
        folder: holds what it writes.
        address: on which of this machine's addresses it listens.
    """
    asked = nginx_settings(settings)
    return _CONFIGURATION.format(
        settings=asked,
        files=asked.worker_connections + 64,
        folder=folder,
        port=port,
        address=address,
        servers="\n".join(f"        server 127.0.0.1:{stack_port};" for stack_port in stack_ports),
    )


def nginx_command(program: str, folder: Path, configuration: Path) -> list[str]:
    """The command that runs it in the foreground."""
    return [program, "-p", str(folder), "-c", str(configuration), "-e", "stderr"]


def left_out(log: str) -> set[str]:
    """The processes, by address, that it took out of their turn for a while, ten seconds by default, after a request that failed there.

    Args:
        log: what it has logged.
    """
    return set(_LEFT_OUT.findall(log))
