"""The repository must not tell where it was made and from where its packages were fetched."""

import re
import subprocess
from pathlib import Path

import pytest

# The pattern is built from parts, so that this file does not match. It finds a path that begins with a user's folder,
# but not `/proc/PID/root/`.
PERSONAL_FOLDER = re.compile(r"(?<![\w{}<>.])/" + r"(?:root|home/[a-z]\w*|Users/\w+|work/main|work/shared)/")
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


@pytest.fixture(scope="module")
def tracked(repository: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout
    paths = [repository / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_locked_requirements_name_no_index(tracked: list[Path]) -> None:
    locks = [
        path
        for path in tracked
        if path.name == "requirements.txt" or (path.suffix == ".txt" and path.parent.name == "requirements")
    ]
    assert len(locks) >= 5
    for lock in locks:
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert not re.search(r"https?://|index-url|find-links|file:", text), f"{lock}: names a place to fetch from"


def test_locked_node_packages_name_no_place(tracked: list[Path]) -> None:
    locks = [path for path in tracked if path.name == "package-lock.json"]
    assert len(locks) >= 2
    for lock in locks:
        assert not re.search(r"https?://", lock.read_text()), (
            f"{lock}: npm install --package-lock-only --omit-lockfile-registry-resolved leaves addresses out; take `funding` out as well"
        )


def test_the_lock_of_the_crates_names_no_registry_but_crates_io(tracked: list[Path], repository: Path) -> None:
    lock = repository / "Cargo.lock"
    assert lock in tracked
    assert set(re.findall(r'^source = "(.*)"$', lock.read_text(), re.MULTILINE)) == {CRATES_IO}


def test_no_tracked_file_names_somebodys_folder(tracked: list[Path]) -> None:
    for path in tracked:
        text = path.read_bytes().decode(errors="ignore")
        found = PERSONAL_FOLDER.search(text)
        assert found is None, f"{path}: {found.group() if found else ''}"
