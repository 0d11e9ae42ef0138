"""`weir completion`: what a shell needs to complete weir's commands, options, studies and stacks."""

from typing import Annotated, Literal

import typer

VARIABLE = "_WEIR_COMPLETE"
"""In the environment of a weir that a shell asks for completions."""


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the script that makes a shell complete weir's command line.

    Example: weir completion bash >> ~/.bashrc
    """
    # Typer says in its documentation that it is there, and to the type checker that it is not.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="weir", complete_var=VARIABLE, shell=shell))


def studies(incomplete: str) -> list[str]:
    """Names of studies that travel with weir and begin so."""
    from weir.study.study import study_files

    return [name for name in study_files() if name.startswith(incomplete)]


def stacks(incomplete: str) -> list[str]:
    """Labels of stacks that travel with weir and begin so."""
    from weir.stacks.manifest import all_stacks

    return [stack.label for stack in all_stacks() if stack.label.startswith(incomplete)]
