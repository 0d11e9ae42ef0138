"""A short name for what a scenario says, its files of rows included: a resumed run must ask the same."""

import hashlib
import json
from pathlib import Path
from typing import Any


def scenario_digest(plan: dict[str, Any]) -> str:
    """Eight hexadecimal digits that change with anything that users do; where its files lie does not matter."""
    feeders = plan.get("feeders", {})
    digest = hashlib.sha256()
    for feeder in feeders.values():
        digest.update(Path(feeder["file"]).read_bytes())
    without_folders = plan | {"feeders": {name: feeder | {"file": Path(feeder["file"]).name} for name, feeder in feeders.items()}}
    digest.update(json.dumps(without_folders, sort_keys=True).encode())
    return digest.hexdigest()[:8]
