"""A run on another node: weir runs there, beside its stacks and services, and what it has made comes back.

Everything of a run is close to the stack: what builds it, its services, the observer, the run file. So weir itself goes there, where it
has to be installed, and has its loads made by agents on the other nodes.
"""

import io
import os
import platform
import shlex
import signal
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.cluster.members import AgentLostError, Member, members
from weir.cluster.ray_cluster import EXTRA, RayCluster
from weir.cluster.travel import MOST_BYTES, SENT_WITHIN_S, require_room
from weir.engine_process import Engine
from weir.model.errors import TargetError, UsageError, WeirError
from weir.model.variables import Variable
from weir.places import cache_folder
from weir.stacks.build import LEFT_OUT, MARKER
from weir.store import RUN_FILE_NAME, away

_RUN = "run"
_COPIED_EVERY_S = 60.0
"""The time between two copies of a run file that grows elsewhere, at least."""

OnLine = Callable[[str], bool]
"""Takes a line that weir says there; gives whether it says that a trial was finished."""
OnBegin = Callable[[Engine], None]
Keep = Callable[[Path], object]
"""Takes a copy of the run file, which may be moved."""


def run_there(
    cluster: RayCluster,
    study: str,
    words: Sequence[str],
    out: Path,
    *,
    files: Mapping[str, Path],
    built: Sequence[Path] = (),
    flags: Sequence[str] = (),
    on_line: OnLine,
    on_begin: OnBegin = lambda _: None,
) -> int:
    """Runs a study on the node for stacks, and gives the exit code. The run folder is at `out` then, as if it had been made here. Before
    that its run file is there with the trials that were finished about a minute ago.

    Args:
        cluster: where.
        study: its name, or its path among the files.
        words: options of `weir run`.
        out: the run folder; it must not exist.
        files: what goes along, by its path in one folder: the study's file and those that it names.
        built: folders of the cache that have its stacks built. They go along to a machine of this kind that has them not.
        flags: those that say what of the cluster makes the loads, which resuming takes as well.
        on_line: called with what weir says there.
        on_begin: called with it when it runs; it ends in order when its input closes.

    Raises:
        UsageError: weir is not installed there, the folder exists or cannot be written, or a file cannot be read or is too large to travel.
        TargetError: the node is taken, or weir was killed there.
        AgentLostError: it is gone.
    """
    # From now on it is this run's: what comes back after hours has its place.
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"--out: {out}: found something there, expected nothing") from None
    except OSError as error:
        raise UsageError(f"--out: {out}: cannot be made: {error.strerror}") from None
    try:
        with members(cluster, "stack", 1) as (node,):
            there = _Weir(cluster, node, flags)
            send_built(node, built)
            argv = [_there(node, study, files), *words, "--out", there.run_folder]
            code = there.run(argv, out, on_line, on_begin, lambda copy: copy.replace(out / RUN_FILE_NAME))
            with there.collected() as archive, _unpacked(archive, out.parent) as made:
                if made is not None:
                    _move_files(made, out)
                    # It may have ended before there was one.
                    with suppress(FileNotFoundError):
                        (made / RUN_FILE_NAME).replace(out / RUN_FILE_NAME)
    finally:
        # Nothing came into it.
        with suppress(OSError):
            out.rmdir()
    return there.ended_with(code, out)


