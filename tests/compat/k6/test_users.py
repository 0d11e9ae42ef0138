"""How the users of a k6 script come: options, executors, thresholds."""

import pytest

from tests.compat.k6.conftest import USER, Converted, gaps, steps, users
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, OpenLoad, Session
from weir.objective import objective


@pytest.mark.parametrize(
    ("options", "load", "duration_s", "requests"),
    [
        ("", ClosedLoad(1), 600.0, 1),
        ("vus: 10, duration: '30s'", ClosedLoad(10), 30.0, None),
        ("vus: 10, iterations: 200", ClosedLoad(10), 600.0, 200),
        ("iterations: 5, duration: '1m'", ClosedLoad(1), 60.0, 5),
        (
            "stages: [{ duration: '30s', target: 20 }, { duration: '1m30s', target: 10 }, { duration: '20s', target: 0 }]",
            ClosedLoad(((0.0, 1.0), (30.0, 20.0), (120.0, 10.0), (140.0, 0.0))),
            140.0,
            None,
        ),
    ],
)
def test_options_without_scenarios_are_the_executors_that_k6_makes_of_them(
    options: str, load: Load, duration_s: float, requests: int | None, converted: Converted
) -> None:
    found = converted(f"export const options = {{ {options} }};\n{USER}")
    assert (found.plan.load, found.plan.duration_s, found.plan.requests) == (load, duration_s, requests)
    assert gaps(found) == []


@pytest.mark.parametrize(
    ("executor", "load", "duration_s", "requests"),
    [
        ("executor: 'constant-vus', vus: 10, duration: '30s'", ClosedLoad(10), 30.0, None),
        (
            "executor: 'ramping-vus', startVUs: 0, gracefulRampDown: '0s', "
            "stages: [{ duration: '20s', target: 10 }, { duration: '0s', target: 5 }]",
            ClosedLoad(((0.0, 0.0), (20.0, 10.0), (20.0, 5.0))),
            20.0,
            None,
        ),
        (
            "executor: 'constant-arrival-rate', duration: '30s', rate: 30, timeUnit: '1s', preAllocatedVUs: 50",
            OpenLoad(30.0, 50),
            30.0,
            None,
        ),
        (
            "executor: 'constant-arrival-rate', duration: '1h', rate: 90, timeUnit: '1m', preAllocatedVUs: 5, maxVUs: 70",
            OpenLoad(1.5, 70),
            3600.0,
            None,
        ),
        (
            "executor: 'ramping-arrival-rate', startRate: 300, timeUnit: '1m', preAllocatedVUs: 50, "
            "stages: [{ target: 600, duration: '2m' }, { target: 60, duration: '1m' }]",
            OpenLoad(((0.0, 5.0), (120.0, 10.0), (180.0, 1.0)), 50),
            180.0,
            None,
        ),
        ("executor: 'per-vu-iterations', vus: 10, iterations: 20, maxDuration: '30s'", ClosedLoad(10, loops=20), 30.0, None),
        ("executor: 'shared-iterations', vus: 10, iterations: 200", ClosedLoad(10), 600.0, 200),
    ],
)
def test_every_executor_is_a_load(executor: str, load: Load, duration_s: float, requests: int | None, converted: Converted) -> None:
    found = converted(f"export const options = {{ scenarios: {{ one: {{ {executor} }} }} }};\n{USER}")
    assert (found.plan.load, found.plan.duration_s, found.plan.requests) == (load, duration_s, requests)
    assert gaps(found) == []


def test_iterations_of_several_requests_count_all_of_them(converted: Converted) -> None:
    twice = users("http.get('http://h:1/a'); sleep(1); http.get('http://h:1/b');")
    each = converted(f"export let options = {{ scenarios: {{ a: {{ executor: 'per-vu-iterations', vus: 3, iterations: 4 }} }} }};{twice}")
    assert each.plan.load == ClosedLoad(3, loops=8)
    assert converted(twice, "-i", "100", "--vus", "5").plan.requests == 200
    rate = "executor: 'constant-arrival-rate', rate: 7, duration: '10s', preAllocatedVUs: 9"
    arrivals = converted(f"export let options = {{ scenarios: {{ a: {{ {rate} }} }} }};{twice}")
    assert arrivals.plan.load == OpenLoad(7.0, 9, session=Session(2))
    assert steps(arrivals)[0]["think"] == {"constant_s": 1.0}


