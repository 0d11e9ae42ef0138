"""Generates docs/reference/stack.md from the types that read stacks' manifests."""

from scripts.reference.tables import Sections, table
from weir.services.manifest import read_service
from weir.stacks.manifest import BUILD_FIELDS, RUN_FIELDS, Manifest
from weir.toml_file import build_schema, list_data_files

_HEAD = """\
# The stack's manifest

<!-- Made by `make reference` from the types in src/weir/stacks/manifest.py. Change the docstrings there. -->

A stack is a folder with its sources and a manifest, `stack.toml`. weir builds and starts the stack in a copy of the folder. weir writes
nothing into the folder itself. The guide [guides/own-stack.md](../guides/own-stack.md) shows how to write a stack. Unknown keys are errors.
`weir stacks check ID` builds and starts the stack, and checks its answers.
"""
_FIELDS = """\
## Fields

weir replaces these fields with their values. Other text in braces stays unchanged.

"""
_MEANINGS = {
    "host": "the address to listen on: loopback; in a cluster, the machine's address; in a network namespace, every address",
    "port": "a free port to listen on. The command or the environment must contain this field",
    "artifact": "`build.artifact`",
    "cpus": "the stack's number of CPUs",
    "python": "weir's own Python",
    "npm": "npm of the Node.js for builds",
}
"""Meanings of the fields in `RUN_FIELDS` and `BUILD_FIELDS`."""


def page() -> str:
    schema = build_schema(Manifest)
    where = (
        ("`run.command`, `run.env`, and `args` and `env` of variants", RUN_FIELDS),
        ("`build.command`", BUILD_FIELDS),
    )
    own = [[f"`{{{name}}}`", places, _MEANINGS[name]] for places, names in where for name in sorted(names)]
    services = {service: read_service(service).fields for service in sorted(list_data_files("services"))}
    of_services = [
        [
            ", ".join(f"`{{{service}.{name}}}`" for name in sorted(names)),
            "`run.command`, `run.env`, and `args` and `env` of variants",
            f"field of the service `{service}`",
        ]
        for service, names in services.items()
        if names
    ]
    fields = table(["field", "where", "meaning"], [*own, *of_services])
    return "\n".join([_HEAD, Sections(schema["$defs"], "toml").of(schema, "The file itself"), _FIELDS + fields])
