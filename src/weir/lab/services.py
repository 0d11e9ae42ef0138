"""The services of a run: fetched and filled once, then a fresh copy of each, with its server, for every trial.

A copy of a folder is as exact a reset as there is. A server of the user's own gets a fresh database instead.
"""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from weir.lab.host import Host, User
from weir.lab.stack import free_port
from weir.model.errors import TargetError, UsageError
from weir.model.records import LoadSummary
from weir.model.run import Limits, Placement
from weir.model.work import ServiceWork
from weir.places import cache_folder
from weir.services.counters import Counters, work_between
from weir.services.database import Address, DatabaseKind, Session, address_of_url
from weir.services.dataset import read_dataset
from weir.services.kinds import kind_of
from weir.services.manifest import Service, read_service
from weir.services.package import fetched
from weir.stacks.external import ExternalStack
from weir.stacks.invariant import Invariant
from weir.stacks.manifest import Needed, Stack
from weir.stacks.workload import Workload
from weir.study.study import PlannedCell

DATABASE = "weir"
"""The database of a trial."""
_STACK_LOGIN = "app"
_UNPRIVILEGED = "nobody"
_READY_S = 30.0
_READY_PAUSE_S = 0.01
_STOP_GRACE_S = 10.0
_FOLDER_PREFIX = "weir-services-"
_BEING_MADE_S = 60.0


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service that answers, with a fresh dataset in it."""

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
class RunningServices:
    """The services of one trial."""

    services: tuple[RunningService, ...]

    @property
    def fields(self) -> dict[str, str]:
        """What the stack's manifest may ask for: `postgres.url` and so on."""
        return {
            f"{one.id}.{field}": value
            for one in self.services
            for field, value in one.address.fields(one.kind.scheme).items()
        }  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The processes that weir started for them."""
        return tuple(one.id for one in self.services if one.started)

    def read(self, workload: Workload) -> "Readings":
        """What the invariants' queries give, and then what each service has counted so far."""
        return Readings(self.values(workload), self.counters())

    def counters(self) -> dict[str, Counters]:
        """What each has counted so far."""
        return {one.id: one.session.counters(one.address.database) for one in self.services}

    def work_since(self, before: "Readings", summary: LoadSummary) -> tuple[ServiceWork, ...]:
        """What each did since `before` was read."""
        return tuple(work_between(name, before.counters[name], after, summary) for name, after in self.counters().items())

    def values(self, workload: Workload) -> dict[str, int]:
        """What the queries of the workload's invariants give, by the invariant's name."""
        holder = next((one for one in self.services if one.dataset == workload.dataset), None)
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


def services_of(stack: Stack | ExternalStack) -> Mapping[str, Needed]:
    """What a stack needs. An external one has what it needs already."""
    return {} if isinstance(stack, ExternalStack) else stack.manifest.services


