"""Where a run's file is, from what a user names: the file or its folder."""

from pathlib import Path

from weir.model.errors import UsageError

RUN_FILE_NAME = "run.weir"


def find_run(path: Path) -> Path:
    """The run file that `path` names: itself, or `run.weir` in it.

    Raises:
        UsageError: there is no such file.
    """
    if path.is_dir():
        inside = path / RUN_FILE_NAME
        if inside.is_file():
            return inside
        raise UsageError(f"{path}: found a folder without {RUN_FILE_NAME}, expected the folder of a run", hint="weir run STUDY makes one")
    if path.is_file():
        return path
    found = "something that is not a file" if path.exists() else "nothing there"
    raise UsageError(f"{path}: found {found}, expected a run folder or a {RUN_FILE_NAME} file", hint="weir run STUDY makes one")
