"""Collects the files that a study needs on another machine: the study file, files with relative paths, and stacks'
builds. weir does not copy files with absolute paths, because such paths name files on the other machine."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.load_spec import PEM_SETTINGS
from weir.model.errors import UsageError
from weir.scenario import Scenario
from weir.stacks.build import find_build
from weir.stacks.manifest import Stack, read_stack
from weir.study.study import Study
from weir.toml_file import list_data_files, read_toml, validate


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """Files that a study needs on another machine."""

    study: str
    """Name of a built-in study, or the key of the study file in `files`."""
    files: Mapping[str, Path]
    """A dict from a relative path on the other machine to the file on this machine. Empty for a built-in study."""
    built: tuple[Path, ...]
    """Cache folders with the stacks' builds. Folders with equal names have equal builds, because names are digests."""


def collect_study_files(study: Study) -> StudyFiles:
    """Returns the files that a study needs on another machine. Raises UsageError for a missing or invalid scenario."""
    if list_data_files("studies").get(study.name) == study.path:
        return StudyFiles(study.name, {}, _find_builds(study))
    folder = study.path.parent
    # Symbolic links stay unresolved. After a resolved link, `..` would mean another folder.
    places = {os.path.abspath(folder / place): file for place, file in _list_files(study)}
    root = os.path.commonpath([os.path.dirname(place) for place in places])
    files = {os.path.relpath(place, root): file for place, file in places.items()}
    return StudyFiles(os.path.relpath(os.path.abspath(study.path), root), files, _find_builds(study))


def _find_builds(study: Study) -> tuple[Path, ...]:
    # Variants of a stack often share a build.
    return tuple(dict.fromkeys(folder for stack in _read_stacks(study) if (folder := find_build(stack)) is not None))


def _read_stacks(study: Study) -> Iterator[Stack]:
    """Yields the study's stacks and variants with a manifest on this machine. Only these stacks have a build."""
    for label in study.file.matrix.stacks:
        with suppress(UsageError):
            stack = read_stack(label)
            yield stack
            yield from (variant for variant in stack.variants() if variant.variant in study.file.matrix.variants)


def _list_files(study: Study) -> Iterator[tuple[Path, Path]]:
    """Yields a pair for each file: the path relative to the study's folder, and the path on this machine."""
    yield Path(study.path.name), study.path
    tables = [("", study.file.load.model_dump())]
    tables += [(f"override.{at}.", override.load) for at, override in enumerate(study.file.override)]
    for below, load in tables:
        for name in PEM_SETTINGS:
            if (pem := load.get(name)) is not None and not os.path.isabs(pem):
                yield Path(pem), study.path.parent / pem
        match load.get("scenario"):
            case str(name) if not os.path.isabs(name):
                file = study.path.parent / name
                yield Path(name), file
                yield from _list_feeders(read_toml(file, what="a scenario"), Path(name), file)
            case dict(table):
                yield from _list_feeders(table, Path(study.path.name), study.path, f"{below}load.scenario.")


def _list_feeders(scenario: dict[str, Any], place: Path, file: Path, below: str = "") -> Iterator[tuple[Path, Path]]:
    """Yields a pair of paths, like `_list_files`, for each feeder file of a scenario."""
    for feeder in validate(Scenario, scenario, path=file, below=below).feeders.values():
        if not os.path.isabs(feeder.file):
            yield place.parent / feeder.file, file.parent.resolve() / feeder.file
