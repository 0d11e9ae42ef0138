"""`weir findings`: prints every finding of a run as a sentence, or all findings as JSON for programs."""

from weir.cli import options
from weir.cli.output import print_text
from weir.cli.report import open_study_run


def findings(run: options.Run, json_: options.Json = False) -> None:
    """Print every finding of a run as a sentence, with the next measurement that could change the finding.

    Example: weir findings runs/sync-vs-async-1 --json
    """
    from weir.findings import of_run
    from weir.findings.conclusions import iter_sentences
    from weir.report import render_json

    with open_study_run(run) as reader:
        found = of_run(reader)
    if json_:
        print(render_json(found))
        return
    for heading, sentences in iter_sentences(found):
        print_text(heading, "bold")
        for sentence, rest in sentences:
            print_text(f"- {sentence}")
            if rest:
                print_text(f"  {rest}", "dim")
