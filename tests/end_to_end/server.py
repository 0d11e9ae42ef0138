"""A server of the workload `hello` that misbehaves in every way that a study must survive. Usage: server.py PORT MODE
[ADDRESS]."""

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODE = sys.argv[2]
ANSWERED = 0
LOADED = 0.0
LAST_ASKED = 0.0
# The server sleeps instead of computing, so its times do not depend on the machine's other load. Idle stacks leave the
# CPUs to other tests.
SERVICE_S = {"good": 0.003, "other": 0.003, "slow": 0.01, "slower": 0.02, "slowest": 0.1}
WARM_AFTER_S = 3.0
# More requests than the checks before a trial's load make.
CHECKS = 10
# Requests on one connection; each check has its own connection.
UNDER_LOAD = 10
# The same limit behind a proxy, where checks share connections.
UNDER_LOAD_BEHIND = 300

KEPT: list[bytes] = []
ONE_AT_A_TIME = threading.Lock()


def is_first() -> bool:
    """Returns whether this is the first process of its stack."""
    try:
        Path(os.environ["ELSEWHERE"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body go in one write. Two writes would take 40 ms because of Nagle's algorithm and delayed
    # acknowledgements.
    wbufsize = -1
    # Number of requests on this connection.
    asked = 0

    def do_GET(self) -> None:
        global ANSWERED, LOADED, LAST_ASKED
        ANSWERED += 1
        LAST_ASKED = time.monotonic()
        self.asked += 1
        if ANSWERED == CHECKS:
            LOADED = time.monotonic()
        if MODE == "never-answers":
            time.sleep(3600)
        warming_up = MODE == "warms-up" and time.monotonic() - LOADED < WARM_AFTER_S
        time.sleep(0.2 if warming_up else 0.04 if MODE == "warms-up" else SERVICE_S.get(MODE, 0.0))
        if MODE == "one-at-a-time":
            with ONE_AT_A_TIME:
                time.sleep(0.02)
        if MODE == "dies-under-load" and self.asked > UNDER_LOAD:
            os._exit(9)
        if MODE == "ends-slowly" and self.asked == UNDER_LOAD:
            # Open connections are still answered, but the server accepts no others.
            threading.Thread(target=server.shutdown).start()
        if MODE == "closes-once" and self.asked > UNDER_LOAD_BEHIND and is_first():
            self.close_connection = True
            return
        if MODE == "hoards-memory" and self.asked > UNDER_LOAD:
            KEPT.append(b"x" * (4 << 20))
        failing = MODE == "fails-under-load" and self.asked > UNDER_LOAD
        wrong = MODE == "answers-wrong" or (MODE == "wrong-now-and-then" and ANSWERED % 25 == 0)
        body = b"goodbye" if wrong else b"hello"
        self.send_response(500 if failing else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: object) -> None:
        """Reports no connection that a client cut or refused. weir quotes the end of a server's log, and the tests
        expect no traceback in weir's messages."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


print(f"this is {MODE}", flush=True)
if MODE == "dies-at-start":
    sys.exit(5)
if MODE == "never-listens":
    time.sleep(3600)
if MODE == "starts-late":
    time.sleep(40)
if MODE == "ignores-sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if MODE == "leaves-processes":
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
if MODE == "writes-elsewhere":
    Path(os.environ["ELSEWHERE"]).write_text("mine")
server = Server((sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1", int(sys.argv[1])), Handler)
if folder := os.environ.get("SERVER_TLS"):
    import ssl

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")
    if "SERVER_ASKS_CLIENTS" in os.environ:
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(f"{folder}/ca.pem")
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever(poll_interval=0.05)
server.server_close()
while time.monotonic() - LAST_ASKED < 1.5:
    time.sleep(0.05)
os._exit(9)