def resume_there(
    cluster: RayCluster,
    path: Path,
    words: Sequence[str],
    *,
    flags: Sequence[str] = (),
    on_line: OnLine,
    on_begin: OnBegin = lambda _: None,
) -> int:
    """Goes on with a run on the node for stacks, and gives the exit code. What was made there is in its folder here then.

    Of the folder the run file goes along: it is all that resuming reads. Here it changes in one transaction, at the end, and before that
    once a minute at most, by trials that were finished.

    Args:
        cluster: where.
        path: the run file.
        words: options of `weir run`.
        flags: those that say what of the cluster makes the loads.
        on_line: called with what weir says there.
        on_begin: called with it when it runs; it ends in order when its input closes.

    Raises:
        UsageError: not a run file, too large a one, or weir is not installed there.
        TargetError: the node is taken, weir was killed there, or what came back is not the run.
        AgentLostError: it is gone.
    """
    with away(path) as run:
        require_room(str(path), len(run.content))
        with members(cluster, "stack", 1) as (node,):
            there = _Weir(cluster, node, flags)
            node.call("write_file", f"{there.run_folder}/{RUN_FILE_NAME}", run.content, timeout_s=SENT_WITHIN_S)
            code = there.run(["--resume", there.run_folder, *words], path.parent, on_line, on_begin, run.take_back)
            with there.collected() as archive, _unpacked(archive, path.parent) as made:
                if made is None:
                    raise TargetError(f"{path}: nothing came back from {node.name}, expected the run; it stays as it was")
                _move_files(made, path.parent)
                run.take_back(made / RUN_FILE_NAME)
    return there.ended_with(code, path.parent)


class _Weir:
    """weir on a node, with a folder for a run.

    Raises:
        UsageError: it is not installed there.
    """

    def __init__(self, cluster: RayCluster, node: Member, flags: Sequence[str]) -> None:
        self._on_cluster = ["--cluster", cluster.address, *flags]
        self._node = node
        self._program = node.call("weir")
        if self._program is None:
            raise UsageError(f"{node.name}: weir is not installed there, expected it where stacks run", hint=EXTRA)
        self._folder = node.call("new_folder")
        self.run_folder = f"{self._folder}/{_RUN}"
        self._copied_to: Path | None = None

    def run(self, words: Sequence[str], here: Path, on_line: OnLine, on_begin: OnBegin, keep: Keep) -> int:
        """`weir run` with these words; what it says of its run folder is said of the one here, where `keep` puts its run file meanwhile."""
        # What it prints is printed here, from the run file.
        argv = ["sh", "-c", 'exec "$0" "$@" 2>&1 >/dev/null', self._program, "run", *words]
        argv += [*self._on_cluster, "--stacks-here", "--driven"]
        ended = threading.Event()
        copies = _Copies(self._node, f"{self.run_folder}/{RUN_FILE_NAME}", here, keep)

        def heard(line: bytes) -> None:
            if on_line(line.decode("utf-8", "replace").rstrip().replace(self.run_folder, str(here))):
                copies.make_one()

        # It joins the cluster too, unlike an engine.
        environment = {**self._node.call("joining"), **_own_stacks(self._node)}
        process = self._node.start_process(argv, environment, on_line=heard, on_end=ended.set)
        on_begin(process)
        try:
            _await(ended)
        except KeyboardInterrupt:
            # It ends with what was finished. What Ctrl-C sends is ignored by Ray's workers, and so by what they start.
            process.signal(signal.SIGTERM)
            _await(ended)
        finally:
            copies.close()
        self._copied_to = here if copies.made else None
        if process.exit_code is None:
            raise self._lost()
        return process.exit_code

    @contextmanager
    def collected(self) -> Iterator[bytes]:
        """What it has made, in an archive. It is gone there once the context has ended well: until then nobody else has it.

        Raises:
            UsageError: within the context something could not be written here.
        """
        try:
            archive: bytes = self._node.call("collected", self._folder, timeout_s=SENT_WITHIN_S)
        except AgentLostError:
            raise self._lost() from None
        try:
            yield archive
        except OSError as error:
            where = f"what was made is in {self.run_folder} on {self._node.name}"
            raise UsageError(f"{error.filename2 or error.filename}: cannot be written: {error.strerror}", hint=where) from None
        with suppress(WeirError):
            self._node.call("remove", self._folder, timeout_s=SENT_WITHIN_S)

    def ended_with(self, code: int, here: Path) -> int:
        """Its exit code, where it ended by itself. `here` is the run folder."""
        if code < 0:
            raise TargetError(f"{self._node.name}: weir ended by signal {-code}; what was finished is kept", hint=self._again(here))
        return code

    def _again(self, here: Path) -> str:
        return shlex.join(["weir", "run", "--resume", str(here), *self._on_cluster])

    def _lost(self) -> AgentLostError:
        where = f"what was finished there is in {self.run_folder} on {self._node.name}, if that is still there"
        if self._copied_to is not None:
            where = f"{self._again(self._copied_to)} goes on with what had come back; {where}"
        return AgentLostError(self._node.error().message, hint=where)


