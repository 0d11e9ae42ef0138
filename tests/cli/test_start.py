"""How `weir` begins."""

import subprocess
import sys


def test_what_only_findings_need_is_not_loaded_to_put_on_a_load() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, weir.cli; print(*sorted(sys.modules))"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"scipy", "polars", "jinja2"} & set(loaded)
    assert "weir.cli.load" in loaded
