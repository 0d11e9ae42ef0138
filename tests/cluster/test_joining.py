"""Tests clusters that require a token or certificates: a run carries them to the nodes, and without them weir says what
is missing."""

import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cluster.conftest import Nodes, StartNodes, Weir
from tests.end_to_end import conftest as end_to_end
from tests.support.kept import kept_trials
from weir.model.errors import ExitCode
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")

stacks = end_to_end.stacks
study = end_to_end.study
Study = end_to_end.Study


def token(_: Path) -> Mapping[str, str]:
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}


def certificates(folder: Path) -> Mapping[str, str]:
    """Makes one self-signed certificate for all nodes, which are on one machine."""
    # Ray takes the address from which other machines are reached. The probe sends nothing.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        own = probe.getsockname()[0]
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "own.pem", "-days", "2",
            "-subj", "/CN=a cluster", "-addext", f"subjectAltName=DNS:localhost,IP:127.0.0.1,IP:{own}",
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    files = {"RAY_TLS_SERVER_CERT": "own.pem", "RAY_TLS_SERVER_KEY": "key.pem", "RAY_TLS_CA_CERT": "own.pem"}
    return {"RAY_USE_TLS": "1", **{name: str(folder / file) for name, file in files.items()}}


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.needs("openssl")
@pytest.mark.parametrize("known_by", [token, certificates])
def test_a_run_goes_over_a_cluster_that_lets_in_only_whom_it_knows(
    known_by: Callable[[Path], Mapping[str, str]],
    study: Study,
    weir: Weir,
    start_nodes: StartNodes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables = known_by(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    nodes = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    on_cluster = ("--cluster", nodes.address, "--agents", "1")
    done = weir("run", study("good", blocks=1), "--out", tmp_path / "run", *on_cluster)
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "run") as reader:
        assert reader.ended == "complete"
    assert len(kept_trials(tmp_path / "run")) == 1

    for name in variables:
        monkeypatch.delenv(name)
    done = weir("load", "http://127.0.0.1:1/", *on_cluster)
    assert done.returncode == ExitCode.TARGET, done.stderr
    assert "RAY_" in done.stderr


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"RAY_USE_TLS": "1"}, "the server has no TLS"),
        ({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": "/nowhere"}, "oken"),
    ],
)
def test_what_nodes_do_not_have_or_was_forgotten_here_is_told(
    variables: Mapping[str, str], told: str, weir: Weir, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = weir("load", "http://127.0.0.1:1/", "--cluster", nodes.address, "--agents", "1")
    assert done.returncode == ExitCode.TARGET, done.stderr
    assert told in done.stderr