class _Copies:
    """Copies of a run file that grows on a node, so that a node that is lost does not take hours with it.

    Each is made while the next trial begins to start, long before its load.
    """

    def __init__(self, node: Member, path: str, here: Path, keep: Keep) -> None:
        self._node = node
        self._path = path
        self._here = here
        self._keep = keep
        self._due_at = 0.0
        self._thread: threading.Thread | None = None
        self.made = False
        """Whether there is one."""

    def make_one(self) -> None:
        """Makes one, unless the last one is young. Returns at once."""
        now = time.monotonic()
        if now >= self._due_at and (self._thread is None or not self._thread.is_alive()):
            self._due_at = now + _COPIED_EVERY_S
            self._thread = threading.Thread(target=self._make, name="copy of the run file", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Waits for the one that is being made."""
        if self._thread is not None:
            self._thread.join()

    def _make(self) -> None:
        # What is to be kept in the end is collected in the end, and says what is wrong then.
        with suppress(WeirError, OSError):
            content = self._node.call("database", self._path, MOST_BYTES, timeout_s=SENT_WITHIN_S)
            if content is not None:
                with TemporaryDirectory(dir=self._here, prefix=".weir-") as folder:
                    copy = Path(folder, RUN_FILE_NAME)
                    copy.write_bytes(content)
                    self._keep(copy)
                self.made = True


@contextmanager
def _unpacked(archive: bytes, beside: Path) -> Iterator[Path | None]:
    """The run folder of an archive, for a while in this folder; None: there is none in it."""
    with TemporaryDirectory(dir=beside, prefix=".weir-") as folder, tarfile.open(fileobj=io.BytesIO(archive)) as found:
        found.extractall(folder, filter="data")
        made = Path(folder, _RUN)
        yield made if made.is_dir() else None


def _move_files(made: Path, here: Path) -> None:
    """Everything but the run file: it comes last, since nobody looks for the logs of trials that it does not know."""
    for file in [found for found in made.rglob("*") if found.is_file() and found != made / RUN_FILE_NAME]:
        target = here / file.relative_to(made)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)


def _await(ended: threading.Event) -> None:
    # In pieces: a wait without an end would keep Ctrl-C waiting.
    while not ended.wait(1.0):
        pass


def _there(node: Member, study: str, files: Mapping[str, Path]) -> str:
    """What the study is called there."""
    return f"{node.keep_files(files, study)}/{study}" if files else study


def send_built(node: Member, built: Sequence[Path]) -> None:
    """Has what was built here at the same places there. Where that cannot be it is built there, as it would be without."""
    # A build may name its own path, and programs that it was made for.
    here = (platform.machine(), " ".join(platform.libc_ver()), str(cache_folder()))
    if not built or (node.facts["architecture"], node.facts["libc"], node.facts["cache"]) != here:
        return
    for folder in built:
        if not node.call("is_file", str(folder / MARKER)):
            # Too large to travel, or being removed.
            with suppress(UsageError):
                node.put_folder(folder, str(folder))


def _own_stacks(node: Member) -> dict[str, str]:
    """The variable that names the user's stacks, with where they lie there; they go along."""
    folders = os.environ.get(Variable.STACKS, "")
    if not folders:
        return {}
    there = [node.keep_folder(Path(folder), f"{Variable.STACKS}: {folder}", leave_out=LEFT_OUT) for folder in folders.split(os.pathsep)]
    return {Variable.STACKS: os.pathsep.join(there)}
