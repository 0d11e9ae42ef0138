"""What of a study has to go along where it is run on another machine: its file, those that it names by a path from there, and what was
built here of its stacks.

A file that is named by an absolute path stays: it is meant where it is.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.model.errors import UsageError
from weir.scenario import Scenario
from weir.stacks.build import built_before
from weir.stacks.manifest import Stack, read_stack
from weir.study.study import Study, study_files
from weir.toml_file import read_toml, validate


@dataclass(frozen=True, slots=True)
class Travelling:
    """A study as it is run elsewhere."""

    study: str
    """What it is called there: its name, or its path among the files."""
    files: Mapping[str, Path]
    """What goes along, by its path in one folder, in which relative paths lead where they lead here. None where any weir has it."""
    built: tuple[Path, ...]
    """The folders of the cache that have its stacks built. They are named by what they were built from and with, so that what has the same
    path in the cache of another machine of this kind is the same."""


def travelling(study: Study) -> Travelling:
    """What goes along with a study at its scale.

    Raises:
        UsageError: a scenario is not there, or not valid.
    """
    if study_files().get(study.name) == study.path:
        return Travelling(study.name, {}, _built(study))
    folder = study.path.parent
    # By their letters, as the study has them: behind a link other folders may be above.
    places = {os.path.abspath(folder / place): file for place, file in _named(study)}
    root = os.path.commonpath([os.path.dirname(place) for place in places])
    files = {os.path.relpath(place, root): file for place, file in places.items()}
    return Travelling(os.path.relpath(os.path.abspath(study.path), root), files, _built(study))


def _built(study: Study) -> tuple[Path, ...]:
    # Variants of one stack are mostly built alike.
    return tuple(dict.fromkeys(folder for stack in _stacks(study) if (folder := built_before(stack)) is not None))


def _stacks(study: Study) -> Iterator[Stack]:
    """Those that this machine knows: an external one, or one that only the other has, is not built here."""
    for label in study.file.matrix.stacks:
        with suppress(UsageError):
            stack = read_stack(label)
            yield stack
            yield from (variant for variant in stack.variants() if variant.variant in study.file.matrix.variants)


def _named(study: Study) -> Iterator[tuple[Path, Path]]:
    """Each file by its path from the study's folder, and where it lies."""
    yield Path(study.path.name), study.path
    loads = [("", study.file.load.scenario)]
    loads += [(f"override.{index}.", override.load.get("scenario")) for index, override in enumerate(study.file.override)]
    for below, scenario in loads:
        match scenario:
            case str(name) if not os.path.isabs(name):
                file = study.path.parent / name
                yield Path(name), file
                yield from _feeders(read_toml(file, what="a scenario"), Path(name), file)
            case dict(table):
                yield from _feeders(table, Path(study.path.name), study.path, f"{below}load.scenario.")


def _feeders(scenario: dict[str, Any], place: Path, file: Path, below: str = "") -> Iterator[tuple[Path, Path]]:
    """Files of rows, which are named from the folder of whatever names them."""
    for feeder in validate(Scenario, scenario, path=file, below=below).feeders.values():
        if not os.path.isabs(feeder.file):
            yield place.parent / feeder.file, file.parent.resolve() / feeder.file
