"""The services of a run: databases are fetched and filled once, then a fresh copy of each, with its server, for every trial.

A copy of a folder is as exact a reset as there is. A server of the user's own gets a fresh database instead. Upstreams hold nothing.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from weir.lab.host import Host
from weir.lab.service_folder import ServiceFolder
from weir.lab.service_process import LOOPBACK, Room, awaited, listens, service_environment, service_process, tail
from weir.lab.stack import Front, free_port, nothing_in_front
from weir.model.errors import TargetError, UsageError
from weir.model.records import LoadSummary
from weir.model.run import Placement
from weir.model.work import ServiceWork
from weir.places import engine_binary
from weir.services.counters import Counters, work_between
from weir.services.database import Address, DatabaseKind, Session, address_of_url
from weir.services.dataset import read_dataset
from weir.services.delay import delay_command
from weir.services.kinds import kind_of
from weir.services.manifest import DatabaseService, FrontService, StandbyService, UpstreamService, read_service
from weir.services.needs import unmet_by_machine
from weir.services.nginx import nginx_command, nginx_configuration
from weir.services.package import fetched
from weir.services.standby import become_standby, following_settings, require_replayed, written_position
from weir.stacks.invariant import Invariant
from weir.stacks.manifest import Needed, Stack
from weir.stacks.workload import Workload
from weir.study.study import PlannedCell

DATABASE = "weir"
"""The database of a trial."""
_STACK_LOGIN = "app"
_NOBODYS_PORT = 9
"""Of the discard protocol, which nothing serves."""


@dataclass(frozen=True, slots=True)
class RunningDatabase:
    """A database that answers, with a fresh dataset in it."""

    id: str
    kind: DatabaseKind
    address: Address
    """As the stack reaches it."""
    session: Session
    """weir's own connection."""
    dataset: str | None
    started: bool
    """False of a server of the user's own."""


@dataclass(frozen=True, slots=True)
class RunningUpstream:
    """A server that the stack asks, and that listens."""

    id: str
    port: int

    @property
    def fields(self) -> dict[str, str]:
        """What the stack is told: `UpstreamService.fields`."""
        return {"url": f"http://{LOOPBACK}:{self.port}", "host": LOOPBACK, "port": str(self.port)}


