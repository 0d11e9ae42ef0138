"""Tests `weir load` with TLS to nginx, Unix sockets, chosen addresses, and a connection for each request."""

import json
import shutil
import socket
import socketserver
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import SEARCH_PATH
from tests.end_to_end.conftest import END_S, Weir


@dataclass(frozen=True)
class Nginx:
    """An nginx with TLS, one that requires a certificate, one on a Unix socket, and the folder of certificates."""

    https: str
    asking: str
    socket: Path
    folder: Path


@pytest.fixture
def nginx(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Nginx]:
    make_certificates(tmp_path)
    https, asking = free_port(), free_port()
    unix = tmp_path / "n.sock"
    tls = "ssl_certificate server.pem; ssl_certificate_key server.key;"
    (tmp_path / "nginx.conf").write_text(
        f"""
daemon off;
worker_processes 1;
pid {tmp_path}/nginx.pid;
error_log {tmp_path}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy; fastcgi_temp_path {tmp_path}/fastcgi;
  uwsgi_temp_path {tmp_path}/uwsgi; scgi_temp_path {tmp_path}/scgi;
  server {{ listen 127.0.0.1:{https} ssl; {tls} location / {{ return 200 "ok"; }} location /old {{ return 302 /; }} }}
  server {{ listen 127.0.0.1:{asking} ssl; {tls} ssl_client_certificate ca.pem; ssl_verify_client on; location / {{ return 200 "ok"; }} }}
  server {{ listen unix:{unix}; location / {{ return 200 "ok"; }} }}
}}
"""
    )
    command = shutil.which("nginx", path=SEARCH_PATH)
    assert command is not None
    process = subprocess.Popen(
        [command, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + END_S
    while not (tmp_path / "nginx.pid").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
    # nginx misses a SIGTERM that arrives before its worker starts. A first response proves that the worker runs.
    with socket.socket(socket.AF_UNIX) as first:
        first.settimeout(END_S)
        first.connect(str(unix))
        first.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert first.recv(1)
    yield Nginx(f"https://127.0.0.1:{https}", f"https://127.0.0.1:{asking}", unix, tmp_path)
    process.terminate()
    process.communicate(timeout=END_S)


def make_certificates(folder: Path) -> None:
    """Makes an authority, and a server's and a client's certificate signed by this authority."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=an authority")
    for who, name in (("server", "DNS:example.test,IP:127.0.0.1"), ("client", "DNS:client.test")):
        (folder / "names").write_text(f"subjectAltName={name}\n")
        openssl("req", *new_key, "-keyout", f"{who}.key", "-out", "request.pem", "-subj", f"/CN={who}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        openssl("x509", "-req", "-in", "request.pem", *signed, "-out", f"{who}.pem")


@pytest.mark.needs("nginx", "openssl")
def test_nginx_is_loaded_through_tls_with_an_own_authority(weir: Weir, nginx: Nginx) -> None:
    done = weir("load", f"{nginx.https}/", "--cacert", "ca.pem", "-c", "4", "-d", "500ms", "--json", "r.json")
    assert done.returncode == 0, done.stderr
    assert "TLS handshake" in done.stdout
    result = json.loads((nginx.folder / "r.json").read_text())
    assert result["requests"]["failed"] == 0
    assert result["requests"]["ok"] > 0
    assert result["tls_handshake_us"]["p50"] > 0


@pytest.mark.needs("nginx", "openssl")
def test_a_certificate_is_trusted_by_its_authority_and_its_name(weir: Weir, nginx: Nginx) -> None:
    short = ("-c", "1", "-d", "200ms")
    unknown = weir("load", f"{nginx.https}/", *short)
    assert unknown.returncode == 3
    assert "certificate is not trusted" in unknown.stderr
    assert "--cacert" in unknown.stderr
    wrong = weir("load", f"{nginx.https}/", "--cacert", "ca.pem", "--sni", "elsewhere.test", *short)
    assert wrong.returncode == 3
    assert "is for another name: expected elsewhere.test" in wrong.stderr
    port = nginx.https.rpartition(":")[2]
    named = weir("load", "https://example.test/", "--connect-to", f"localhost:{port}", "--cacert", "ca.pem", *short)
    if "::1" not in named.stderr:
        assert named.returncode == 0, named.stderr
    assert (
        weir("load", f"{nginx.https}/", "--insecure", "--no-tls-resumption", "--no-keepalive", *short).returncode == 0
    )


@pytest.mark.needs("nginx", "openssl")
def test_nginx_sees_the_certificate_of_the_client(weir: Weir, nginx: Nginx) -> None:
    arguments = ("load", f"{nginx.asking}/", "--cacert", "ca.pem", "-c", "2", "-d", "300ms", "--json", "-")
    assert set(json.loads(weir(*arguments).stdout)["status"]) == {"400"}
    shown = json.loads(weir(*arguments, "--cert", "client.pem", "--key", "client.key").stdout)
    assert set(shown["status"]) == {"200"}


@pytest.mark.needs("nginx", "openssl")
def test_a_unix_socket_and_redirects(weir: Weir, nginx: Nginx) -> None:
    done = weir("load", f"unix:{nginx.socket}:/", "-c", "2", "-d", "300ms", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"]["ok"] > 0
    moved = json.loads(weir("load", f"{nginx.https}/old", "--insecure", "-c", "2", "-d", "300ms", "--json", "-").stdout)
    assert "redirects, which weir does not follow" in " ".join(moved["verdict"]["reasons"])


def test_a_connection_for_each_request_from_addresses_of_choice(weir: Weir, serve: Callable[..., str]) -> None:
    flags = ("--no-keepalive", "--bind", "127.0.0.2,127.0.0.3", "--connect-to", serve("null"))
    done = weir("load", "http://example.invalid/", *flags, "-c", "2", "-d", "300ms", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["requests"]["failed"] == 0
    assert result["schedule_lag_us"]["min"] > 0


@pytest.fixture
def closing_url() -> Iterator[str]:
    """Returns the URL of a server that closes each connection after five responses, and does not say so."""

    class FiveResponses(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for _ in range(5):
                while (line := self.rfile.readline()) != b"\r\n":
                    if not line:
                        return
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), FiveResponses) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_request_on_a_connection_that_the_server_closed_is_sent_again(
    tmp_path: Path, weir: Weir, closing_url: str
) -> None:
    done = weir("load", closing_url, "-c", "2", "-n", "60", "--json", "result.json")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    requests = result["requests"]
    assert (requests["intended"], requests["ok"], requests["sent"]) == (60, 60, 60)
    assert requests["retried"] == pytest.approx(11, abs=1)
    assert f"  retried  {requests['retried']} requests: the server closed their connections" in done.stdout
    assert "verdict: suspect" in done.stdout
    assert "the server closes connections that clients reuse" in done.stdout
    failing = weir("load", closing_url, "-c", "2", "-n", "60", "--no-retry", "--json", "-")
    result = json.loads(failing.stdout)
    assert (result["requests"]["retried"], result["errors"]["reset"] > 0) == (0, True)


def test_connections_go_to_all_addresses_of_a_name(weir: Weir, serve: Callable[..., str]) -> None:
    port = serve("null").rpartition(":")[2]
    done = weir("load", f"http://localhost:{port}/", "-c", "2", "-d", "200ms", "--all-addresses", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert f"localhost: connections go to 127.0.0.1:{port}, because [::1]:{port} accepts none" in done.stderr


@pytest.mark.needs("unshare")
def test_more_connections_than_ports_take_more_addresses(engine: Path) -> None:
    weir = Path(sysconfig.get_path("scripts")) / "weir"
    inside: list[str | Path] = [sys.executable, Path(__file__).with_name("few_ports.py"), weir, engine]
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a network namespace needs root")
    done = subprocess.run(["unshare", "--net", *inside], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one_address, three_addresses = json.loads(done.stdout)
    assert one_address["errors"]["connect"] > 0
    assert "this machine's ports towards the target are used up" in " ".join(one_address["verdict"]["reasons"])
    assert three_addresses["requests"]["failed"] == 0
    assert three_addresses["fairness"]["min"] > 0


def test_several_requests_at_a_time_on_a_connection_are_all_answered(weir: Weir, serve: Callable[..., str]) -> None:
    done = weir("load", f"http://{serve('null')}/", "-c", "2", "--pipeline", "16", "-n", "5000", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["requests"]["ok"], result["requests"]["failed"]) == (5000, 0)
    kept = weir("load", f"http://{serve('null')}/", "-c", "2", "--pipeline", "16", "-d", "200ms", "--out", "kept.weir")
    for told in (kept, weir("report", "kept.weir")):
        assert "  2 connections, up to 16 requests unanswered on each, 0." in told.stdout, told.stderr
    assert weir("load", "http://127.0.0.1/", "--pipeline", "16", "--no-keepalive").returncode == 2


def test_several_targets_are_loaded_in_turn_and_told_apart(weir: Weir, serve: Callable[..., str]) -> None:
    urls = [
        f"http://{serve('null')}/a",
        f"http://{serve('null')}/b",
        f"http://{serve('fault', '--kind', 'status-500')}/",
    ]
    done = weir("load", *urls, "-c", "6", "-d", "300ms", "--json", "r.json", "--out", "kept.weir")
    assert done.returncode == 0, done.stderr
    assert "\n  targets\n" in done.stdout
    assert all(f"    {url}" in done.stdout for url in urls)
    assert weir("report", "kept.weir").returncode == 0
    result = json.loads(weir("load", *urls, "-c", "3", "-d", "300ms", "--json", "-").stdout)
    targets = result["targets"]
    assert [target["url"] for target in targets] == urls
    assert result["target"] == " ".join(urls)
    for key in ("sent", "completed", "ok", "failed"):
        assert sum(target[key] for target in targets) == result["requests"][key]
    assert [target["failed"] == 0 for target in targets] == [True, True, False]


def test_answers_come_when_the_kernel_received_them(weir: Weir, serve: Callable[..., str], tmp_path: Path) -> None:
    target = f"http://{serve('null')}/"
    done = weir("load", target, "--kernel-timestamps", "-c", "2", "-n", "500", "--json", str(tmp_path / "r.json"))
    assert done.returncode == 0, done.stderr
    assert "end of response: kernel timestamps of 500 responses\n" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["generator"]["kernel_timestamps"] == {
        "used": 500,
        "missing": 0,
    }
    plain = weir("load", target, "-c", "2", "-n", "500", "--json", "-")
    assert json.loads(plain.stdout)["generator"]["kernel_timestamps"] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["127.0.0.1:80"], "URL: found '127.0.0.1:80', expected http://"),
        (["http://127.0.0.1/", "b"], "URL: found 'b', expected http://"),
        (
            ["http://127.0.0.1/", "https://127.0.0.1/"],
            "URL: found http and https, expected the same scheme in all URLs",
        ),
        (
            ["http://127.0.0.1/", "http://127.0.0.2/", "-c", "1"],
            "URL: found 2 URLs for 1 connections, expected at least one connection for each",
        ),
        (["http://127.0.0.1/", "--insecure"], "--insecure: found with 'http://127.0.0.1/'"),
        (
            ["https://127.0.0.1/", "--cacert", "nowhere.pem"],
            "--cacert: found 'nowhere.pem', expected a readable file",
        ),
        (
            ["https://127.0.0.1/", "--cacert", "/proc/self/status"],
            "--cacert: found '/proc/self/status', expected a PEM file",
        ),
        (["https://127.0.0.1/", "--cert", "a"], "--cert: found without --key"),
        (["https://127.0.0.1/", "--key", "a"], "--key: found without --cert"),
        (["https://127.0.0.1/", "--cacert", "a", "--insecure"], "--insecure: found together with --cacert"),
        (["http://127.0.0.1/", "--connect-to", "localhost"], "--connect-to: found 'localhost'"),
        (
            ["http://127.0.0.1/", "--connect-to", "no-such-host.invalid:1"],
            "--connect-to: found 'no-such-host.invalid:1'",
        ),
        (["http://127.0.0.1/", "--bind", "127.0.0.2,lo"], "--bind: found 'lo'"),
        (["unix:/s.sock:/", "--kernel-timestamps"], "--kernel-timestamps: found with 'unix:/s.sock:/'"),
        (["unix:relative.sock"], "unix:/PATH"),
    ],
)
def test_wrong_transports_are_told_by_flag(weir: Weir, tmp_path: Path, arguments: list[str], problem: str) -> None:
    (tmp_path / "a").write_text("-----BEGIN CERTIFICATE-----")
    done = weir("load", *arguments)
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
