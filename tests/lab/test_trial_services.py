"""Tests real services. weir fetches the databases itself; their counters must agree with a known number of statements
and rows."""

import fcntl
import http.server
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pymysql
import pytest

from tests.support.load_summary import summary
from weir.host import Host
from weir.lab.stack_process import Front
from weir.lab.trial_services import RunningDatabase, RunningServices, Services
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError, UsageError
from weir.model.load import ClosedLoad
from weir.model.run_types import Cell, Placement
from weir.services.dataset import read_dataset
from weir.services.folder import remove_leftovers
from weir.services.manifest import FrontService
from weir.services.standby import read_written_position, require_replayed
from weir.stacks.invariant import find_discrepancies
from weir.stacks.manifest import Manifest, Needed, Stack
from weir.stacks.workload import Workload, read_workload
from weir.study.file import Method
from weir.study.study import PlannedCell

TRIES = 25
WITH_MAVEN = pytest.mark.needs("mvn")
CPUS = tuple(sorted(os.sched_getaffinity(0)))
PLACEMENT = Placement(load=CPUS, stack=CPUS, services=(), control=CPUS)


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with Host() as host, Services(host) as started:
        yield started


def stack(service: str, dataset: str | None = "users", **settings: str) -> Stack:
    manifest = Manifest.model_validate(
        {
            "schema": 1,
            "id": "s",
            "title": "S",
            "model": "m",
            "run": {"command": ["{port}", f"{{{service}.url}}"]},
            "services": {service: {"dataset": dataset, "settings": settings}},
            "serves": {"w": {}},
        }
    )
    return Stack(manifest, Path("/nowhere"))


def workload(**more: object) -> Workload:
    return Workload.model_validate(
        {"schema": 1, "id": "w", "title": "W", "dataset": "users", "request": {"path": "/"}, "answer": {}, **more}
    )


def with_standby(**settings: str) -> Stack:
    """Returns a stack that reads from PostgreSQL and from a standby of it."""
    manifest = stack("postgres", "users", **settings).manifest
    return Stack(
        manifest.model_copy(update={"services": {**manifest.services, "postgres-standby": Needed()}}), Path("/nowhere")
    )


def await_replay(standby: RunningDatabase, position: str) -> None:
    """Waits until a standby has replayed its primary's log up to `position`."""
    while True:
        try:
            return require_replayed(standby.kind.admin(standby.address.port), position)
        except TargetError:
            time.sleep(0.01)


def running(
    services: Services, service: str, tmp_path: Path, asked: Workload | None = None, **settings: str
) -> AbstractContextManager[RunningServices]:
    return services.running(
        planned(stack(service, **settings), asked or workload()),
        PLACEMENT,
        log_of=lambda name: tmp_path / f"{name}.log",
    )


def planned(of: Stack, asked: Workload) -> PlannedCell:
    load = LoadSpec(duration_s=1)
    method = Method.model_validate({"blocks": 1, "baseline": "s"})
    return PlannedCell(Cell(1, "s", None, "w", ClosedLoad(1)), of, asked, load, method, services=of.services_for(asked))


def ask_postgres(service: RunningDatabase) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(service.address.fields("postgresql")["url"])


def ask_mariadb(service: RunningDatabase) -> "pymysql.connections.Connection[pymysql.cursors.Cursor]":
    at = service.address
    return pymysql.connect(host=at.host, port=at.port, user=at.user, password=at.password, database=at.database)


def test_postgres_holds_the_dataset_and_counts_what_was_asked_of_it(services: Services, tmp_path: Path) -> None:
    with running(services, "postgres", tmp_path) as started, ask_postgres(started.databases[0]) as connection:
        assert connection.execute("SELECT * FROM users ORDER BY id").fetchall() == list(
            read_dataset("users").rows("users")
        )
        connection.commit()
        before = started.read(workload())
        for number in range(TRIES):
            connection.execute("SELECT id, name FROM users").fetchall()
            connection.execute("UPDATE users SET name = %s WHERE id <= 3", (str(number),))
            connection.commit()
        connection.execute("INSERT INTO users (name, email) VALUES ('a', 'b')")
        connection.commit()
        (work,) = started.work_since(before, summary())
    assert (work.service, work.statements, work.rows) == ("postgres", 2 * TRIES + 1, TRIES * (100 + 3) + 1)
    assert work.control_statements == 2 * (TRIES + 1)
    assert work.bytes["log"] > 0
    assert work.bytes["pages"] > 0
    assert "SELECT id, name FROM users" in {kind.text for kind in work.by_statement}


