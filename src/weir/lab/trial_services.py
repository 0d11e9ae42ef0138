"""The services of a run. weir fills each database once, and starts it on a fresh copy of the data for every trial.

A copy of the data folder resets a database exactly. On a user's own server, weir creates a fresh database instead.
Upstreams have no state. Databases and upstreams may run on another machine; a proxy always runs with its stack.
"""

import itertools
import os
import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from weir.engine_process import Closing
from weir.host import Host, User
from weir.lab.service_process import ServiceProcess, build_environment, probe_port
from weir.lab.stack_process import CHECK_SPACE, Front, RunningStack, find_free_port, list_process_names, running_stack
from weir.model.errors import TargetError, UsageError
from weir.model.load_records import LoadSummary
from weir.model.run_types import Placement
from weir.model.service_work import ServiceWork
from weir.paths import find_cache_folder, find_engine_binary
from weir.services.counters import Counters, compute_work
from weir.services.database import LOOPBACK, Address, DatabaseKind, Session, find_database_kind, parse_database_url
from weir.services.dataset import read_dataset
from weir.services.delay import build_delay_command
from weir.services.folder import ServiceFolder
from weir.services.manifest import DatabaseService, FrontService, StandbyService, UpstreamService, read_service
from weir.services.nginx import build_nginx_command, build_nginx_configuration
from weir.services.package import fetch_package
from weir.services.service_host import ServiceHost
from weir.services.service_needs import find_unmet_need
from weir.services.standby import SIGNAL_FILE, build_standby_settings, read_written_position, require_replayed
from weir.stacks.answer_check import CheckAnswers, check_answers
from weir.stacks.build import BuiltStack
from weir.stacks.manifest import Needed, Stack
from weir.stacks.workload import Workload
from weir.study.study import PlannedCell

DATABASE = "weir"
"""Name of a trial's database."""
_STACK_LOGIN = "app"
_UNUSED_PORT = 9
"""Port for an upstream that a workload does not use. No server listens on this port (discard protocol)."""


@dataclass(frozen=True, slots=True)
class RunningDatabase:
    """A running database with a fresh dataset. `session` is weir's own connection."""

    id: str
    kind: DatabaseKind
    address: Address
    """Address of the database, with the stack's login."""
    session: Session
    dataset: str | None
    started: bool
    """Whether weir started the server; False for the user's own server."""


