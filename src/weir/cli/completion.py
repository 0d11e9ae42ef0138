"""`weir completion`: prints a shell script that completes weir's commands, options, studies and stacks."""

from typing import Annotated, Literal

from typer import Argument

VARIABLE = "_WEIR_COMPLETE"
"""The environment variable in which the shell's script asks weir for completions."""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Argument(metavar="SHELL", help="The shell: bash, zsh or fish.")],
) -> None:
    """Print a shell script that completes weir's commands, options, studies and stacks.

    Example: weir completion bash >> ~/.bashrc
    """
    # Typer documents this function, but does not export it.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="weir", complete_var=VARIABLE, shell=shell))


def studies(incomplete: str) -> list[str]:
    """Returns the names of weir's studies that begin with `incomplete`."""
    from weir.toml_file import list_data_files

    return [name for name in list_data_files("studies") if name.startswith(incomplete)]


def stacks(incomplete: str) -> list[str]:
    """Returns the labels of weir's stacks that begin with `incomplete`."""
    from weir.stacks.manifest import read_all_stacks

    return [stack.label for stack in read_all_stacks() if stack.label.startswith(incomplete)]
