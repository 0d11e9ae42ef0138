"""Runs a study on another node: starts weir there, close to the stacks and services, and fetches the results.

Builds, services, the observer and the run file must be close to the stack. So weir itself runs on the stack's node,
where it must be installed. Agents on the other nodes generate the loads.
"""

import io
import os
import platform
import shlex
import shutil
import signal
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from weir.cluster.agent import archive_folder, copy_database, find_weir, get_ray_variables, write_file
from weir.cluster.agents import AgentHandle, AgentLostError, RemoteProcess, start_agents
from weir.cluster.archive import MOST_BYTES, SENT_WITHIN_S, pack_files, pack_folder, require_room
from weir.cluster.ray_cluster import EXTRA, RayCluster
from weir.engine_process import Engine
from weir.model.errors import TargetError, UsageError, WeirError
from weir.model.variables import Variable
from weir.paths import find_cache_folder
from weir.stacks.build import IGNORED, MARKER
from weir.store import RUN_FILE_NAME, away

_RUN = "run"
_COPIED_EVERY_S = 60.0
"""Minimum time between two copies of a growing run file."""

OnLine = Callable[[str], bool]
"""Takes a line of the remote weir's output. Returns whether the line reports a finished trial."""
OnBegin = Callable[[Engine], None]
Keep = Callable[[Path], object]
"""Takes the path of a copy of the run file. The function may move the copy."""


def run_remotely(
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
    """Runs a study on the node for stacks and returns the exit code. `out` becomes a run folder like that of a local
    run. During the run, the run file in `out` lacks only trials of about the last minute.

    Args:
        study: name of the study, or its path in `files`.
        out: the run folder, which must not exist.
        files: the study's file and the files that the study names, by their paths in one folder.
        built: cache folders with built stacks. A node of the same kind gets the builds that it lacks.
        flags: options for the load's agents. A user who resumes the run must give the same options.
        on_line: called with each line of the remote weir.
        on_begin: called with the remote weir. To end the run early, the caller closes the input of the remote weir.

    Raises UsageError if weir is missing on the node, `out` exists or is not writable, or a file is unreadable or too
    large. Raises TargetError if another job uses the node or a signal ended weir there, AgentLostError for a lost node.
    """
    # Creates the folder before the run. An error after the run would cost hours.
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"--out: {out}: found an existing file or folder, expected a new name") from None
    except OSError as error:
        raise UsageError(f"--out: {out}: cannot be created: {error.strerror}") from None
    try:
        with start_agents(cluster, "stack", 1) as (node,):
            there = _Weir(cluster, node, flags)
            send_builds(node, built)
            path = f"{node.send_archive(pack_files(files, study))}/{study}" if files else study
            argv = [path, *words, "--out", there.run_folder]
            code = there.run(argv, out, on_line, on_begin, lambda copy: copy.replace(out / RUN_FILE_NAME))
            with there.collected(out.parent) as made:
                if made is not None:
                    _move_files(made, out)
                    # The run may have ended before it created a run file.
                    with suppress(FileNotFoundError):
                        (made / RUN_FILE_NAME).replace(out / RUN_FILE_NAME)
    finally:
        # Removes the folder only if it is empty.
        with suppress(OSError):
            out.rmdir()
    return there.ended_with(code, out)


