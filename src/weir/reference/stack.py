"""docs/reference/stack.md, from the types that read stacks' manifests."""

from weir.reference.tables import Sections, table
from weir.services.manifest import read_service, service_ids
from weir.stacks.manifest import BUILD_FIELDS, RUN_FIELDS, Manifest
from weir.toml_file import schema_of

_HEAD = """\
# The stack's manifest

<!-- Made by `make reference` from the types in src/weir/stacks/manifest.py. Change the docstrings there. -->

A stack is a folder with a `stack.toml` and whatever it is made from. weir builds and starts it in a copy of that folder, so that nothing
is written where it lies. How to write one: [guides/own-stack.md](../guides/own-stack.md). Unknown keys are errors; `weir stacks check ID`
holds the stack to what its manifest says.
"""
_FIELDS = """\
## Fields

What stands in braces is filled in; all other braces stay as they are.

"""
_MEANINGS = {
    "address": "the address to listen on: loopback, that of this machine in a cluster, or every address in a network of the stack's own",
    "port": "the port to listen on, which is free; it has to be in the command or in the environment",
    "artifact": "`build.artifact`",
    "cpus": "the number of CPUs that the stack has",
    "python": "weir's own Python",
    "npm": "npm of the Node that builds use",
}
"""Of `RUN_FIELDS` and `BUILD_FIELDS`."""


def page() -> str:
    """The page."""
    schema = schema_of(Manifest)
    where = (("`run.command`, `run.env`, and `args` and `env` of variants", RUN_FIELDS), ("`build.command`", BUILD_FIELDS))
    own = [[f"`{{{name}}}`", places, _MEANINGS[name]] for places, names in where for name in sorted(names)]
    services = {service: read_service(service).fields for service in service_ids()}
    of_services = [
        [
            ", ".join(f"`{{{service}.{name}}}`" for name in sorted(names)),
            "`run.command`, `run.env`, and `args` and `env` of variants",
            f"of the service `{service}`",
        ]
        for service, names in services.items()
        if names
    ]
    fields = table(["field", "where", "meaning"], [*own, *of_services])
    return "\n".join([_HEAD, Sections(schema["$defs"], "toml").of(schema, "The file itself"), _FIELDS + fields])
