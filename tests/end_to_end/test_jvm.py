"""Tests a stack on a JVM: the run file has the collector's pauses during the load, and the named threads' work."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir
from weir.model.errors import ExitCode
from weir.store import RunReader

SERVER = """\
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Says hello, and leaves a megabyte of garbage behind each time. */
public class Server {
    static volatile byte[] garbage;

    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        byte[] hello = "hello".getBytes();
        server.createContext("/", exchange -> {
            garbage = new byte[1 << 20];
            exchange.sendResponseHeaders(200, hello.length);
            exchange.getResponseBody().write(hello);
            exchange.close();
        });
        server.start();
    }
}
"""
COLLECTORS = ("G1", "Z")


def has_jdk() -> bool:
    """Returns whether there is a `java` that can run a source file."""
    if shutil.which("java") is None:
        return False
    return b"jdk.compiler" in subprocess.run(["java", "--list-modules"], capture_output=True, check=False).stdout


@pytest.mark.skipif(not has_jdk(), reason="there is no JDK: java and its module jdk.compiler are missing")
def test_pauses_of_each_collector_are_events_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Study, weir: Weir
) -> None:
    # The folder has a space, so the option for the log must be quoted.
    root = tmp_path / "java stacks"
    for collector in COLLECTORS:
        folder = root / collector.lower()
        folder.mkdir(parents=True)
        (folder / "Server.java").write_text(SERVER)
        (folder / "stack.toml").write_text(
            f"""
schema = 1
id = "{collector.lower()}"
title = "A JVM with {collector}"
model = "thread pool"
[run]
command = ["java", "-Xmx64m", "-XX:+Use{collector}GC", "Server.java", "{{port}}"]
[serves]
hello = {{}}
"""
        )
    monkeypatch.setenv("WEIR_STACKS", str(root))
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    done = weir("run", study(*map(str.lower, COLLECTORS), duration_s=1.5, retries=0), "--out", tmp_path / "a run")
    assert done.returncode in (ExitCode.DONE, ExitCode.NOT_VALID), done.stderr
    with RunReader(tmp_path / "a run") as reader:
        trials = reader.trials()
        assert {trial.cell.stack for trial in trials} == {"g1", "z"}
        for trial in trials:
            pauses = [event for event in reader.events(trial.id) if event.kind == "gc pause"]
            load = trial.result.whole_load or trial.result.summary
            assert load is not None
            assert pauses, (trial.cell.stack, reader.events(trial.id))
            for event in pauses:
                assert event.detail.startswith("Pause ")
                assert event.duration_s is not None
                assert 0 < event.duration_s < load.duration_s
                assert -event.duration_s <= event.t_s <= load.duration_s
            (log,) = [path for name, path in trial.result.logs.items() if name.startswith("app gc-")]
            assert (tmp_path / "a run" / log).is_file()
            assert trial.result.resources is not None
            names = {pool.pool for pool in trial.result.resources.pools}
            assert any(name.startswith("pool-thread") for name in names), names
