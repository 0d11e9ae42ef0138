"""Does memory grow with time? Compares the peak memory of a load of ten minutes with that of ten seconds."""

import sys

from bench.engine import engine_load
from bench.result import Bar, Found, Table
from bench.setting import Setting
from weir.model.load import ClosedLoad, LoadPlan, Request

CONNECTIONS = 64
SHORT_S = 10
# A busy neighbour may delay responses; this part does not measure time.
PATIENCE_S = 60
# The kernel counts pages for each CPU separately, so its sum differs by dozens of pages between two runs.
BAR_GROWTH_BYTES = 500_000


def measure_memory(setting: Setting) -> Found:
    """Runs a short load, and a load as long as a round."""
    rows, peaks, measured = [], [], {}
    for duration_s in (SHORT_S, setting.seconds):
        print(f"memory: {CONNECTIONS} connections for {duration_s} s …", file=sys.stderr)
        plan = LoadPlan(Request("GET", setting.nginx.url), ClosedLoad(CONNECTIONS), duration_s, timeout_s=PATIENCE_S)
        summary = engine_load(plan, setting.cpus.load, setting.folder).summary
        peaks.append(int(summary["generator"]["peak_rss_bytes"]))
        rows.append([f"{duration_s:,} s", f"{summary['requests']['completed']:,}", f"{peaks[-1] / 1e6:.2f}"])
        measured[f"{duration_s} s"] = {"completed": summary["requests"]["completed"], "peak_rss_bytes": peaks[-1]}
    growth_bytes = peaks[1] - peaks[0]
    text = f"memory after {setting.seconds:,} s at most {BAR_GROWTH_BYTES / 1e6:g} MB above that after {SHORT_S} s"
    return Found(
        f"Memory over time: closed loop, {CONNECTIONS} connections, nginx `return 200`",
        Table(["load", "requests", "peak memory, MB"], rows),
        [Bar(text, f"{growth_bytes / 1e6:+.2f} MB", growth_bytes <= BAR_GROWTH_BYTES)],
        measured=measured,
    )
