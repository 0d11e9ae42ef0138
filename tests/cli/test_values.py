from pathlib import Path

import pytest

from weir.cli.values import body, cpu_list, header
from weir.load_values import duration_s
from weir.model.errors import UsageError


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("10s", 10), ("500ms", 0.5), ("1.5s", 1.5), ("2m", 120), ("1h", 3600)])
def test_durations_are_read_with_every_unit(text: str, seconds: float) -> None:
    assert duration_s(text, "-d") == seconds


@pytest.mark.parametrize("text", ["", "s", "ten", "10 s", "-1s", "0", "0s", "1d", "1e3"])
def test_what_is_not_a_duration_is_refused_with_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="-d/--duration: found"):
        duration_s(text, "-d/--duration")


def test_cpus_are_read_in_the_notation_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert cpu_list("0") == (0,)
    assert cpu_list("1-3,5") == (1, 2, 3, 5)


@pytest.mark.parametrize("text", ["", "a", "3-1", "0,,1", "99999"])
def test_what_is_no_list_of_usable_cpus_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--cpus: found"):
        cpu_list(text)


def test_a_header_is_a_name_and_a_value() -> None:
    assert header("X-Thing:  a: b ") == ("X-Thing", "a: b")


@pytest.mark.parametrize("text", ["nothing", ": x", "a b: c", "A: b\r\nEvil: c"])
def test_what_is_not_a_header_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="-H: found"):
        header(text)


def test_a_body_is_itself_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(b"{}")
    assert body("x") == b"x"
    assert body(f"@{tmp_path / 'b.json'}") == b"{}"
    with pytest.raises(UsageError, match="No such file"):
        body(f"@{tmp_path / 'none'}")