@WITH_MAVEN
def test_mariadb_holds_the_dataset_and_counts_what_was_asked_of_it(services: Services, tmp_path: Path) -> None:
    with (
        running(services, "mariadb", tmp_path) as started,
        ask_mariadb(started.databases[0]) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM users ORDER BY id")
        assert list(cursor.fetchall()) == list(read_dataset("users").rows("users"))
        connection.commit()
        before = started.read(workload())
        for number in range(TRIES):
            cursor.execute("SELECT id, name FROM users")
            cursor.fetchall()
            cursor.execute("UPDATE users SET name = %s WHERE id <= 3", (str(number),))
            connection.commit()
        cursor.execute("INSERT INTO users (name, email) VALUES ('a', 'b')")
        # The R2DBC driver inserts like this; the JDBC driver like the insert above.
        cursor.execute("INSERT INTO users (name, email) VALUES ('c', 'd') RETURNING id")
        connection.commit()
        (work,) = started.work_since(before, summary())
    assert (work.service, work.statements, work.rows, work.key_rows) == (
        "mariadb",
        2 * TRIES + 2,
        TRIES * (100 + 3) + 2,
        1,
    )
    assert work.control_statements == TRIES + 1
    assert TRIES * 100 * 12 < work.bytes["sent"] < TRIES * 100 * 40
    assert work.bytes["received"] > TRIES * 30


@WITH_MAVEN
def test_reading_the_counters_counts_nothing(services: Services, tmp_path: Path) -> None:
    for service in ("postgres", "mariadb"):
        with running(services, service, tmp_path) as started:
            before = started.read(workload())
            started.counters()
            (work,) = started.work_since(before, summary())
            assert (work.statements, work.control_statements, work.rows) == (0, 0, 0)
            # weir subtracts the bytes of its own queries from the next reading, whose numbers may have one digit more.
            assert all(abs(counted) < 50 for counted in work.bytes.values())


def test_each_trial_gets_the_dataset_as_it_was(services: Services, tmp_path: Path) -> None:
    for _ in range(2):
        with running(services, "postgres", tmp_path) as started, ask_postgres(started.databases[0]) as connection:
            assert connection.execute("SELECT count(*), max(id) FROM users").fetchall() == [(100, 100)]
            assert connection.execute("INSERT INTO users (name, email) VALUES ('a', 'b') RETURNING id").fetchall() == [
                (101,)
            ]
            connection.execute("DELETE FROM users WHERE id < 50")


def test_a_standby_has_the_dataset_follows_what_is_written_and_counts_what_was_asked_of_it(
    services: Services, tmp_path: Path
) -> None:
    of = with_standby(max_connections="137")
    with services.running(planned(of, workload()), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log") as started:
        primary, standby = started.databases
        assert started.names == ("postgres", "postgres-standby")
        with ask_postgres(primary) as writing, ask_postgres(standby) as reading:
            assert reading.execute("SELECT * FROM users ORDER BY id").fetchall() == list(
                read_dataset("users").rows("users")
            )
            # A standby must allow as many connections as its primary.
            assert reading.execute("SHOW max_connections").fetchall() == [("137",)]
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                reading.execute("DELETE FROM users")
            reading.rollback()
            before = started.read(workload())
            writing.execute("UPDATE users SET name = 'new' WHERE id = 7")
            writing.commit()
            admin = primary.kind.admin(primary.address.port)
            await_replay(standby, read_written_position(admin))
            assert reading.execute("SELECT name FROM users WHERE id = 7").fetchall() == [("new",)]
            on_primary, on_standby = started.work_since(before, summary())
    assert (on_primary.service, on_primary.statements, on_primary.rows) == ("postgres", 1, 1)
    assert (on_standby.service, on_standby.statements, on_standby.rows) == ("postgres-standby", 1, 1)


def test_a_standby_begins_with_each_trial_as_the_dataset_was(services: Services, tmp_path: Path) -> None:
    for _ in range(2):
        with services.running(
            planned(with_standby(), workload()), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log"
        ) as started:
            primary, standby = started.databases
            with ask_postgres(standby) as reading, ask_postgres(primary) as writing:
                assert reading.execute("SELECT count(*) FROM users WHERE name = 'new'").fetchall() == [(0,)]
                writing.execute("UPDATE users SET name = 'new'")


def test_a_standby_of_a_server_of_the_users_own_is_refused(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(services, "postgres", tmp_path) as own:
        admin = own.databases[0].kind.admin(own.databases[0].address.port)
        monkeypatch.setenv("WEIR_POSTGRES_URL", admin.fields("postgresql")["url"])
        assert [unmet.need for unmet in with_standby().unmet()] == ["postgres-standby"]
        with (
            pytest.raises(UsageError, match="postgres-standby, a standby needs a primary that weir starts"),
            services.running(planned(with_standby(), workload()), PLACEMENT, log_of=lambda name: tmp_path / name),
        ):
            pass


def test_settings_of_the_stack_reach_the_server(services: Services, tmp_path: Path) -> None:
    with (
        running(services, "postgres", tmp_path, max_connections="37") as started,
        ask_postgres(started.databases[0]) as connection,
    ):
        assert connection.execute("SHOW max_connections").fetchall() == [("37",)]


@WITH_MAVEN
def test_invariants_are_asked_in_the_database_that_holds_the_dataset(services: Services, tmp_path: Path) -> None:
    asked = workload(
        invariant={
            "rows": {"sql": "SELECT count(*) FROM users", "grows_by": 0},
            "bad": {"sql": "SELECT 'x'", "equals": 0},
        }
    )
    for service in ("postgres", "mariadb"):
        with (
            running(services, service, tmp_path, asked) as started,
            pytest.raises(TargetError, match=r"invariant bad: .*found 'x', expected a number"),
        ):
            started.values(asked)
        asked_well = asked.model_copy(update={"invariant": {"rows": asked.invariant["rows"]}})
        with running(services, service, tmp_path, asked_well) as started:
            assert started.values(asked_well) == {"rows": 100}


def test_an_upstream_answers_after_its_delay_and_is_gone_afterwards(services: Services, tmp_path: Path) -> None:
    of = stack("delay", None, delay="200ms")
    asked = Workload.model_validate(
        {"schema": 1, "id": "w", "title": "W", "services": ["delay"], "request": {"path": "/"}, "answer": {}}
    )
    with services.running(planned(of, asked), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log") as started:
        assert started.names == ("delay",)
        assert started.counters() == {}
        url = started.fields["delay.url"]
        begun = time.monotonic()
        with urllib.request.urlopen(f"{url}/delay") as answer:
            assert (answer.status, answer.read()) == (200, b"ok")
        assert 0.2 <= time.monotonic() - begun < 5
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/delay")


def test_an_upstream_with_a_fault_commits_it(services: Services, tmp_path: Path) -> None:
    asked = Workload.model_validate(
        {"schema": 1, "id": "w", "title": "W", "services": ["delay"], "request": {"path": "/"}, "answer": {}}
    )
    of = stack("delay", None, delay="exp:1ms", servers="2", fault="status-500")
    with (
        services.running(planned(of, asked), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log") as started,
        pytest.raises(urllib.error.HTTPError, match="HTTP Error 500"),
    ):
        urllib.request.urlopen(started.fields["delay.url"])


def test_a_stack_is_told_of_an_upstream_that_nobody_is_at_where_the_workload_does_without(
    services: Services, tmp_path: Path
) -> None:
    asked = Workload.model_validate({"schema": 1, "id": "w", "title": "W", "request": {"path": "/"}, "answer": {}})
    with services.running(
        planned(stack("delay", None), asked), PLACEMENT, log_of=lambda name: tmp_path / name
    ) as started:
        assert started.names == ()
        assert started.fields["delay.url"] == "http://127.0.0.1:9"


@WITH_MAVEN
def test_a_lost_update_of_the_ticket_is_a_discrepancy_and_the_row_of_each_success_is_none(
    services: Services, tmp_path: Path
) -> None:
    asked = read_workload("ticket-issue")
    issuing = services.running(
        planned(stack("mariadb", "tickets"), asked), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log"
    )
    with issuing as started, ask_mariadb(started.databases[0]) as one, ask_mariadb(started.databases[0]) as other:
        before = started.values(asked)
        assert before == {"one-row-a-success": 0, "counter-agrees": 0}
        read = []
        for transaction in (one, other):
            with transaction.cursor() as cursor:
                cursor.execute("SELECT count FROM tbl_ticket WHERE id = 1")
                read.append(cursor.fetchall()[0][0])
        for transaction, count in zip((one, other), read, strict=True):
            with transaction.cursor() as cursor:
                cursor.execute("UPDATE tbl_ticket SET count = %s WHERE id = 1", (count + 1,))
                cursor.execute("INSERT INTO tbl_ticket_user (create_time, user_id) VALUES (now(6), 7)")
            transaction.commit()
        after = started.values(asked)
    two_right_answers = summary(failed=998)
    assert find_discrepancies(asked.invariant, before, after, two_right_answers) == (
        "invariant counter-agrees: grew by 1, expected 0",
    )


@contextmanager
def answering(text: bytes) -> Iterator[str]:
    """Runs a server that always sends the same response."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def in_front(started: RunningServices) -> Front:
    assert started.front is not None
    return started.front


@pytest.mark.needs("nginx")
def test_a_proxy_in_front_spreads_requests_over_all_processes_and_is_gone_afterwards(
    services: Services, tmp_path: Path
) -> None:
    asked = Workload.model_validate({"schema": 1, "id": "w", "title": "W", "request": {"path": "/"}, "answer": {}})
    of = Stack(stack("delay", None).manifest.model_copy(update={"services": {"nginx": Needed()}}), Path("/nowhere"))
    with (
        answering(b"one") as one,
        answering(b"two") as two,
        services.running(planned(of, asked), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log") as started,
        in_front(started)([one, two]) as reached,
    ):
        assert started.names == ("nginx",)
        (url,) = reached
        assert [urllib.request.urlopen(url).read() for _ in range(4)].count(b"one") == 2
        folder = services._folders[None].path
        assert list(folder.glob("nginx-*"))
    assert not list(folder.glob("nginx-*"))
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url)


def test_a_proxy_that_is_not_installed_is_named(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Workload.model_validate({"schema": 1, "id": "w", "title": "W", "request": {"path": "/"}, "answer": {}})
    of = Stack(stack("delay", None).manifest.model_copy(update={"services": {"nginx": Needed()}}), Path("/nowhere"))
    monkeypatch.setattr(FrontService, "find_program", lambda _: None)
    with (
        services.running(planned(of, asked), PLACEMENT, log_of=lambda name: tmp_path / f"{name}.log") as started,
        pytest.raises(UsageError, match="nginx: needs nginx, not found on the PATH nor in"),
        in_front(started)(["http://127.0.0.1:1"]),
    ):
        pass


def test_a_workload_whose_dataset_no_service_holds_is_refused(services: Services, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"found postgres: nothing; workload w expects a service with dataset 'users'"),
        services.running(planned(stack("postgres", None), workload()), PLACEMENT, log_of=lambda name: tmp_path / name),
    ):
        pass


def test_a_server_with_a_setting_that_does_not_exist_says_so_and_leaves_nothing(
    services: Services, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match="postgres: the process ended with exit status 1 before it was ready") as error, running(
        services, "postgres", tmp_path, no_such_setting="1"
    ):  # fmt: skip
        pass
    assert "no_such_setting" in error.value.message


@WITH_MAVEN
def test_a_server_of_the_users_own_gets_a_database_that_is_gone_afterwards(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service, variable, ask in (
        ("postgres", "WEIR_POSTGRES_URL", ask_postgres),
        ("mariadb", "WEIR_MYSQL_URL", ask_mariadb),
    ):
        with running(services, service, tmp_path) as own:
            admin = own.databases[0].kind.admin(own.databases[0].address.port)
            with monkeypatch.context() as patched:
                patched.setenv(variable, admin.fields(own.databases[0].kind.scheme)["url"])
                with running(services, service, tmp_path) as started:
                    assert not started.databases[0].started
                    with ask(started.databases[0]) as connection, connection.cursor() as cursor:
                        cursor.execute("SELECT count(*) FROM users")
                        assert cursor.fetchone() == (100,)
                    database = started.databases[0].address.database
                with pytest.raises((psycopg.Error, pymysql.Error), match=database), ask(started.databases[0]):
                    pass


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1", "mysql://u@h/d", "postgresql://u@h:port/d", "nonsense"])
def test_a_variable_that_is_no_url_of_a_database_is_named(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("WEIR_POSTGRES_URL", url)
    with (
        pytest.raises(UsageError, match=r"WEIR_POSTGRES_URL: found .*expected postgresql://USER"),
        running(services, "postgres", tmp_path),
    ):
        pass


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with Host() as host:
        with Services(host) as own, running(own, "postgres", tmp_path) as started:
            port = started.databases[0].address.port
            (folder,) = own._folders.values()
            assert folder.path.exists()
        assert not folder.path.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_what_a_killed_weir_left_is_removed_by_a_later_one_and_what_another_uses_is_not(tmp_path: Path) -> None:
    left, in_use, new = (tmp_path / f"weir-services-{name}" for name in ("left", "used", "new"))
    for folder in (left, in_use, new):
        (folder / "data").mkdir(parents=True)
    for folder in (left, in_use):
        os.utime(folder, (0, 0))
    lock = os.open(in_use, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    remove_leftovers(tmp_path)
    os.close(lock)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weir-services-new", "weir-services-used"]
