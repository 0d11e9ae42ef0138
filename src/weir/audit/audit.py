"""Lists the impossible figures in a file with load results."""

from dataclasses import dataclass, replace
from pathlib import Path

from weir.audit.claims_file import read_claims
from weir.audit.laws import Violation, find_violations
from weir.compat.reports import TOOLS, ReportError, read_report
from weir.model.errors import UsageError
from weir.model.reported_result import Figure, ReportedResult
from weir.paths import find_data_folder


@dataclass(frozen=True, slots=True)
class AuditedLoad:
    """One load in a file, and the laws that its figures violate."""

    result: ReportedResult
    violations: tuple[Violation, ...]

    @property
    def is_possible(self) -> bool:
        return all(violation.kind != "impossible" for violation in self.violations)


def audit_file(
    name: str,
    *,
    users: int | None = None,
    requests_in_flight: int | None = None,
    ramp_s: float | None = None,
    loops: int | None = None,
    think_s: float | None = None,
) -> tuple[str, list[AuditedLoad]]:
    """Returns the title and the audited loads of a file.

    `name`: the path of a tool's report or of a file of claims, or the name of one of weir's tables of figures.
    A keyword argument replaces the value from the file; None keeps that value.
    Raises UsageError if the file cannot be read, or has an unknown format.
    """
    path = _find(name)
    title, results = read_claims(path) if path.suffix == ".toml" else (path.name, _read_report(path))
    known = {
        "users": users,
        "requests_in_flight": requests_in_flight,
        "ramp_s": ramp_s,
        "loops": loops,
        "think_s": None if think_s is None else Figure(think_s),
    }
    given = {key: value for key, value in known.items() if value is not None}
    changed = [replace(result, **given) for result in results]  # type: ignore[arg-type]
    return title, [AuditedLoad(result, find_violations(result)) for result in changed]


def _find(name: str) -> Path:
    published = {path.stem: path for path in (find_data_folder("studies") / "published").glob("*.toml")}
    if Path(name).exists():
        return Path(name)
    if name in published:
        return published[name]
    expected = f"a report by {', '.join(TOOLS)}, a TOML file of claims, or a weir table: {', '.join(sorted(published))}"
    raise UsageError(f"{name}: not found; expected {expected}")


def _read_report(path: Path) -> list[ReportedResult]:
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        results = read_report(text, path.name)
    except ReportError as error:
        raise UsageError(f"{path}: {error}", hint="check whether the report is complete") from None
    if results is None:
        raise UsageError(f"{path}: found no report by a known tool, expected a report by one of {', '.join(TOOLS)}")
    return results
