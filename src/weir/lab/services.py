"""The services of a run: databases are fetched and filled once, then a fresh copy of each, with its server, for every trial.

A copy of a folder is as exact a reset as there is. A server of the user's own gets a fresh database instead. Upstreams hold nothing.
Databases and upstreams may be on a machine of their own; what stands in front of a stack is beside it.
"""

import itertools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from weir.host import Host, User
from weir.lab.service_process import Room, awaited, listens, service_environment, service_process
from weir.lab.stack import Front, free_port
from weir.model.errors import TargetError, UsageError
from weir.model.records import LoadSummary
from weir.model.run import Placement
from weir.model.work import ServiceWork
from weir.places import cache_folder, engine_binary
from weir.services.counters import Counters, work_between
from weir.services.database import LOOPBACK, Address, DatabaseKind, Session, address_of_url
from weir.services.dataset import read_dataset
from weir.services.delay import delay_command
from weir.services.folder import Folder, ServiceFolder
from weir.services.kinds import kind_of
from weir.services.manifest import DatabaseService, FrontService, StandbyService, UpstreamService, read_service
from weir.services.needs import unmet_by_machine
from weir.services.nginx import nginx_command, nginx_configuration
from weir.services.package import fetched
from weir.services.place import ServicePlace
from weir.services.standby import SIGNAL_FILE, following_settings, require_replayed, written_position
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
    address: str = LOOPBACK

    @property
    def fields(self) -> dict[str, str]:
        """What the stack is told: `UpstreamService.fields`."""
        return {"url": f"http://{self.address}:{self.port}", "host": self.address, "port": str(self.port)}


