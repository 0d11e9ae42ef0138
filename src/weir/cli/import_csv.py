"""`weir import`: makes a run from another tool's trials in a CSV file."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from weir.cli.output import say
from weir.cli.report import beside, show
from weir.compat.csv_import import NUMBERS, TEXTS, read_mapping, read_table, write_imported
from weir.model.errors import UsageError
from weir.store import RUN_FILE_NAME

_FIELDS = ", ".join([*TEXTS, *NUMBERS])


def import_csv(
    csv: Annotated[Path | None, Option("--csv", metavar="FILE", help="CSV file with one row per trial.")] = None,
    maps: Annotated[
        list[str] | None,
        Option(
            "--map",
            metavar="FIELD=COLUMN[:UNIT]",
            help=f"Read FIELD from COLUMN, from COLUMN:UNIT, or from a sum such as user:ticks+system:ticks. Fields: {_FIELDS}.",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        Option("--mapping", metavar="FILE", help='TOML file that maps columns, as in [columns] field = "column:unit".'),
    ] = None,
    baseline: Annotated[str | None, Option("--baseline", help="Stack to compare all others with.")] = None,
    generator: Annotated[
        str | None,
        Option(
            "--generator",
            metavar="TOOL",
            help="Tool that made the loads. For wrk and hey, weir checks the figures with the tool's own formulas.",
        ),
    ] = None,
    stack_cpus: Annotated[int | None, Option("--stack-cpus", min=1, help="Number of CPUs for each stack.")] = None,
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="New folder for the run. Default: runs/NAME for NAME.csv.")
    ] = None,
) -> None:
    """Make a run from the rows of a CSV file, as input for weir findings, weir breakeven and weir audit.

    Example: weir import --csv trials.csv --map stack=server --map connections=c --map throughput_rps=rps --map
        duration_s=seconds
    """
    if csv is None:
        raise UsageError("weir import: found no file, expected --csv FILE", hint="weir import --help")
    file, columns = read_mapping(mapping, maps or [])
    given = {"baseline": baseline, "generator": generator, "stack_cpus": stack_cpus}
    settings = file.model_copy(update={name: value for name, value in given.items() if value is not None})
    imported = read_table(csv, columns, generator=settings.generator)
    path = (out or Path("runs") / csv.stem) / RUN_FILE_NAME
    write_imported(imported, settings, csv, path, command=shlex.join(["weir", *sys.argv[1:]]))
    say(f"{csv}: {imported.sentence}")
    show(path, html=beside(path))
