"""Writes the generated pages of the reference: `python -m scripts.reference docs/reference` (`make reference`)."""

import sys
from collections.abc import Callable
from pathlib import Path

from scripts.reference import commands, environment, exit_codes, findings_json, load_json, stack, study
from weir.cli.commands import COMMANDS, command

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": lambda: commands.page({name: command(name) for name in COMMANDS}),
    "environment.md": environment.page,
    "exit-codes.md": exit_codes.page,
    "findings.md": findings_json.page,
    "json.md": load_json.page,
    "stack.md": stack.page,
    "study.md": study.page,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        Path(sys.argv[1], name).write_text(page())