@dataclass(frozen=True, slots=True)
class RunningServices:
    """The services of one trial."""

    databases: tuple[RunningDatabase, ...] = ()
    upstreams: tuple[RunningUpstream, ...] = ()
    absent: tuple[RunningUpstream, ...] = ()
    """Upstreams that the workload does without: the stack is told an address at which nobody answers."""
    fronts: tuple[str, ...] = ()
    """What runs in front of the stack once that is ready."""
    front: Front | None = None
    """Starts it; None where there is none."""
    place: ServicePlace | None = None
    """The machine that databases and upstreams are on; None: this one."""

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
        place: the machine for services; None: this one.
    """

    def __init__(self, host: Host, *, on_step: Callable[[str], None] = lambda _: None, place: ServicePlace | None = None) -> None:
        self._here = _place_here(host)
        self._place = place or self._here
        self._on_step = on_step
        self._folders: dict[str | None, Folder] = {}
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
                log.parent.mkdir(parents=True, exist_ok=True)
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
                        base_urls = [stacked.enter_context(self._front(name, needed, base_urls, placement, log_of(name)))]
                    yield base_urls

            absent = (name for name in stack.services if name not in needs) if isinstance(stack, Stack) else ()
            nobody = tuple(RunningUpstream(name, _NOBODYS_PORT) for name in absent)
            has_started = bool(upstreams) or any(one.started for one in databases)
            place = self._place if has_started and self._place.node is not None else None
            yield RunningServices(tuple(databases), tuple(upstreams), nobody, tuple(fronts), front if fronts else None, place)

    def close(self) -> None:
        """Removes every copy."""
        while self._folders:
            _, folder = self._folders.popitem()
            folder.remove()

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
        with self._copied(prepared) as copy:
            settings = {**service.settings, **needed.settings}
            with self._served(copy, settings, room, log) as (session, admin):
                yield RunningDatabase(service.id, kind, self._stack_login(admin), session, needed.dataset, started=True)

    @contextmanager
    def _standby(
        self, service: StandbyService, primary: RunningDatabase, settings: Mapping[str, str], room: Room, log: Path
    ) -> Iterator[RunningDatabase]:
        """A second server that follows `primary` and has come as far as that had when it was asked for."""
        if not primary.started:
            raise UsageError(str(unmet_by_machine(service)))
        with self._copied(self._prepared[service.of, primary.dataset]) as copy:
            self._folder(self._place).write(f"{copy.data.name}/{SIGNAL_FILE}", "")
            admin_of_primary = primary.kind.admin(primary.address.port, primary.address.host)
            following = replace(copy, id=service.id)
            with self._served(following, {**settings, **following_settings(admin_of_primary)}, room, log) as (session, admin):
                written = written_position(admin_of_primary)
                awaited(self._place.host, service.id, log, lambda: require_replayed(admin, written))
                address = replace(primary.address, port=admin.port)
                yield RunningDatabase(service.id, primary.kind, address, session, None, started=True)

    @contextmanager
    def _upstream(self, service: UpstreamService, needed: Needed, room: Room, log: Path) -> Iterator[RunningUpstream]:
        place = self._place
        running = RunningUpstream(service.id, place.free_port(), place.address)
        command = delay_command(place.engine, running.address, running.port, {**service.settings, **needed.settings})
        with (
            place.logged(log) as written,
            service_process(place.host, service.id, command, cwd=Path("/"), room=self._room_there(room), log=written),
        ):
            awaited(place.host, service.id, log, lambda: listens(service.id, running.port, running.address))
            yield running

    @contextmanager
    def _front(self, name: str, needed: Needed, base_urls: Sequence[str], placement: Placement, log: Path) -> Iterator[str]:
        """A proxy before a stack that is ready, which is on loopback then: where to ask instead."""
        service = read_service(name)
        assert isinstance(service, FrontService)
        program = service.found()
        if program is None:
            raise UsageError(f"{name}: needs {unmet_by_machine(service)}", hint="weir doctor")
        port, folder = free_port(), self._folder(self._here)
        data = folder.data(f"{name}-{next(self._numbers)}")
        stack_ports = [urlsplit(base_url).port or 80 for base_url in base_urls]
        try:
            settings = {**service.settings, **needed.settings}
            address = placement.reached_at or LOOPBACK
            configured = nginx_configuration(settings, port=port, stack_ports=stack_ports, folder=data, address=address)
            configuration = folder.write(f"{data.name}/{name}.conf", configured)
            command = nginx_command(program, data, configuration)
            room, user = Room.of(name, placement), _user(folder)
            with service_process(self._here.host, name, command, cwd=data, room=room, log=log, user=user):
                awaited(self._here.host, name, log, lambda: listens(name, port, address))
                yield f"http://{address}:{port}"
        finally:
            folder.drop(data.name)

    def _folder(self, place: ServicePlace) -> Folder:
        if place.node not in self._folders:
            self._folders[place.node] = place.folder()
        return self._folders[place.node]

    def _room_there(self, room: Room) -> Room:
        """CPUs are those of this machine."""
        return room if self._place.node is None else replace(room, cpus=())

    def _stack_login(self, admin: Address) -> Address:
        return Address(admin.host, admin.port, _STACK_LOGIN, _STACK_LOGIN, DATABASE, self._place.clients)

    def _prepare(self, service: DatabaseService, kind: DatabaseKind, needed: Needed, room: Room) -> "_Prepared":
        """A data folder with the dataset in it, whose server was stopped in order."""
        key = service.id, needed.dataset
        if key not in self._prepared:
            name = f"{service.id}-{needed.dataset or 'empty'}"
            try:
                self._prepared[key] = self._filled(name, service, kind, needed, room)
            except BaseException:
                # Another stack may want the same.
                self._folder(self._place).drop(name)
                raise
        return self._prepared[key]

    def _filled(self, name: str, service: DatabaseService, kind: DatabaseKind, needed: Needed, room: Room) -> "_Prepared":
        """The same, in a new folder of this name."""
        place, folder = self._place, self._folder(self._place)
        programs = fetched(service, on_fetch=lambda what: self._on_step(f"fetching {service.title}: {what}"))
        programs = folder.programs(service.id, programs)
        self._on_step(f"filling {service.title} with {needed.dataset or 'nothing'}")
        scratch = f"{service.id}-scratch"
        log = folder.write(f"{scratch}/log", "")
        for file, text in kind.files(place.clients).items():
            folder.write(f"{scratch}/{file}", text)
        prepared = _Prepared(service.id, kind, programs, folder.data(name), log.parent)
        ended = place.host.run(
            service.id,
            kind.make(programs, prepared.data, prepared.scratch),
            cwd=folder.path,
            env=service_environment(),
            log=log,
            cpus=self._room_there(room).cpus,
            user=_user(folder),
        )
        if ended.exit_code != 0:
            said = folder.read(f"{scratch}/{log.name}").strip().splitlines()[-5:]
            raise TargetError("\n  ".join([f"{service.id}: making its data folder ended {ended.how}", *said]))
        with self._served(prepared, service.settings, room, log, is_log_there=True) as (session, admin):
            login = self._stack_login(admin)
            session.create(DATABASE, login)
            if needed.dataset is not None:
                kind.fill(login, read_dataset(needed.dataset))
        return prepared

    @contextmanager
    def _copied(self, filled: "_Prepared") -> Iterator["_Prepared"]:
        folder = self._folder(self._place)
        name = f"{filled.data.name}-{next(self._numbers)}"
        try:
            try:
                data = folder.copy(filled.data, name)
            except OSError as error:
                raise TargetError(str(error), hint="check the space left on the disk") from None
            yield replace(filled, data=data)
        finally:
            folder.drop(name)

    @contextmanager
    def _served(
        self, prepared: "_Prepared", settings: Mapping[str, str], room: Room, log: Path, *, is_log_there: bool = False
    ) -> Iterator[tuple[Session, Address]]:
        """A server of a data folder: weir's own connection to it, and as whom."""
        place, kind = self._place, prepared.kind
        admin = kind.admin(place.free_port(), place.address)
        command = kind.serve(prepared.programs, prepared.data, prepared.scratch, admin.host, admin.port, settings)
        room, user = self._room_there(room), _user(self._folder(place))
        with (
            nullcontext(log) if is_log_there else place.logged(log) as written,
            service_process(place.host, prepared.id, command, cwd=prepared.data, room=room, log=written, user=user),
        ):
            session = awaited(place.host, prepared.id, log, lambda: kind.session(admin))
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
    scratch: Path
    """Holds `DatabaseKind.files`."""


def _place_here(host: Host) -> ServicePlace:
    """This machine, where services are on the loopback device."""
    return ServicePlace(
        host=host,
        engine=engine_binary(),
        address=LOOPBACK,
        clients=(LOOPBACK,),
        free_port=free_port,
        logged=nullcontext,
        folder=lambda: ServiceFolder(cache_folder() / "services"),
    )


def _user(folder: Folder) -> User | None:
    return None if folder.owner is None else User(*folder.owner)


@contextmanager
def _own_database(service: DatabaseService, kind: DatabaseKind, url: str, needed: Needed) -> Iterator[RunningDatabase]:
    """A database of weir's own on the user's server, made anew and removed in the end."""
    login = address_of_url(service.own_server, url, kind)
    address = login.at(f"{DATABASE}_{os.getpid()}_{secrets.token_hex(4)}")
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