def resume_remotely(
    cluster: RayCluster,
    path: Path,
    words: Sequence[str],
    *,
    flags: Sequence[str] = (),
    on_line: OnLine,
    on_begin: OnBegin = lambda _: None,
) -> int:
    """Resumes a run on the node for stacks and returns the exit code. See `run_remotely` for arguments and errors.

    Sends only the run file, because resuming reads nothing else. Finished trials arrive in the local file at most once
    a minute, and the remaining trials in one transaction at the end. Raises UsageError if `path` is no run file,
    TargetError if the result belongs to another run.
    """
    with away(path) as run:
        require_room(str(path), len(run.content))
        with start_agents(cluster, "stack", 1) as (node,):
            there = _Weir(cluster, node, flags)
            node.apply(write_file, f"{there.run_folder}/{RUN_FILE_NAME}", run.content, timeout_s=SENT_WITHIN_S)
            code = there.run(["--resume", there.run_folder, *words], path.parent, on_line, on_begin, run.take_back)
            with there.collected(path.parent) as made:
                if made is None:
                    found = f"found no result from {node.name}"
                    raise TargetError(f"{path}: {found}, expected a run file; the local file is unchanged")
                _move_files(made, path.parent)
                run.take_back(made / RUN_FILE_NAME)
    return there.ended_with(code, path.parent)


class _Weir:
    """weir on a node, with a folder for a run. Raises UsageError if weir is not installed on the node."""

    def __init__(self, cluster: RayCluster, node: AgentHandle, flags: Sequence[str]) -> None:
        self._on_cluster = ["--cluster", cluster.address, *flags]
        self._node = node
        self._program = node.apply(find_weir)
        if self._program is None:
            raise UsageError(f"{node.name}: found no weir, expected weir on the node that runs the stacks", hint=EXTRA)
        self._folder = node.apply(mkdtemp, None, "weir-")
        self.run_folder = f"{self._folder}/{_RUN}"
        self._copied_to: Path | None = None

    def run(self, words: Sequence[str], here: Path, on_line: OnLine, on_begin: OnBegin, keep: Keep) -> int:
        """Runs `weir run` and returns its exit code. `on_line` gets the lines of output. In these lines, `here`
        replaces the folder on the node. `keep` stores copies of the run file."""
        # This machine prints the report from the run file.
        argv = ["sh", "-c", 'exec "$0" "$@" 2>&1 >/dev/null', self._program, "run", *words]
        argv += [*self._on_cluster, "--stacks-here", "--driven"]
        ended = threading.Event()
        copies = _Copies(self._node, f"{self.run_folder}/{RUN_FILE_NAME}", here, keep)

        def take_line(line: bytes) -> None:
            if on_line(line.decode("utf-8", "replace").rstrip().replace(self.run_folder, str(here))):
                copies.make_one()

        # weir needs Ray's variables, because it joins the cluster, unlike an engine.
        environment = {**self._node.apply(get_ray_variables), **_send_own_stacks(self._node)}
        process = RemoteProcess(self._node, argv, take_line, ended.set, environment)
        on_begin(process)
        try:
            _await(ended)
        except KeyboardInterrupt:
            # weir keeps the finished trials and ends. Ray's workers and their children ignore the signal of Ctrl-C.
            process.signal(signal.SIGTERM)
            _await(ended)
        finally:
            copies.close()
        self._copied_to = here if copies.made else None
        if process.exit_code is None:
            raise self._lost()
        return process.exit_code

    @contextmanager
    def collected(self, beside: Path) -> Iterator[Path | None]:
        """Yields a temporary copy of the run folder in the folder `beside`; None if the node has no run. After the
        `with` block, deletes the run on the node. After an error, keeps it, because no other complete copy exists yet.
        Raises UsageError if this machine cannot write a file."""
        try:
            archive: bytes = self._node.apply(archive_folder, self._folder, timeout_s=SENT_WITHIN_S)
        except AgentLostError:
            raise self._lost() from None
        try:
            with TemporaryDirectory(dir=beside, prefix=".weir-") as folder:
                with tarfile.open(fileobj=io.BytesIO(archive)) as found:
                    found.extractall(folder, filter="data")
                made = Path(folder, _RUN)
                yield made if made.is_dir() else None
        except OSError as error:
            where = f"copy the result from {self.run_folder} on {self._node.name}"
            message = f"{error.filename2 or error.filename or beside}: cannot be written: {error.strerror}"
            raise UsageError(message, hint=where) from None
        with suppress(WeirError):
            self._node.apply(shutil.rmtree, self._folder, True, timeout_s=SENT_WITHIN_S)

    def ended_with(self, code: int, here: Path) -> int:
        """Returns weir's exit code. Raises TargetError if a signal ended weir. `here` is the local run folder."""
        if code < 0:
            how = f"signal {-code} ended weir; the run file keeps the finished trials"
            raise TargetError(f"{self._node.name}: {how}", hint=self._again(here))
        return code

    def _again(self, here: Path) -> str:
        return shlex.join(["weir", "run", "--resume", str(here), *self._on_cluster])

    def _lost(self) -> AgentLostError:
        where = f"finished trials are in {self.run_folder} on {self._node.name}, if that machine still exists"
        if self._copied_to is not None:
            copied = f"{self._again(self._copied_to)} continues after the trials that this machine received"
            where = f"{copied}; other {where}"
        return AgentLostError(self._node.error().message, hint=where)


