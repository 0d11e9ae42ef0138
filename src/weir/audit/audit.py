"""From a file, whatever it is, to what in it cannot be."""

from dataclasses import dataclass, replace
from pathlib import Path

from weir.audit.claims_file import read_claims
from weir.audit.physics import Breach, breaches
from weir.compat.reports import FORMATS, ReportError, read_report
from weir.model.claim import Claim, Figure
from weir.model.errors import UsageError
from weir.places import data_folder


@dataclass(frozen=True, slots=True)
class Audited:
    """One load of a file, and the laws that it breaks."""

    claim: Claim
    breaches: tuple[Breach, ...]

    @property
    def is_possible(self) -> bool:
        """Whether nothing in it is impossible."""
        return all(breach.kind != "impossible" for breach in self.breaches)


def audit_file(
    name: str, *, users: int | None = None, ramp_s: float | None = None, loops: int | None = None, think_s: float | None = None
) -> tuple[str, list[Audited]]:
    """The title and the loads of a tool's report, of a file of claims, or of a published table that travels with weir.

    What the caller knows of the load comes before what the file says of it.

    Raises:
        UsageError: the file cannot be read, or is none of these.
    """
    path = _locate(name)
    if path.suffix == ".toml":
        title, claims = read_claims(path)
    else:
        title, claims = path.name, _read_report(path)
    known = {"users": users, "ramp_s": ramp_s, "loops": loops, "think_s": None if think_s is None else Figure(think_s)}
    given = {key: value for key, value in known.items() if value is not None}
    changed = [replace(claim, **given) for claim in claims]  # type: ignore[arg-type]
    return title, [Audited(claim, breaches(claim)) for claim in changed]


def published() -> list[str]:
    """The names of the tables that travel with weir."""
    return sorted(path.stem for path in (data_folder("studies") / "published").glob("*.toml"))


def _locate(name: str) -> Path:
    path = Path(name)
    if path.exists():
        return path
    shipped = data_folder("studies") / "published" / f"{name}.toml"
    if shipped.is_file():
        return shipped
    raise UsageError(f"{name}: not found; expected a report of {_tools()}, a file of claims (TOML), or one of: {', '.join(published())}")


def _read_report(path: Path) -> list[Claim]:
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        claims = read_report(text, path.name)
    except ReportError as error:
        raise UsageError(f"{path}: {error}", hint="is it cut off?") from None
    if claims is None:
        raise UsageError(f"{path}: found no report of a tool that weir knows; expected one of {_tools()}")
    return claims


def _tools() -> str:
    return ", ".join(format_.title for format_ in FORMATS)
