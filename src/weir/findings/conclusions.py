"""Lists all findings of a run as sentences under headings."""

from collections.abc import Iterator, Sequence

from weir.findings.types import RunFindings

Advice = tuple[str, str]
"""A finding's sentence, and the measurement or step that would change or confirm the finding."""


def iter_sentences(run: RunFindings) -> Iterator[tuple[str, Sequence[Advice]]]:
    """Yields each heading with its sentences, the answer first. Skips headings without sentences."""
    answer = run.answer
    noise = [found.sentence for found in (run.identical_copies, run.variation, run.audit) if found is not None]
    for heading, sentences in (
        ("Answer", [(answer.sentence, answer.would_change)]),
        ("Generators", [(found.sentence, found.would_change) for found in run.generators]),
        (
            "Comparisons",
            [(point.where + found.sentence, found.would_change) for point in run.points for found in point.comparisons],
        ),
        ("Break-even", [(found.sentence, found.would_change) for found in run.break_evens]),
        ("Scalability", [(found.sentence, found.would_change) for found in run.scalings]),
        ("Bottlenecks", [(found.sentence, found.would_prove) for found in run.bottlenecks]),
        ("Experiments", [(found.sentence, "") for found in run.proofs]),
        ("Upper bounds", [(point.where + point.upper_bounds, "") for point in run.points if point.upper_bounds]),
        ("Work", [(point.where + point.work.sentence, "") for point in run.points if point.work is not None]),
        ("Steady state and noise", [(sentence, "") for sentence in noise]),
        ("To keep in mind", [(caution.fact, caution.next_step) for caution in run.cautions]),
    ):
        if sentences:
            yield heading, sentences
