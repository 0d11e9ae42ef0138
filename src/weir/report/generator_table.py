"""Generators side by side, as texts."""

from weir.findings import GeneratorFindings
from weir.findings.metrics import GENERATOR_CPU, GENERATOR_MEMORY, KERNEL_P50, KERNEL_P99, SAID_P50, SAID_P99, THROUGHPUT
from weir.findings.words import significant
from weir.report.numbers import value_text

GENERATORS_NOTE = (
    "Response times as each generator says them and, beside them, as the kernel saw them, medians over trials; CPU time per request and "
    "memory are the generator's own."
)


def generator_cells(one: GeneratorFindings) -> tuple[str, ...]:
    """Throughput; median and p99 as it says, as the kernel saw them, and their ratio; its CPU time per request and memory."""
    return (
        value_text(one.measure(THROUGHPUT)),
        value_text(one.measure(SAID_P50)),
        value_text(one.measure(KERNEL_P50)),
        _ratio(one, "p50"),
        value_text(one.measure(SAID_P99)),
        value_text(one.measure(KERNEL_P99)),
        _ratio(one, "p99"),
        value_text(one.measure(GENERATOR_CPU)),
        value_text(one.measure(GENERATOR_MEMORY)),
    )


def _ratio(one: GeneratorFindings, quantile: str) -> str:
    ratio = next((found.ratio for found in one.against_kernel if found.quantile == quantile), None)
    return "–" if ratio is None else significant(ratio, 2)