def test_who_comes_at_a_rate_and_asks_once_has_no_pause(converted: Converted) -> None:
    rate = "executor: 'constant-arrival-rate', rate: 7, duration: '10s', preAllocatedVUs: 9"
    found = converted(f"export let options = {{ scenarios: {{ a: {{ {rate} }} }} }};" + users("http.get('http://h:1/'); sleep(1);"))
    assert steps(found) == [{"path": "/"}]
    assert found.plan.load == OpenLoad(7.0, 9)


def test_flags_of_k6_run_take_the_place_of_options(converted: Converted) -> None:
    script = f"export const options = {{ scenarios: {{ a: {{ executor: 'constant-vus', vus: 2, duration: '5s' }} }} }};{USER}"
    assert converted(script, "--vus", "10", "--duration", "30s").plan.load == ClosedLoad(10)
    assert converted(script, "-u", "3", "-s", "10s:5,20s:0").plan.load == ClosedLoad(((0.0, 3.0), (10.0, 5.0), (30.0, 0.0)))
    assert converted(script, "-i", "7").plan.requests == 7


def test_one_of_several_scenarios_is_chosen_with_its_function_and_its_variables(converted: Converted) -> None:
    script = """
    export const options = { scenarios: {
      browse: { executor: 'constant-vus', exec: 'browse', vus: 5, duration: '30s' },
      buy: { executor: 'constant-arrival-rate', exec: 'buy', rate: 2, duration: '1m', preAllocatedVUs: 3, env: { ITEM: '7' } },
    } };
    export function browse() { http.get('http://h:1/'); }
    export function buy() { http.post(`http://h:1/buy/${__ENV.ITEM}`); }
    """
    found = converted(script, "--only", "buy")
    assert found.plan.load == OpenLoad(2.0, 3)
    assert steps(found) == [{"method": "POST", "path": "/buy/7"}]
    assert gaps(found) == []
    several = converted(script)
    assert steps(several) == [{"path": "/"}]
    assert "found 2, of which a load is one: --only NAME chooses it" in gaps(several)[0]
    with pytest.raises(UsageError, match="--only: found 'sell', expected one of options"):
        converted(script, "--only", "sell")


def test_thresholds_are_objectives_where_weir_has_the_same(converted: Converted) -> None:
    found = converted(
        """
        export const options = { thresholds: {
          http_req_failed: ['rate<0.01'],
          http_req_duration: ['p(95)<200', 'p(99.9) < 2000', 'avg<=100.5', 'med<80', 'max<5000'],
          http_reqs: ['rate>50', 'count>1000'],
          checks: ['rate>0.9'],
          'http_req_duration{name:login}': ['p(99)<10'],
        } };"""
        + USER
    )
    wanted = ["errors<1%", "p95<200ms", "p99.9<2000ms", "mean<=100.5ms", "p50<80ms", "max<5000ms", "throughput>50"]
    assert list(found.objectives) == wanted
    assert [objective(text).text for text in wanted] == wanted
    assert [gap.split("thresholds.")[1].split(": objectives")[0] for gap in gaps(found)] == [
        "http_reqs: found 'count>1000'", "checks: found 'rate>0.9'", "http_req_duration{name:login}: found 'p(99)<10'",
    ]  # fmt: skip


def test_a_threshold_that_ends_the_test_is_an_objective_and_the_end_is_told(converted: Converted) -> None:
    limit = "{ threshold: 'p(99)<10', abortOnFail: true, delayAbortEval: '10s' }"
    found = converted(f"export const options = {{ thresholds: {{ http_req_duration: [{limit}] }} }};{USER}")
    assert list(found.objectives) == ["p99<10ms"]
    assert "--abort-on" in gaps(found)[0]


def test_options_on_connections_are_taken_over_or_told(converted: Converted) -> None:
    script = "export const options = { %s };" + users("http.get('https://h:1/'); ")
    found = converted(script % "insecureSkipTLSVerify: true, noConnectionReuse: true, userAgent: 'me', discardResponseBodies: true")
    assert found.plan.tls is not None
    assert found.plan.tls.insecure
    assert not found.plan.keep_alive
    assert steps(found)[0]["headers"] == {"User-Agent": "me"}
    assert gaps(found) == []
    assert converted(script % "minIterationDuration: '2s', vus: 3, duration: '9s'").plan.load == ClosedLoad(3, pace_s=2.0)
    assert gaps(converted(script % "rps: 10, hosts: {}"))[0].endswith("options.hosts: found an option that weir load does not have")
