"""The cost of scenarios: requests from templates with a JSON check, compared with the same request as fixed bytes.

The fixed request is about as long as the others. All get the same response, and weir checks its status.
"""

from functools import partial

from bench.contest import Contest, contest_table, hold_contest, weir_round
from bench.peers import BODY
from bench.result import Bar, Found
from bench.setting import Setting
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.scenario import Check, Scenario, Step

CONNECTIONS = 64
BAR = 0.85
STATIC, MADE = "fixed bytes", "templates and JSON check"
CHECK = Check(status=[200], json={"/active": True, "/id": 7})


def measure_templates(setting: Setting) -> Found:
    """Measures a GET with templates in path and header, and a POST with one more in the body."""
    url = setting.nginx.url.rstrip("/")
    header = ("X-Request", "1000000")
    made_header = {"X-Request": "{{int 1000000 9999999}}"}
    json_type = ("Content-Type", "application/json")
    body = BODY.decode()
    contests: list[Contest] = []
    bars: list[Bar] = []
    notes: list[str] = []
    for label, fixed, step in (
        (
            "GET",
            Request("GET", f"{url}/json/500000?page=55", (header,)),
            Step("GET", "/json/{{seq}}?page={{int 10 99}}", headers=made_header, check=CHECK),
        ),
        (
            "POST of 400 bytes",
            Request("POST", f"{url}/json/500000?page=55", (header, json_type), BODY),
            Step(
                "POST",
                "/json/{{seq}}?page={{int 10 99}}",
                headers={**made_header, json_type[0]: json_type[1]},
                body=body.replace("x" * 7, "{{int 1000000 9999999}}", 1),
                check=CHECK,
            ),
        ),
    ):
        load = ClosedLoad(CONNECTIONS)
        static = LoadPlan(fixed, load, setting.seconds, expected_status=(200,))
        scenario = Scenario(steps=[step]).to_plan()
        made = LoadPlan(Request("GET", url), load, setting.seconds, scenario=scenario)

        generators = {
            STATIC: partial(weir_round, setting, static, "auto"),
            MADE: partial(weir_round, setting, made, "auto"),
        }
        contest = hold_contest(setting, f"{label}, {CONNECTIONS} connections", generators, notes, generators)
        ratio = contest.ratio(MADE, STATIC)
        assert ratio is not None
        bars.append(Bar(f"{contest.label}: {MADE} at least {BAR:g} of {STATIC}", ratio.text(3), ratio.median >= BAR))
        contests.append(contest)
    return Found(
        "Templates and a JSON check: closed loop, nginx `return 200` with a JSON body",
        contest_table(contests, MADE, "times as fast with templates"),
        bars,
        notes,
        {contest.label: contest.measured() for contest in contests},
    )
