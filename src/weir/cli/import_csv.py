"""`weir import`: trials that somebody else measured, as a run that weir can say something of."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.output import say
from weir.cli.report import beside, show
from weir.compat.imported import write_imported
from weir.compat.table import NUMBERS, TEXTS, mapping_of, read_table
from weir.model.errors import UsageError
from weir.store import RUN_FILE_NAME

_FIELDS = ", ".join([*TEXTS, *NUMBERS])


def import_csv(
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="A CSV file with a trial a row.", show_default=False)] = None,
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=COLUMN[:UNIT]",
            help=f"Which column holds what; several columns are added up (cpu_s=user:ticks+system:ticks). Fields: {_FIELDS}.",
            show_default=False,
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help='The same in a TOML file: [columns] field = "column:unit".', show_default=False),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The stack that the others are compared with.", show_default=False)
    ] = None,
    stack_cpus: Annotated[int | None, typer.Option("--stack-cpus", min=1, help="How many CPUs the stacks had.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The run folder. Default: runs/ and the file's name.", show_default=False)
    ] = None,
) -> None:
    """Make a run of the rows of a CSV file: findings, break-even and audit work on it as on a run of weir's own.

    Example: weir import --csv trials.csv --map stack=server --map connections=c --map throughput_rps=rps --map duration_s=seconds
    """
    if csv is None:
        raise UsageError("weir import: found no file, expected --csv FILE", hint="weir import --help")
    asked = mapping_of(mapping, maps or [])
    if baseline is not None:
        asked = replace(asked, baseline=baseline)
    if stack_cpus is not None:
        asked = replace(asked, stack_cpus=stack_cpus)
    imported = read_table(csv, asked)
    path = (out or Path("runs") / csv.stem) / RUN_FILE_NAME
    write_imported(imported, asked, csv, path, command=shlex.join(["weir", *sys.argv[1:]]))
    say(f"{csv}: {imported.sentence}")
    show(path, html=beside(path))