class _Copies:
    """Copies a growing run file from a node, so that the loss of the node does not cost hours. weir copies the file at
    the start of a trial: during the trial's load, a copy would disturb."""

    def __init__(self, node: AgentHandle, path: str, here: Path, keep: Keep) -> None:
        self._node, self._path = node, path
        self._here, self._keep = here, keep
        self._due_at = 0.0
        self._thread: threading.Thread | None = None
        self.made = False
        """Whether this machine has a copy."""

    def make_one(self) -> None:
        """Starts to copy the run file in the background, unless the last copy is recent. Returns at once."""
        now = time.monotonic()
        if now >= self._due_at and (self._thread is None or not self._thread.is_alive()):
            self._due_at = now + _COPIED_EVERY_S
            self._thread = threading.Thread(target=self._make, name="copy of the run file", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Waits for a copy in progress."""
        if self._thread is not None:
            self._thread.join()

    def _make(self) -> None:
        # These errors do not matter: the final copy at the end reports them.
        with suppress(WeirError, OSError):
            content = self._node.apply(copy_database, self._path, MOST_BYTES, timeout_s=SENT_WITHIN_S)
            if content is not None:
                with TemporaryDirectory(dir=self._here, prefix=".weir-") as folder:
                    copy = Path(folder, RUN_FILE_NAME)
                    copy.write_bytes(content)
                    self._keep(copy)
                self.made = True


def _move_files(made: Path, here: Path) -> None:
    """Moves all files except the run file. The run file comes last, because logs without trials do no harm."""
    for file in [found for found in made.rglob("*") if found.is_file() and found != made / RUN_FILE_NAME]:
        target = here / file.relative_to(made)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)


def _await(ended: threading.Event) -> None:
    # Waits in steps: a wait without a timeout would delay Ctrl-C.
    while not ended.wait(1.0):
        pass


def send_builds(node: AgentHandle, built: Sequence[Path]) -> None:
    """Sends built stacks to the same paths on a node of the same kind. If that fails, the node builds the stacks."""
    # A build may contain its own path, and depends on architecture and libc.
    here = (platform.machine(), " ".join(platform.libc_ver()), str(find_cache_folder()))
    if not built or (node.facts["architecture"], node.facts["libc"], node.facts["cache"]) != here:
        return
    for folder in built:
        if not node.apply(os.path.isfile, str(folder / MARKER)):
            # The build is too large, or another process deletes the build.
            with suppress(UsageError):
                node.put_archive(pack_folder(folder, str(folder), keep_times=True), folder)


def _send_own_stacks(node: AgentHandle) -> dict[str, str]:
    """Sends the user's own stacks. Returns the environment variable with the stacks' folders on the node."""
    folders = os.environ.get(Variable.STACKS, "")
    if not folders:
        return {}
    there = [
        node.send_archive(pack_folder(Path(folder), f"{Variable.STACKS}: {folder}", leave_out=IGNORED))
        for folder in folders.split(os.pathsep)
    ]
    return {Variable.STACKS: os.pathsep.join(there)}