@dataclass(frozen=True, slots=True)
class RunningServices:
    """The services of one trial."""

    databases: tuple[RunningDatabase, ...]
    fields: Mapping[str, str]
    """A dict from field name to value for the stack's manifest, such as `postgres.url`."""
    names: tuple[str, ...]
    """Names of the processes that weir started."""
    fronts: tuple[str, ...] = ()
    """Names of the proxies in front of the stack."""
    front: Front | None = None
    """Starts the proxies; None without proxies."""
    place: ServiceHost | None = None
    """The machine of databases and upstreams; None: this machine."""

    def read(self, workload: Workload) -> "Readings":
        """Returns the results of the invariants' queries and the counters of each database."""
        return Readings(self.values(workload), self.counters())

    def counters(self) -> dict[str, Counters]:
        return {one.id: one.session.counters(one.address.database) for one in self.databases}

    def work_since(self, before: "Readings", summary: LoadSummary) -> tuple[ServiceWork, ...]:
        counters = self.counters().items()
        return tuple(compute_work(name, before.counters[name], after, summary) for name, after in counters)

    def values(self, workload: Workload) -> dict[str, int]:
        """Runs the queries of the workload's invariants. Returns a dict from invariant name to result."""
        found: dict[str, int] = {}
        # weir has no access to an external stack's database.
        for holder in [one for one in self.databases if one.dataset == workload.dataset][:1]:
            for name, invariant in workload.invariant.items():
                try:
                    found[name] = holder.kind.value(holder.address, invariant.sql)
                except TargetError as error:
                    raise TargetError(f"invariant {name}: {error.message}") from None
        return found


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of the services: a dict from invariant to value, and a dict from service to its counters."""

    values: dict[str, int]
    counters: dict[str, Counters]


def list_started_services(cells: Iterable[PlannedCell]) -> list[str]:
    """Returns the names of the cells' services that weir starts: all except the user's own servers."""
    names = {name for planned in cells for name in planned.services}
    return sorted(name for name in names if read_service(name).own_url is None)


@dataclass(frozen=True, slots=True)
class _PreparedDatabase:
    """A data folder, and the programs of the database server."""

    kind: DatabaseKind
    programs: Path
    data: Path
    scratch: Path
    """The folder that contains `DatabaseKind.files`."""


class Services(Closing):
    """The services of all trials of a run, on the machine `place` or on this machine. `close` removes the data. The
    object calls `on_step` before slow steps, such as downloads."""

    def __init__(
        self, host: Host, on_step: Callable[[str], None] = lambda _: None, place: ServiceHost | None = None
    ) -> None:
        folder = find_cache_folder() / "services"
        self._here = ServiceHost(host, find_engine_binary(), find_free_port, lambda: ServiceFolder(folder))
        self._place = place or self._here
        self._on_step = on_step
        self._folders: dict[str | None, ServiceFolder] = {}
        self._prepared: dict[tuple[str, str | None], _PreparedDatabase] = {}
        self._numbers = itertools.count(1)

    @contextmanager
    def running(
        self, planned: PlannedCell, placement: Placement, *, log_of: Callable[[str], Path]
    ) -> Iterator[RunningServices]:
        """Starts the services of a cell, and finally stops them. `log_of` returns the log file of a service.

        Raises UsageError if no service has the workload's dataset, a tool is missing, or a variable for the user's own
        server has no valid URL. Raises TargetError if a download fails, or a server does not start or respond.
        """
        stack, needs = planned.stack, planned.services
        _require_dataset(planned)
        databases: dict[str, RunningDatabase] = {}
        upstreams: dict[str, dict[str, str]] = {}
        with ExitStack() as opened:
            for name, needed in needs.items():
                service, process = read_service(name), ServiceProcess.plan(self._place, name, placement, log_of(name))
                process.log.parent.mkdir(parents=True, exist_ok=True)
                match service:
                    case DatabaseService():
                        databases[name] = opened.enter_context(self._database(service, needed, process))
                    case UpstreamService():
                        upstreams[name] = opened.enter_context(self._upstream(service, needed, process))
                    case StandbyService():
                        primary = databases[service.of]
                        # A standby tracks its primary's connections and transactions, so it needs the same settings.
                        primary_settings = {**read_service(service.of).settings, **needs[service.of].settings}
                        settings = {**primary_settings, **service.settings, **needed.settings}
                        databases[name] = opened.enter_context(self._standby(service, primary, settings, process))
            fronts = {name: needed for name, needed in needs.items() if isinstance(read_service(name), FrontService)}

            @contextmanager
            def front(base_urls: Sequence[str]) -> Iterator[Sequence[str]]:
                with ExitStack() as stacked:
                    for name, needed in fronts.items():
                        proxy = self._front(name, needed, base_urls, placement, log_of(name))
                        base_urls = [stacked.enter_context(proxy)]
                    yield base_urls

            # If a workload does not use the upstream, the stack gets an address without a server.
            absent = [name for name in stack.services if name not in needs] if isinstance(stack, Stack) else []
            by_service = {name: one.address.fields(one.kind.scheme) for name, one in databases.items()}
            by_service |= dict.fromkeys(absent, _build_upstream_fields(LOOPBACK, _UNUSED_PORT)) | upstreams
            started = [*(name for name, one in databases.items() if one.started), *upstreams]
            yield RunningServices(
                databases=tuple(databases.values()),
                fields={f"{name}.{field}": one for name, fields in by_service.items() for field, one in fields.items()},
                names=(*started, *fronts),
                fronts=tuple(fronts),
                front=front if fronts else None,
                place=self._place if started and self._place.node is not None else None,
            )

    @contextmanager
    def running_with_stack(
        self,
        built: BuiltStack | None,
        planned: PlannedCell,
        placement: Placement,
        name: str,
        *,
        inputs: random.Random,
        check: CheckAnswers = check_answers,
        port: int = 0,
        watch_writes: bool = False,
    ) -> Iterator[tuple[RunningServices, RunningStack]]:
        """Starts a cell's services and stack outside a trial. The names of their log files contain `name`."""

        def name_log(suffix: str) -> Path:
            assert built is not None
            return built.log_path(f"{name}{suffix}")

        processes = [] if built is None else list_process_names(planned.cell.replicas)
        with (
            self.running(planned, placement, log_of=lambda service: name_log(f"-{service}")) as needed,
            running_stack(
                self._here.host,
                built,
                planned,
                placement=placement,
                logs=[name_log(process.removeprefix("app")) for process in processes],
                inputs=inputs,
                fields=needed.fields,
                front=needed.front,
                port=port,
                check=check,
                watch_writes=watch_writes,
            ) as running,
        ):
            yield needed, running

    def close(self) -> None:
        while self._folders:
            _, folder = self._folders.popitem()
            folder.remove()

    @contextmanager
    def _database(self, service: DatabaseService, needed: Needed, process: ServiceProcess) -> Iterator[RunningDatabase]:
        kind, url = find_database_kind(service.id), service.own_url
        if url is not None:
            with _own_database(service, kind, url, needed) as running:
                yield running
            return
        settings = {**service.settings, **needed.settings}
        prepared = self._prepare(service, kind, needed, process)
        with self._copy(prepared) as copy, self._serve(copy, settings, process) as (session, admin):
            yield RunningDatabase(service.id, kind, self._stack_login(admin), session, needed.dataset, started=True)

    @contextmanager
    def _standby(
        self, service: StandbyService, primary: RunningDatabase, settings: Mapping[str, str], process: ServiceProcess
    ) -> Iterator[RunningDatabase]:
        """Starts a standby of `primary`, and waits until the standby has replayed all data."""
        if not primary.started:
            raise UsageError(str(find_unmet_need(service)))
        with self._copy(self._prepared[service.of, primary.dataset]) as copy:
            self._folder(self._place).write(f"{copy.data.name}/{SIGNAL_FILE}", "")
            admin_of_primary = primary.kind.admin(primary.address.port, primary.address.host)
            settings = {**settings, **build_standby_settings(admin_of_primary)}
            with self._serve(copy, settings, process) as (session, admin):
                written = read_written_position(admin_of_primary)
                process.wait(lambda: require_replayed(admin, written))
                address = replace(primary.address, port=admin.port)
                yield RunningDatabase(service.id, primary.kind, address, session, None, started=True)

    @contextmanager
    def _upstream(self, service: UpstreamService, needed: Needed, process: ServiceProcess) -> Iterator[dict[str, str]]:
        """Starts an upstream server. Yields the values of `UpstreamService.fields`."""
        place, port = self._place, self._place.free_port()
        command = build_delay_command(place.engine, place.address, port, {**service.settings, **needed.settings})
        with process.running(command, partial(probe_port, service.id, port, place.address), cwd=Path("/")):
            yield _build_upstream_fields(place.address, port)

    @contextmanager
    def _front(
        self, name: str, needed: Needed, base_urls: Sequence[str], placement: Placement, log: Path
    ) -> Iterator[str]:
        """Starts a proxy in front of a ready stack on loopback. Yields the proxy's URL."""
        service = read_service(name)
        assert isinstance(service, FrontService)
        program = service.find_program()
        if program is None:
            raise UsageError(f"{name}: needs {find_unmet_need(service)}", hint="weir doctor")
        port, folder = find_free_port(), self._folder(self._here)
        data = folder.data(f"{name}-{next(self._numbers)}")
        stack_ports = [urlsplit(base_url).port or 80 for base_url in base_urls]
        try:
            settings, address = {**service.settings, **needed.settings}, placement.advertised_address or LOOPBACK
            configured = build_nginx_configuration(settings, port, stack_ports, data, address)
            command = build_nginx_command(program, data, folder.write(f"{data.name}/{name}.conf", configured))
            process = ServiceProcess.plan(self._here, name, placement, log)
            with process.running(command, partial(probe_port, name, port, address), cwd=data, user=_user(folder)):
                yield f"http://{address}:{port}"
        finally:
            folder.drop(data.name)

    def _folder(self, place: ServiceHost) -> ServiceFolder:
        if place.node not in self._folders:
            self._folders[place.node] = place.folder()
        return self._folders[place.node]

    def _stack_login(self, admin: Address) -> Address:
        return Address(admin.host, admin.port, _STACK_LOGIN, _STACK_LOGIN, DATABASE, self._place.clients)

    def _prepare(
        self, service: DatabaseService, kind: DatabaseKind, needed: Needed, process: ServiceProcess
    ) -> _PreparedDatabase:
        """Returns a data folder with the dataset and without a server. Fills the folder at the first call."""
        key = service.id, needed.dataset
        if key not in self._prepared:
            name = f"{service.id}-{needed.dataset or 'empty'}"
            try:
                self._prepared[key] = self._fill(name, service, kind, needed, process)
            except BaseException:
                # Another stack may create a folder with the same name later.
                self._folder(self._place).drop(name)
                raise
        return self._prepared[key]

    def _fill(
        self, name: str, service: DatabaseService, kind: DatabaseKind, needed: Needed, process: ServiceProcess
    ) -> _PreparedDatabase:
        """Creates and fills a data folder with the name `name`."""
        place, folder = self._place, self._folder(self._place)
        programs = fetch_package(service, on_fetch=lambda what: self._on_step(f"fetching {service.title}: {what}"))
        programs = folder.programs(service.id, programs)
        self._on_step(f"filling {service.title} with {needed.dataset or 'nothing'}")
        scratch = f"{service.id}-scratch"
        log = folder.write(f"{scratch}/log", "")
        process = replace(process, limits=None, log=log, is_log_there=True)
        for file, text in kind.files(place.clients).items():
            folder.write(f"{scratch}/{file}", text)
        prepared = _PreparedDatabase(kind, programs, folder.data(name), log.parent)
        command, environment = kind.make(programs, prepared.data, prepared.scratch), build_environment()
        cpus, user = process.cpus, _user(folder)
        ended = place.host.run(service.id, command, cwd=folder.path, env=environment, log=log, cpus=cpus, user=user)
        if ended.exit_code != 0:
            lines = folder.read(f"{scratch}/{log.name}").strip().splitlines()
            # MariaDB's last lines name its bug tracker instead of the error.
            errors = [line for line in lines if "ERROR" in line or "FATAL" in line][-5:] or lines[-5:]
            raise TargetError("\n  ".join([f"{service.id}: creating the data folder ended {ended.how}", *errors]))
        with self._serve(prepared, service.settings, process) as (session, admin):
            login = self._stack_login(admin)
            session.create(DATABASE, login)
            if needed.dataset is not None:
                kind.fill(login, read_dataset(needed.dataset))
        return prepared

    @contextmanager
    def _copy(self, filled: _PreparedDatabase) -> Iterator[_PreparedDatabase]:
        folder = self._folder(self._place)
        name = f"{filled.data.name}-{next(self._numbers)}"
        try:
            try:
                data = folder.copy(filled.data, name)
            except OSError as error:
                raise TargetError(str(error), hint=CHECK_SPACE) from None
            yield replace(filled, data=data)
        finally:
            folder.drop(name)

    @contextmanager
    def _serve(
        self, prepared: _PreparedDatabase, settings: Mapping[str, str], process: ServiceProcess
    ) -> Iterator[tuple[Session, Address]]:
        """Starts a server on a data folder. Yields weir's own connection, and the address with the login."""
        place, kind = self._place, prepared.kind
        admin = kind.admin(place.free_port(), place.address)
        command = kind.serve(prepared.programs, prepared.data, prepared.scratch, admin.host, admin.port, settings)
        connect, user = partial(kind.session, admin), _user(self._folder(place))
        with process.running(command, connect, cwd=prepared.data, user=user) as session, closing(session):
            yield session, admin