@dataclass(frozen=True, slots=True)
class RunningServices:
    """The services of one trial."""

    databases: tuple[RunningDatabase, ...] = ()
    upstreams: tuple[RunningUpstream, ...] = ()
    absent: tuple[RunningUpstream, ...] = ()
    """Upstreams that the workload does without: the stack is told an address at which nobody answers."""
    fronts: tuple[str, ...] = ()
    """What runs in front of the stack once that is ready."""
    front: Front = nothing_in_front
    """Starts it."""

    @property
    def fields(self) -> dict[str, str]:
        """What the stack's manifest may ask for: `postgres.url` and so on."""
        told = {one.id: one.address.fields(one.kind.scheme) for one in self.databases}
        told |= {one.id: one.fields for one in (*self.upstreams, *self.absent)}
        return {f"{name}.{field}": value for name, fields in told.items() for field, value in fields.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The processes that weir started for them."""
        return (*(one.id for one in self.databases if one.started), *(one.id for one in self.upstreams), *self.fronts)

    def read(self, workload: Workload) -> "Readings":
        """What the invariants' queries give, and then what each database has counted so far."""
        return Readings(self.values(workload), self.counters())

    def counters(self) -> dict[str, Counters]:
        """What each has counted so far."""
        return {one.id: one.session.counters(one.address.database) for one in self.databases}

    def work_since(self, before: "Readings", summary: LoadSummary) -> tuple[ServiceWork, ...]:
        """What each did since `before` was read."""
        return tuple(work_between(name, before.counters[name], after, summary) for name, after in self.counters().items())

    def values(self, workload: Workload) -> dict[str, int]:
        """What the queries of the workload's invariants give, by the invariant's name."""
        holder = next((one for one in self.databases if one.dataset == workload.dataset), None)
        if holder is None:
            # An external stack's database is its own affair.
            return {}
        return {name: _value(holder, invariant, name) for name, invariant in workload.invariant.items()}


@dataclass(frozen=True, slots=True)
class Readings:
    """What services say right before the measured load."""

    values: dict[str, int]
    """By invariant."""
    counters: dict[str, Counters]
    """By service."""


def started_services(cells: Iterable[PlannedCell]) -> list[str]:
    """The services of some cells that weir starts a server for: those that have no server of the user's own."""
    names = {name for planned in cells for name in planned.services}
    return sorted(name for name in names if read_service(name).own_url is None)


class Services:
    """What the trials of a run need beside their stacks. A context manager; nothing of it is left behind.

    Args:
        host: starts the servers.
        on_step: called with what takes long: fetching, filling.
    """

    def __init__(self, host: Host, *, on_step: Callable[[str], None] = lambda _: None) -> None:
        self._host = host
        self._on_step = on_step
        self._folder: ServiceFolder | None = None
        self._prepared: dict[tuple[str, str | None], _Prepared] = {}
        self._numbers = itertools.count(1)

    @contextmanager
    def running(self, planned: PlannedCell, placement: Placement, *, log_of: Callable[[str], Path]) -> Iterator[RunningServices]:
        """Starts what a stack needs and stops it in the end.

        Args:
            planned: the cell; its workload's dataset must be in one of the stack's services.
            placement: the CPUs and limits.
            log_of: the log file of a service, by its name.

        Raises:
            UsageError: no service holds the workload's dataset, a package's tool is missing, a variable holds no URL.
            TargetError: a package cannot be fetched, or a server does not start or answer.
        """
        stack, workload, needs = planned.stack, planned.workload, planned.services
        if (
            isinstance(stack, Stack)
            and workload.dataset is not None
            and workload.dataset not in {needed.dataset for needed in needs.values()}
        ):
            held = ", ".join(f"{name}: {needed.dataset or 'nothing'}" for name, needed in needs.items()) or "no service"
            raise UsageError(
                f"{stack.folder / 'stack.toml'}: services: found {held}; "
                f"workload {workload.id} expects one with dataset {workload.dataset!r}"
            )
        databases: list[RunningDatabase] = []
        upstreams: list[RunningUpstream] = []
        with ExitStack() as opened:
            for name, needed in needs.items():
                service, room, log = read_service(name), Room.of(name, placement), log_of(name)
                match service:
                    case DatabaseService():
                        databases.append(opened.enter_context(self._database(service, needed, room, log)))
                    case UpstreamService():
                        upstreams.append(opened.enter_context(self._upstream(service, needed, room, log)))
                    case StandbyService():
                        primary = next(one for one in databases if one.id == service.of)
                        # It has to be set like its primary, of whose connections and transactions it keeps track.
                        alike = {**read_service(service.of).settings, **needs[service.of].settings}
                        settings = {**alike, **service.settings, **needed.settings}
                        databases.append(opened.enter_context(self._standby(service, primary, settings, room, log)))
            fronts = {name: needed for name, needed in needs.items() if isinstance(read_service(name), FrontService)}

            @contextmanager
            def front(base_urls: Sequence[str]) -> Iterator[Sequence[str]]:
                with ExitStack() as stacked:
                    for name, needed in fronts.items():
                        base_urls = [stacked.enter_context(self._front(name, needed, base_urls, Room.of(name, placement), log_of(name)))]
                    yield base_urls

            absent = (name for name in stack.services if name not in needs) if isinstance(stack, Stack) else ()
            nobody = tuple(RunningUpstream(name, _NOBODYS_PORT) for name in absent)
            yield RunningServices(tuple(databases), tuple(upstreams), nobody, tuple(fronts), front)

    def close(self) -> None:
        """Removes every copy."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def __enter__(self) -> "Services":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _database(self, service: DatabaseService, needed: Needed, room: Room, log: Path) -> Iterator[RunningDatabase]:
        kind, url = kind_of(service.id), service.own_url
        if url is not None:
            with _own_database(service, kind, url, needed) as running:
                yield running
            return
        prepared = self._prepare(service, kind, needed, replace(room, limits=None))
        data = self._copy(prepared.data)
        try:
            settings = {**service.settings, **needed.settings}
            with self._served(replace(prepared, data=data), settings, room, log) as (session, admin):
                stack_login = Address(admin.host, admin.port, _STACK_LOGIN, _STACK_LOGIN, DATABASE)
                yield RunningDatabase(service.id, kind, stack_login, session, needed.dataset, started=True)
        finally:
            shutil.rmtree(data, ignore_errors=True)

    @contextmanager
    def _standby(
        self, service: StandbyService, primary: RunningDatabase, settings: Mapping[str, str], room: Room, log: Path
    ) -> Iterator[RunningDatabase]:
        """A second server that follows `primary` and has come as far as that had when it was asked for."""
        if not primary.started:
            raise UsageError(str(unmet_by_machine(service)))
        prepared = self._prepared[service.of, primary.dataset]
        data = self._copy(prepared.data)
        try:
            become_standby(data)
            admin_of_primary = primary.kind.admin(primary.address.port)
            following = replace(prepared, id=service.id, data=data)
            with self._served(following, {**settings, **following_settings(admin_of_primary)}, room, log) as (session, admin):
                written = written_position(admin_of_primary)
                awaited(self._host, service.id, log, lambda: require_replayed(admin, written))
                address = replace(primary.address, port=admin.port)
                yield RunningDatabase(service.id, primary.kind, address, session, None, started=True)
        finally:
            shutil.rmtree(data, ignore_errors=True)

    @contextmanager
    def _upstream(self, service: UpstreamService, needed: Needed, room: Room, log: Path) -> Iterator[RunningUpstream]:
        running = RunningUpstream(service.id, free_port())
        command = delay_command(engine_binary(), running.port, {**service.settings, **needed.settings})
        with service_process(self._host, service.id, command, cwd=Path("/"), room=room, log=log):
            awaited(self._host, service.id, log, lambda: listens(service.id, running.port))
            yield running

    @contextmanager
    def _front(self, name: str, needed: Needed, base_urls: Sequence[str], room: Room, log: Path) -> Iterator[str]:
        """A proxy before a stack that is ready: where to ask instead."""
        service = read_service(name)
        assert isinstance(service, FrontService)
        program = service.found()
        if program is None:
            raise UsageError(f"{name}: needs {unmet_by_machine(service)}", hint="weir doctor")
        port, data = free_port(), self._own_folder().data(f"{name}-{next(self._numbers)}")
        configuration = data / f"{name}.conf"
        stack_ports = [urlsplit(base_url).port or 80 for base_url in base_urls]
        try:
            settings = {**service.settings, **needed.settings}
            configuration.write_text(nginx_configuration(settings, port=port, stack_ports=stack_ports, folder=data))
            configuration.chmod(0o644)
            command = nginx_command(program, data, configuration)
            with service_process(self._host, name, command, cwd=data, room=room, log=log, user=self._own_folder().user):
                awaited(self._host, name, log, lambda: listens(name, port))
                yield f"http://{LOOPBACK}:{port}"
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _own_folder(self) -> ServiceFolder:
        if self._folder is None:
            self._folder = ServiceFolder()
        return self._folder

    def _prepare(self, service: DatabaseService, kind: DatabaseKind, needed: Needed, room: Room) -> "_Prepared":
        """A data folder with the dataset in it, whose server was stopped in order."""
        key = service.id, needed.dataset
        if key not in self._prepared:
            programs = fetched(service, on_fetch=lambda what: self._on_step(f"fetching {service.title}: {what}"))
            folder = self._own_folder()
            programs = folder.programs(service.id, programs)
            self._on_step(f"filling {service.title} with {needed.dataset or 'nothing'}")
            scratch = folder.path / f"{service.id}-scratch"
            scratch.mkdir(mode=0o755, exist_ok=True)
            log = scratch / "log"
            data = folder.data(f"{service.id}-{needed.dataset or 'empty'}")
            ended = self._host.run(
                service.id,
                kind.make(programs, data, scratch),
                cwd=folder.path,
                env=service_environment(),
                log=log,
                cpus=room.cpus,
                user=folder.user,
            )
            if ended.exit_code != 0:
                raise TargetError("\n  ".join([f"{service.id}: making its data folder ended {ended.how}", *tail(log)]))
            prepared = _Prepared(service.id, kind, programs, data)
            with self._served(prepared, service.settings, room, log) as (session, admin):
                login = Address(admin.host, admin.port, _STACK_LOGIN, _STACK_LOGIN, DATABASE)
                session.create(DATABASE, login)
                if needed.dataset is not None:
                    kind.fill(login, read_dataset(needed.dataset))
            self._prepared[key] = prepared
        return self._prepared[key]

    def _copy(self, filled: Path) -> Path:
        data = filled.with_name(f"{filled.name}-{next(self._numbers)}")
        # With owners and holes, and sharing the blocks where the file system can.
        done = subprocess.run(["cp", "-a", "--reflink=auto", filled, data], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TargetError(
                f"{filled}: cannot be copied: {done.stderr.strip().splitlines()[-1:]}", hint="check the space left on the disk"
            )
        return data

    @contextmanager
    def _served(self, prepared: "_Prepared", settings: Mapping[str, str], room: Room, log: Path) -> Iterator[tuple[Session, Address]]:
        """A server of a data folder: weir's own connection to it, and as whom."""
        kind, admin = prepared.kind, prepared.kind.admin(free_port())
        command = kind.serve(prepared.programs, prepared.data, admin.port, settings)
        with service_process(self._host, prepared.id, command, cwd=prepared.data, room=room, log=log, user=self._own_folder().user):
            session = awaited(self._host, prepared.id, log, lambda: kind.session(admin))
            try:
                yield session, admin
            finally:
                session.close()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A data folder and what serves it."""

    id: str
    """The service."""
    kind: DatabaseKind
    programs: Path
    data: Path


@contextmanager
def _own_database(service: DatabaseService, kind: DatabaseKind, url: str, needed: Needed) -> Iterator[RunningDatabase]:
    """A database of weir's own on the user's server, made anew and removed in the end."""
    login = address_of_url(service.own_server, url, kind)
    address = login.at(f"{DATABASE}_{os.getpid()}")
    try:
        session = kind.session(login)
    except TargetError as error:
        raise TargetError(f"{service.own_server}: {error.message}", hint=error.hint) from None
    try:
        session.drop(address.database)
        session.create(address.database, address)
        try:
            if needed.dataset is not None:
                kind.fill(address, read_dataset(needed.dataset))
            yield RunningDatabase(service.id, kind, address, session, needed.dataset, started=False)
        finally:
            session.drop(address.database)
    finally:
        session.close()


def _value(service: RunningDatabase, invariant: Invariant, name: str) -> int:
    try:
        return service.kind.value(service.address, invariant.sql)
    except TargetError as error:
        raise TargetError(f"invariant {name}: {error.message}") from None
