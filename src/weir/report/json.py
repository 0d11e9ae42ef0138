"""The findings of a run, or of a single load, as JSON, for programs."""

import json

from weir.findings import LoadFindings, RunFindings


def render_json(findings: RunFindings | LoadFindings) -> str:
    """What `weir report --json` prints. `schema` tells how to read it."""
    return json.dumps(findings.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