def started_services(stacks: Iterable[Stack | ExternalStack]) -> list[str]:
    """The services of some stacks that weir starts a server for: those that have no server of the user's own."""
    names = {name for stack in stacks for name in services_of(stack)}
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
        self._folder: _Folder | None = None
        self._prepared: dict[tuple[str, str | None], _Prepared] = {}
        self._copies = 0

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
        stack, workload, needs = planned.stack, planned.workload, services_of(planned.stack)
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
        with ExitStack() as opened:
            yield RunningServices(
                tuple(
                    opened.enter_context(self._running(name, needed, _Room.of(name, placement), log_of(name)))
                    for name, needed in needs.items()
                )
            )

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
    def _running(self, name: str, needed: Needed, room: "_Room", log: Path) -> Iterator[RunningService]:
        service, kind = read_service(name), kind_of(name)
        url = service.own_url
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
                yield RunningService(name, kind, stack_login, session, needed.dataset, started=True)
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _prepare(self, service: Service, kind: DatabaseKind, needed: Needed, room: "_Room") -> "_Prepared":
        """A data folder with the dataset in it, whose server was stopped in order."""
        key = service.id, needed.dataset
        if key not in self._prepared:
            programs = fetched(service, on_fetch=lambda what: self._on_step(f"fetching {service.title}: {what}"))
            if self._folder is None:
                self._folder = _Folder()
            programs = self._folder.programs(service.id, programs)
            self._on_step(f"filling {service.title} with {needed.dataset or 'nothing'}")
            scratch = self._folder.path / f"{service.id}-scratch"
            scratch.mkdir(mode=0o755, exist_ok=True)
            log = scratch / "log"
            data = self._folder.data(f"{service.id}-{needed.dataset or 'empty'}")
            ended = self._host.run(
                service.id,
                kind.make(programs, data, scratch),
                cwd=self._folder.path,
                env=_environment(),
                log=log,
                cpus=room.cpus,
                user=self._folder.user,
            )
            if ended.exit_code != 0:
                raise TargetError("\n  ".join([f"{service.id}: making its data folder ended {ended.how}", *_tail(log)]))
            prepared = _Prepared(service, kind, programs, data)
            with self._served(prepared, service.settings, room, log) as (session, admin):
                login = Address(admin.host, admin.port, _STACK_LOGIN, _STACK_LOGIN, DATABASE)
                session.create(DATABASE, login)
                if needed.dataset is not None:
                    kind.fill(login, read_dataset(needed.dataset))
            self._prepared[key] = prepared
        return self._prepared[key]

    def _copy(self, filled: Path) -> Path:
        self._copies += 1
        data = filled.with_name(f"{filled.name}-{self._copies}")
        # With owners and holes, and sharing the blocks where the file system can.
        done = subprocess.run(["cp", "-a", "--reflink=auto", filled, data], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TargetError(
                f"{filled}: cannot be copied: {done.stderr.strip().splitlines()[-1:]}", hint="check the space left on the disk"
            )
        return data

    @contextmanager
    def _served(self, prepared: "_Prepared", settings: Mapping[str, str], room: "_Room", log: Path) -> Iterator[tuple[Session, Address]]:
        """A server of a data folder: weir's own connection to it, and as whom."""
        assert self._folder is not None
        name, admin = prepared.service.id, prepared.kind.admin(free_port())
        log.parent.mkdir(parents=True, exist_ok=True)
        self._host.start(
            name,
            prepared.kind.serve(prepared.programs, prepared.data, admin.port, settings),
            tier=name,
            cwd=prepared.data,
            env=_environment(),
            log=log,
            cpus=room.cpus,
            user=self._folder.user,
            limits=room.limits,
        )
        try:
            session = self._connected(prepared.service, prepared.kind, admin, log)
            try:
                yield session, admin
            finally:
                session.close()
        finally:
            self._host.stop(name, grace_s=_STOP_GRACE_S)

    def _connected(self, service: Service, kind: DatabaseKind, address: Address, log: Path) -> Session:
        deadline = time.monotonic() + _READY_S
        while True:
            ended = self._host.ended(service.id)
            if ended is not None:
                raise TargetError("\n  ".join([f"{service.id}: it ended {ended.how} before it was ready; log: {log}", *_tail(log)]))
            try:
                return kind.session(address)
            except TargetError as error:
                if time.monotonic() > deadline:
                    raise TargetError(f"{service.id}: not ready within {_READY_S:g} s: {error.message}; log: {log}") from None
            # A server does not say when it begins to listen.
            time.sleep(_READY_PAUSE_S)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A data folder and what serves it."""

    service: Service
    kind: DatabaseKind
    programs: Path
    data: Path


@dataclass(frozen=True, slots=True)
class _Room:
    """What a server may use: the services' CPUs, or the stack's where they have none of their own, and the limits of its tier."""

    cpus: tuple[int, ...]
    limits: Limits | None

    @classmethod
    def of(cls, name: str, placement: Placement) -> "_Room":
        """That of the service of this name."""
        return cls(placement.services or placement.stack, placement.limits.get(name))


class _Folder:
    """Where the copies lie: in the cache folder, or, where an unprivileged server could not get there, beside other temporary files.

    Held by a lock, so that a later weir can tell it from what a killed one left, which it removes.
    """

    def __init__(self) -> None:
        self.user = _unprivileged() if os.geteuid() == 0 else None
        parent = cache_folder() / "services"
        parent.mkdir(parents=True, exist_ok=True)
        if self.user is not None and not _others_may_enter(parent):
            parent = Path(tempfile.gettempdir())
        remove_left_over(parent)
        self.path = Path(tempfile.mkdtemp(dir=parent, prefix=_FOLDER_PREFIX))
        self.path.chmod(0o711)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def programs(self, name: str, fetched_to: Path) -> Path:
        """The programs, where the server may read them."""
        if self.user is None or _others_may_enter(fetched_to):
            return fetched_to
        copy = self.path / f"{name}-programs"
        if not copy.exists():
            shutil.copytree(fetched_to, copy, symlinks=True, copy_function=_link_or_copy)
        return copy

    def data(self, name: str) -> Path:
        """A new folder that the server owns."""
        path = self.path / name
        path.mkdir(mode=0o700)
        if self.user is not None:
            os.chown(path, self.user.uid, self.user.gid)
        return path

    def remove(self) -> None:
        """Removes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _unprivileged() -> User:
    """Whom a database runs as where weir is root, as which databases refuse to run. `initdb` wants a user with a name."""
    nobody = pwd.getpwnam(_UNPRIVILEGED)
    return User(nobody.pw_uid, nobody.pw_gid)


def remove_left_over(parent: Path) -> None:
    """Removes the folders of weirs that were killed: those whose lock nobody holds, and that are not just being made."""
    for path in parent.glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < _BEING_MADE_S:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _link_or_copy(source: str, target: str) -> None:
    """A second name for a file where the file system is the same: MariaDB's program alone has 300 MB."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _others_may_enter(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


@contextmanager
def _own_database(service: Service, kind: DatabaseKind, url: str, needed: Needed) -> Iterator[RunningService]:
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
            yield RunningService(service.id, kind, address, session, needed.dataset, started=False)
        finally:
            session.drop(address.database)
    finally:
        session.close()


def _value(service: RunningService, invariant: Invariant, name: str) -> int:
    try:
        return service.kind.value(service.address, invariant.sql)
    except TargetError as error:
        raise TargetError(f"invariant {name}: {error.message}") from None


def _environment() -> dict[str, str]:
    """What a database is given: nothing of the user's that could tune it."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent", "TZ": "UTC"}


def _tail(log: Path) -> list[str]:
    with suppress(OSError):
        return log.read_text(errors="replace").strip().splitlines()[-5:]
    return []