def _require_dataset(planned: PlannedCell) -> None:
    """Raises UsageError if no service of a stack has the workload's dataset."""
    stack, workload, needs = planned.stack, planned.workload, planned.services
    if not isinstance(stack, Stack) or workload.dataset in (None, *(needed.dataset for needed in needs.values())):
        return
    held = ", ".join(f"{name}: {needed.dataset or 'nothing'}" for name, needed in needs.items()) or "no services"
    expected = f"workload {workload.id} expects a service with dataset {workload.dataset!r}"
    raise UsageError(f"{stack.folder / 'stack.toml'}: services: found {held}; {expected}")


def _build_upstream_fields(address: str, port: int) -> dict[str, str]:
    return {"url": f"http://{address}:{port}", "host": address, "port": str(port)}


def _user(folder: ServiceFolder) -> User | None:
    return None if folder.owner is None else User(*folder.owner)


@contextmanager
def _own_database(service: DatabaseService, kind: DatabaseKind, url: str, needed: Needed) -> Iterator[RunningDatabase]:
    """Creates a database on the user's server, and finally removes the database."""
    login = parse_database_url(service.own_server, url, kind)
    address = replace(login, database=f"{DATABASE}_{os.getpid()}_{secrets.token_hex(4)}")
    try:
        session = kind.session(login)
    except TargetError as error:
        raise TargetError(f"{service.own_server}: {error.message}", hint=error.hint) from None
    with closing(session):
        session.drop(address.database)
        session.create(address.database, address)
        try:
            if needed.dataset is not None:
                kind.fill(address, read_dataset(needed.dataset))
            yield RunningDatabase(service.id, kind, address, session, needed.dataset, started=False)
        finally:
            session.drop(address.database)
