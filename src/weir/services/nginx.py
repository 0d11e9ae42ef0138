"""The service `nginx`, a reverse proxy in front of a stack: settings, configuration and command. Starts no process."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from weir.services.settings import parse_settings
from weir.toml_file import Table

_CONFIGURATION = """\
daemon off;
worker_processes {settings.worker_processes};
worker_rlimit_nofile {files};
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections {settings.worker_connections}; }}
http {{
    # A line for each request would write to the disk of the measured machine.
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
            # For keepalive to the stack: otherwise nginx uses HTTP/1.0 and closes each connection.
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""

# nginx logs this line at level `warn`, which the configuration above sets.
_LEFT_OUT = re.compile(r"upstream server temporarily disabled .* upstream: \"http://([^/\"]+)")


class NginxSettings(Table):
    """Settings of nginx in a manifest or a study. The names are those of nginx's directives."""

    worker_processes: int = Field(strict=False, ge=1)
    """Number of worker processes, each with an event loop."""
    worker_connections: int = Field(strict=False, ge=16)
    """Maximum number of connections of each worker process, to clients and to the stack together."""
    keepalive: int = Field(strict=False, ge=1)
    """Maximum number of idle connections of each worker process to the stack."""
    keepalive_timeout: int = Field(strict=False, ge=1)
    """Seconds until nginx closes an idle connection to the stack. Must be shorter than the stack's own timeout: if a
    process of the stack closes a connection while a request arrives, nginx stops using this process for a while."""


def build_nginx_configuration(
    settings: Mapping[str, str], port: int, stack_ports: Sequence[int], folder: Path, address: str = "127.0.0.1"
) -> str:
    """Returns the configuration of a proxy that distributes requests, in turn, to a stack's ports on loopback."""
    asked = parse_settings(NginxSettings, settings)
    servers = "\n".join(f"        server 127.0.0.1:{stack_port};" for stack_port in stack_ports)
    fields = {"folder": folder, "port": port, "address": address, "servers": servers}
    return _CONFIGURATION.format(settings=asked, files=asked.worker_connections + 64, **fields)


def build_nginx_command(program: str, folder: Path, configuration: Path) -> list[str]:
    """Returns the command that runs nginx in the foreground."""
    return [program, "-p", str(folder), "-c", str(configuration), "-e", "stderr"]


def find_dropped_servers(log: str) -> set[str]:
    """Returns the addresses of processes that nginx paused for 10 s after a failed request. `log`: nginx's log."""
    return set(_LEFT_OUT.findall(log))
