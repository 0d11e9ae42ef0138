"""ab's report as the HTML table of `-w`."""

from collections.abc import Sequence
from html import escape

from weir.compat.ab_report import AbResult, whole_ms
from weir.compat.times import Times


def banner_html(banner: Sequence[str]) -> str:
    """The banner as a paragraph; the table stands in the next one."""
    return "\n".join(["<p>", *(f" {escape(line, quote=False)}<br>" for line in banner), "</p>", "<p>", ""])


def report_html(result: AbResult, table: str, row: str, cell: str) -> str:
    """The table.

    Args:
        result: what it tells.
        table: attributes of the table.
        row: attributes of its rows.
        cell: attributes of its cells.
    """

    def line(label: str, value: str) -> str:
        if not value:
            return f"<tr {row}><td colspan=4 {cell} >{label}</td></tr>"
        head = f"<th colspan=2 {cell}>{label}</th>" if label else f"<td colspan=2 {cell}>&nbsp;</td>"
        return f"<tr {row}>{head}<td colspan=2 {cell}>{value}</td></tr>"

    def times(label: str, clock: Times) -> str:
        values = (whole_ms(each) for each in (clock.shortest, clock.mean, clock.longest))
        return f"<tr {row}><th {cell}>{label}</th>" + "".join(f"<td {cell}>{value:5}</td>" for value in values) + "</tr>"

    lines = [line(label, escape(_short(label, value), quote=False)) for label, value in result.lines() if _is_told(label, value)]
    if result.complete:
        clocks = result.clocks
        lines += [
            f"<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>",
            f"<tr {row}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   <th {cell}>max</th></tr>",
            times("Connect:", clocks.connect),
            # ab takes the row above from the row below. A connection may have been made before the clock started, and cost no answer.
            times("Processing:", clocks.processing),
            times("Total:", clocks.total),
        ]
    return "\n".join(["", "", f"<table {table}>", *lines, "</table>", ""])


def _is_told(label: str, value: str) -> bool:
    """The table has no empty lines, no times per request, and nothing of TLS."""
    return (label, value) != ("", "") and label not in ("Time per request:", "SSL/TLS Protocol:", "Server Temp Key:", "TLS Server Name:")


def _short(label: str, value: str) -> str:
    """Rates are without ab's remarks there."""
    if label == "Requests per second:":
        return value.split()[0]
    return value.replace("[Kbytes/sec]", "kb/s")
