"""weir: a laboratory for HTTP servers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.scenario import Check, Csv, Header, JsonLines, JsonPointer, Pause, Regex, Scenario, Step

    __version__: str

__all__ = ["Check", "Csv", "Header", "JsonLines", "JsonPointer", "Pause", "Regex", "Scenario", "Step", "__version__"]


def __getattr__(name: str) -> Any:
    """Imports a name of `__all__` at its first use, so that most commands start without this import."""
    if name == "__version__":
        from importlib.metadata import version

        return version("weirbench")
    if name in __all__:
        from weir import scenario

        return getattr(scenario, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
