"""The findings of a run as JSON, for programs."""

import json

from weir.findings import RunFindings


def render_json(findings: RunFindings) -> str:
    """What `weir report --json` prints. `schema` tells how to read it."""
    return json.dumps(findings.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
