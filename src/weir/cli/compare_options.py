"""Options and arguments of `weir compare`, without the settings of the load."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

COMMAND_WORD = "--command-word"
# fmt: off

# --- The sides

Sides = Annotated[list[str] | None, Argument(
    metavar="SIDE...", help="Server to compare: a URL, a stack of weir, or a command. A command may contain {host} and "
    "{port}. With --git: a commit to compare. The command then follows --.")]
Git = Annotated[bool, Option(
    "--git", help="Compare commits. A dot means the working tree. Example: --git main HEAD -- ./run.sh {port}.")]
Build = Annotated[str | None, Option(
    "--build", metavar="COMMAND", help="With --git: shell command that weir runs once to build each commit.")]
Env = Annotated[list[str] | None, Option(
    "--env", metavar="NAME=A,B",
    help="Compare values of an environment variable. Write the command after --; each value replaces {NAME} in it.")]
Https = Annotated[bool, Option(
    "--https", help="Use HTTPS for servers that commands start. See also --cacert, --cert and --insecure.")]
Watch = Annotated[str | None, Option(
    "--watch", metavar="PID,PID", help="Process id of the server of each URL, to measure CPU and memory.")]
ReadyPath = Annotated[str, Option(
    "--ready", metavar="PATH", help="Path that weir requests until the server of a command responds.")]
ReadyTimeout = Annotated[str, Option(
    "--ready-timeout", metavar="TIME", help="Maximum time until a command's server responds.")]
Words = Annotated[list[str] | None, Option(COMMAND_WORD, hidden=True, help="Internal: a word after --.")]

# --- The requests

Workload = Annotated[str | None, Option(
    "--workload", metavar="NAME",
    help="Send the requests of this workload of weir. Required with stacks. Example: echo.")]
RequestPath = Annotated[str | None, Option(
    "--path", metavar="PATH", help="Path and query of the request. Default: the path of the URLs, or /.")]
Script = Annotated[tuple[str, str] | None, Option(
    "--with", metavar="TOOL SCRIPT", help="Load with jmeter, k6 or locust, and with this script. SCRIPT may have "
    "arguments, and fields such as {host}, {port} and {users}. Example: --with jmeter 'plan.jmx -Jloops=50'.")]
AnyAnswer = Annotated[bool, Option("--any-answer", help="Compare even if responses differ or are errors.")]

# --- The run

Warmup = Annotated[str | None, Option(
    "--warmup", metavar="TIME", help="Warm-up of each trial. Default: until steady, at least 1 s and at most 10 s.")]
Precision = Annotated[str, Option(
    "--precision", metavar="PERCENT", help="End when the confidence interval of the ratio is within ± this percentage.")]
Budget = Annotated[str | None, Option(
    "--budget", metavar="TIME", help="Maximum time of all trials together. Default: 1m for each server.")]
Out = Annotated[Path | None, Option("--out", metavar="DIR", help="New folder for the run. Default: runs/compare-N.")]

# --- The answer

FailIf = Annotated[list[str] | None, Option(
    "--fail-if", metavar="CONDITION", help="Exit with 1 if a server's ratio to the first server meets this condition, "
    "such as 'throughput<0.95'. Exit with 4 if the ratio is inconclusive. "
    "Metrics: throughput, p50, p99, cpu, memory, start.")]
Save = Annotated[Path | None, Option(
    "--save", metavar="FILE", help="Write this comparison to FILE as a study for weir run.")]
Markdown = Annotated[str | None, Option(
    "--md", metavar="FILE", help="Write the result as Markdown to FILE (- is standard output).")]
Html = Annotated[Path | None, Option("--html", metavar="FILE", help="Write the HTML report to FILE.")]
