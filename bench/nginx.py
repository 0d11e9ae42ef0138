"""nginx with one worker on one CPU, as the server of every benchmark; the response is `return 200`.

nginx runs in the foreground with its own prefix and configuration, and listens on loopback only. For TLS nginx listens
on a second port with a new certificate and one cipher, so that all clients do the same work.
"""

import re
import resource
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from bench.machine import BenchError, program
from weir.lab.stack_process import find_free_port

CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
worker_rlimit_nofile {files};
events {{ worker_connections {files}; }}
http {{
    access_log off;
    # The default closes a connection after 1000 requests; reconnecting is not what is measured here.
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        {tls}
        location / {{ return 200 "Hello, world!"; }}
        location /json/ {{ default_type application/json; return 200 '{json}'; }}
        location = /status {{ stub_status; }}
        {locations}
    }}
}}
"""
TLS_CONFIGURATION = """
        listen 127.0.0.1:{port} ssl backlog=4096;
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/key.pem;
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
"""
JSON = '{"id": 7, "name": "weir", "active": true, "tags": ["http", "load"], "text": "a small answer"}'


@dataclass(frozen=True, slots=True)
class Nginx:
    address: str
    tls_address: str | None = None

    @property
    def url(self) -> str:
        """The URL of the small response."""
        return f"http://{self.address}/"

    def requests(self) -> int:
        """Returns nginx's own count of its requests, which includes the request for the count."""
        with urlopen(f"{self.url}status", timeout=5) as answer:
            text = answer.read().decode()
        match = re.search(r"^ (\d+) (\d+) (\d+) $", text, re.MULTILINE)
        if match is None:
            raise BenchError(f"nginx's status page has no count of requests: {text!r}")
        return int(match.group(3))


@contextmanager
def running_nginx(cpu: int, *, tls: bool = False, locations: str = "") -> Iterator[Nginx]:
    """Runs nginx on a free port and on `cpu` until the block ends. `locations` is added to the configuration."""
    binary = program("nginx", "nginx-light")
    with tempfile.TemporaryDirectory(prefix="weir-bench-nginx-") as folder:
        port, tls_port = find_free_port(), find_free_port() if tls else None
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        tls_configuration = ""
        if tls:
            _make_certificate(Path(folder))
            tls_configuration = TLS_CONFIGURATION.format(folder=folder, port=tls_port)
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(
                folder=folder, port=port, files=files, tls=tls_configuration, json=JSON, locations=locations
            )
        )
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(
                ["taskset", "--cpu-list", str(cpu), binary, "-p", folder, "-c", configuration, "-e", "stderr"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            _wait_until_listening(process, port, Path(folder) / "log")
            yield Nginx(f"127.0.0.1:{port}", f"127.0.0.1:{tls_port}" if tls else None)
        finally:
            process.terminate()
            process.wait()


def _make_certificate(folder: Path) -> None:
    """Makes a key and a self-signed certificate in `folder`."""
    command = [
        program("openssl", "openssl"),
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]
    made = subprocess.run(
        [
            *command,
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-keyout",
            folder / "key.pem",
            "-out",
            folder / "certificate.pem",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise BenchError(f"openssl made no certificate: {made.stderr.strip()[-300:]}")


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise BenchError(f"nginx does not listen on 127.0.0.1:{port}: {log.read_text().strip()}")
