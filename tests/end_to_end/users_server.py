"""A users server on PostgreSQL that sends different numbers of statements, for tests of work equivalence.

`users_server.py PORT URL MODE`: `once` sends one statement per request, `twice` two. After some load, `spoils` sends
wrong responses and `kills` makes the database end itself.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

PORT, URL, MODE = int(sys.argv[1]), sys.argv[2], sys.argv[3]
# Requests on one connection; each check of responses has its own connection.
UNDER_LOAD = 20


class Users(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body go in one segment, because two would wait for an acknowledgement.
    wbufsize = 65536
    mine = threading.local()
    asked = 0
    loaded = threading.Event()

    def do_GET(self) -> None:
        if not hasattr(self.mine, "connection"):
            self.mine.connection = psycopg.connect(URL, autocommit=True)
        user = self.path.rpartition("/")[2]
        if not user.isdigit():
            self.answer(404, {})
            return
        if MODE == "twice":
            self.mine.connection.execute("SELECT count(*) FROM users").fetchone()
        row = self.mine.connection.execute("SELECT id, name, email FROM users WHERE id = %s", (int(user),)).fetchone()
        self.asked += 1
        if MODE == "kills" and self.asked > UNDER_LOAD and not self.loaded.is_set():
            self.loaded.set()
            # The superuser may start programs; they run in the data folder.
            with psycopg.connect(URL.replace("app:app", "weir:weir"), autocommit=True) as superuser:
                superuser.execute("COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -n 1 postmaster.pid)'")
        if self.asked > UNDER_LOAD:
            self.loaded.set()
        if MODE == "spoils" and self.loaded.is_set():
            row = (row[0], row[1].swapcase(), row[2])
        self.answer(200, dict(zip(("id", "name", "email"), row, strict=True)))

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", PORT), Users).serve_forever()
