"""What travels to a node in one piece."""

import io
import tarfile
from pathlib import Path

import pytest

from weir.cluster.travel import packed_files
from weir.model.errors import UsageError


def test_files_are_packed_at_their_paths_for_their_owner_alone_and_always_into_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("other")
    (tmp_path / "link").symlink_to("b")
    archive = packed_files({"studies/mine.toml": tmp_path / "a", "rows.csv": tmp_path / "link"}, "mine")
    with tarfile.open(fileobj=io.BytesIO(archive)) as found:
        assert [(member.name, member.mode, member.isfile()) for member in found] == [
            ("rows.csv", 0o600, True),
            ("studies/mine.toml", 0o600, True),
        ]
        found.extractall(tmp_path / "there", filter="data")
    assert (tmp_path / "there" / "studies" / "mine.toml").read_text() == "one"
    assert (tmp_path / "there" / "rows.csv").read_text() == "other"
    (tmp_path / "a").chmod(0o644)
    (tmp_path / "later").write_text("other")
    assert packed_files({"rows.csv": tmp_path / "later", "studies/mine.toml": tmp_path / "a"}, "mine") == archive


def test_a_file_that_cannot_be_read_or_is_too_large_to_travel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"rows\.csv: cannot be read: No such file"):
        packed_files({"rows.csv": tmp_path / "rows.csv"}, "mine")
    monkeypatch.setattr("weir.cluster.travel.MOST_BYTES", 10)
    (tmp_path / "rows.csv").write_text("name\n")
    with pytest.raises(UsageError, match=r"mine: found 0 MiB, expected at most 0 that travel"):
        packed_files({"rows.csv": tmp_path / "rows.csv"}, "mine")
