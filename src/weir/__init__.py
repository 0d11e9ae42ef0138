"""weir: a laboratory for HTTP servers."""

from importlib.metadata import version

from weir.scenario import Check, Csv, Header, JsonLines, JsonPointer, Pause, Regex, Scenario, Step

__all__ = ["Check", "Csv", "Header", "JsonLines", "JsonPointer", "Pause", "Regex", "Scenario", "Step", "__version__"]

__version__ = version("weirbench")
