"""`[workload.NAME]` of a study file: what is asked of servers that weir did not start, where none of the workloads that weir has fits."""

from pydantic import Field

from weir.stacks.workload import Answer, PlainAnswer, RequestTemplate, Workload
from weir.toml_file import Table


class OwnWorkload(Table):
    """A workload of the study's own, for external servers: what one request asks, and what proves that the answer is right."""

    title: str = ""
    """What reports call it. Default: its name."""
    request: RequestTemplate
    """The request. Its path and its body may hold `{{int LOW HIGH}}` and `{{word LENGTH}}`, drawn anew for every check, and for the load by
    `method.seed`."""
    answer: PlainAnswer = Field(default_factory=PlainAnswer)
    """The right answer: what weir looks for before and after every trial; during the load its status counts."""

    def named(self, name: str) -> Workload:
        """The workload."""
        answer = Answer.model_validate(self.answer.model_dump(by_alias=True))
        return Workload(schema=1, id=name, title=self.title or name, request=self.request, answer=answer)
