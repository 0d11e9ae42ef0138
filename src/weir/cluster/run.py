"""A run on another node: weir runs there, beside its stacks and services, and what it has made comes back.

Everything of a run is close to the stack: what builds it, its services, the observer, the run file. So weir itself goes there, where it
has to be installed, and has its loads made by agents on the other nodes.
"""

import io
import os
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.cluster.members import AgentLostError, Member, members
from weir.cluster.ray_cluster import EXTRA, RayCluster
from weir.cluster.travel import SENT_WITHIN_S, require_room
from weir.engine_process import Engine
from weir.model.errors import TargetError, UsageError, WeirError
from weir.model.variables import Variable
from weir.store import RUN_FILE_NAME, away

_RUN = "run"

OnLine = Callable[[str], None]
OnBegin = Callable[[Engine], None]


def run_there(
    cluster: RayCluster,
    study: str,
    words: Sequence[str],
    out: Path,
    *,
    files: Mapping[str, Path],
    on_line: OnLine,
    on_begin: OnBegin = lambda _: None,
) -> int:
    """Runs a study on the node for stacks, and gives the exit code. The run folder is at `out` then, as if it had been made here.

    Args:
        cluster: where.
        study: its name, or its path among the files.
        words: options of `weir run`.
        out: the run folder; it must not exist.
        files: what goes along, by its path in one folder: the study's file and those that it names.
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
            there = _Weir(cluster, node)
            code = there.run([_there(node, study, files), *words, "--out", there.run_folder], out, on_line, on_begin)
            with there.collected() as archive, _unpacked(archive, out.parent) as made:
                if made is not None:
                    made.rename(out)
    finally:
        # Nothing came into it.
        with suppress(OSError):
            out.rmdir()
    return _ended_with(code, node, out)


def resume_there(cluster: RayCluster, path: Path, words: Sequence[str], *, on_line: OnLine, on_begin: OnBegin = lambda _: None) -> int:
    """Goes on with a run on the node for stacks, and gives the exit code. What was made there is in its folder here then.

    Of the folder the run file goes along: it is all that resuming reads. It changes here at the very end, in one transaction.

    Args:
        cluster: where.
        path: the run file.
        words: options of `weir run`.
        on_line: called with what weir says there.
        on_begin: called with it when it runs; it ends in order when its input closes.

    Raises:
        UsageError: not a run file, too large a one, or weir is not installed there.
        TargetError: the node is taken, weir was killed there, or what came back is not the run.
        AgentLostError: it is gone; nothing has changed here.
    """
    with away(path) as run:
        require_room(str(path), len(run.content))
        with members(cluster, "stack", 1) as (node,):
            there = _Weir(cluster, node)
            node.call("write_file", f"{there.run_folder}/{RUN_FILE_NAME}", run.content, timeout_s=SENT_WITHIN_S)
            code = there.run(["--resume", there.run_folder, *words], path.parent, on_line, on_begin)
            with there.collected() as archive, _unpacked(archive, path.parent) as made:
                if made is None:
                    raise TargetError(f"{path}: nothing came back from {node.name}, expected the run; it stays as it was")
                # First: nobody looks for the logs of trials that the run file does not know.
                for log in [found for found in (made / "logs").rglob("*") if found.is_file()]:
                    target = path.parent / log.relative_to(made)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    log.replace(target)
                run.take_back(made / RUN_FILE_NAME)
    return _ended_with(code, node, path.parent)


def _ended_with(code: int, node: Member, run: Path) -> int:
    """The exit code of weir there."""
    if code < 0:
        raise TargetError(
            f"{node.name}: weir ended by signal {-code}; what was finished is kept", hint=f"weir run --resume {run} --cluster …"
        )
    return code


class _Weir:
    """weir on a node, with a folder for a run.

    Raises:
        UsageError: it is not installed there.
    """

    def __init__(self, cluster: RayCluster, node: Member) -> None:
        self._cluster = cluster
        self._node = node
        self._program = node.call("weir")
        if self._program is None:
            raise UsageError(f"{node.name}: weir is not installed there, expected it where stacks run", hint=EXTRA)
        self._folder = node.call("new_folder")
        self.run_folder = f"{self._folder}/{_RUN}"

    def run(self, words: Sequence[str], here: Path, on_line: OnLine, on_begin: OnBegin) -> int:
        """`weir run` with these words; what it says of its run folder is said of the one here."""
        # What it prints is printed here, from the run file.
        argv = ["sh", "-c", 'exec "$0" "$@" 2>&1 >/dev/null', self._program, "run", *words]
        argv += ["--cluster", self._cluster.address, "--stacks-here", "--driven"]
        ended = threading.Event()

        def heard(line: bytes) -> None:
            on_line(line.decode("utf-8", "replace").rstrip().replace(self.run_folder, str(here)))

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
            raise UsageError(f"{error.filename}: cannot be written: {error.strerror}", hint=where) from None
        with suppress(WeirError):
            self._node.call("remove", self._folder, timeout_s=SENT_WITHIN_S)

    def _lost(self) -> AgentLostError:
        where = f"what was finished there is in {self.run_folder} on {self._node.name}, if that is still there"
        return AgentLostError(self._node.error().message, hint=where)


@contextmanager
def _unpacked(archive: bytes, beside: Path) -> Iterator[Path | None]:
    """The run folder of an archive, for a while in this folder; None: there is none in it."""
    with TemporaryDirectory(dir=beside, prefix=".weir-") as folder, tarfile.open(fileobj=io.BytesIO(archive)) as found:
        found.extractall(folder, filter="data")
        made = Path(folder, _RUN)
        yield made if made.is_dir() else None


def _await(ended: threading.Event) -> None:
    # In pieces: a wait without an end would keep Ctrl-C waiting.
    while not ended.wait(1.0):
        pass


def _there(node: Member, study: str, files: Mapping[str, Path]) -> str:
    """What the study is called there."""
    return f"{node.keep_files(files, study)}/{study}" if files else study


def _own_stacks(node: Member) -> dict[str, str]:
    """The variable that names the user's stacks, with where they lie there; they go along."""
    folders = os.environ.get(Variable.STACKS, "")
    if not folders:
        return {}
    there = [node.keep_folder(Path(folder), f"{Variable.STACKS}: {folder}") for folder in folders.split(os.pathsep)]
    return {Variable.STACKS: os.pathsep.join(there)}
