use super::*;

fn good() -> Facts<'static> {
    Facts {
        requests: Requests {
            intended: 1000,
            sent: 1000,
            completed: 1000,
            ok: 1000,
            ..Requests::default()
        },
        redirects: 0,
        standstill: Standstill::default(),
        errors: ErrorCounts::default(),
        ports_used_up: false,
        is_until_failure: false,
        asked_rate_rps: Some(100.0),
        sent_rps: 100.0,
        ramp: None,
        completed_rps: 100.0,
        busy_fraction: 0.1,
        response_p50_us: Some(100.0),
        lag_p99_us: Some(10.0),
        request_log: None,
    }
}

fn only_reason(facts: &Facts, validity: Validity, beginning: &str) {
    let verdict = judge(facts);
    assert_eq!(verdict.validity, validity, "{verdict:?}");
    assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
    assert!(verdict.reasons[0].starts_with(beginning), "{verdict:?}");
}

#[test]
fn a_good_load_is_valid_without_a_word() {
    let verdict = judge(&good());
    assert_eq!(
        verdict,
        Verdict {
            validity: Validity::Valid,
            reasons: vec![],
            kinds: vec![]
        }
    );
}

#[test]
fn a_load_without_an_answer_is_invalid() {
    let mut facts = good();
    facts.requests.completed = 0;
    only_reason(
        &facts,
        Validity::Invalid,
        "no request was answered (1000 were sent)",
    );
}

#[test]
fn ports_that_are_used_up_are_not_called_the_targets_fault() {
    let mut facts = good();
    facts.errors.count(ErrorKind::Connect);
    facts.requests.failed = 1;
    let cause = |facts: &Facts| judge(facts).reasons.remove(0);
    assert!(cause(&facts).ends_with("the target refuses connections or its accept queue is full"));
    assert_eq!(judge(&facts).kinds, ["failed"]);
    facts.ports_used_up = true;
    assert_eq!(judge(&facts).kinds, ["ports"]);
    assert!(cause(&facts).contains("this machine's ports towards the target are used up"));
}

#[test]
fn redirects_are_mentioned_when_they_are_most_of_the_answers() {
    let mut facts = good();
    facts.redirects = 501;
    only_reason(
        &facts,
        Validity::Valid,
        "501 answers were redirects; they are not followed",
    );
    facts.redirects = 500;
    assert_eq!(judge(&facts).reasons, Vec::<String>::new());
}

#[test]
fn a_failed_request_makes_a_load_suspect() {
    let mut facts = good();
    facts.requests.failed = 3;
    facts.errors.timeout = 2;
    facts.errors.reset = 1;
    only_reason(
        &facts,
        Validity::Suspect,
        "3 of 1000 requests failed (timeout 2, reset 1; limit 0): the target is slower",
    );
}

#[test]
fn an_open_loop_that_falls_behind_is_suspect() {
    let mut facts = good();
    facts.requests.unsent = 1;
    only_reason(
        &facts,
        Validity::Suspect,
        "1 of 1000 requests were due and not sent",
    );
    let mut facts = good();
    facts.sent_rps = 98.9;
    only_reason(
        &facts,
        Validity::Suspect,
        "98.9 requests a second were sent where 100 were asked for (limit 99 %)",
    );
    let mut facts = good();
    facts.lag_p99_us = Some(10.1);
    only_reason(
        &facts,
        Validity::Suspect,
        "the 99th percentile of the schedule lag is 10.1 us, above 10 %",
    );
    let mut facts = good();
    facts.busy_fraction = 0.85;
    only_reason(&facts, Validity::Suspect, "the generator was busy 85 %");
}

#[test]
fn a_load_that_was_to_end_at_a_failure_is_not_blamed_for_it() {
    let mut facts = good();
    facts.requests.failed = 1;
    facts.errors.reset = 1;
    facts.is_until_failure = true;
    only_reason(
        &facts,
        Validity::Valid,
        "ended at the first failure, as asked: 1 of 1000 requests failed (reset 1",
    );
}

#[test]
fn percentiles_that_requests_without_an_answer_may_have_passed_are_lower_bounds() {
    let mut facts = good();
    facts.requests.unanswered = 10;
    assert_eq!(judge(&facts).reasons, Vec::<String>::new());
    facts.requests.unanswered = 11;
    only_reason(
        &facts,
        Validity::Valid,
        "p99 and above are lower bounds: 11 of 1000 requests had no answer",
    );
    facts.requests.unsent = 500;
    let reasons = judge(&facts).reasons;
    assert!(reasons[1].starts_with("p50 and above are lower bounds: 511 of 1000"));
}

#[test]
fn a_throughput_at_the_cap_of_its_ramp_says_that_the_load_is_the_limit() {
    let mut facts = good();
    facts.asked_rate_rps = None;
    facts.ramp = Some(Ramp {
        users: 2000.0,
        within_s: 50.0,
        loops: 5,
    });
    facts.completed_rps = 189.9;
    assert_eq!(judge(&facts).reasons, Vec::<String>::new());
    facts.completed_rps = 190.0;
    only_reason(
        &facts,
        Validity::Suspect,
        "the load itself caps the throughput: 190.0 requests a second were answered, and 2000 users who come within 50.0 s and ask 5 times each bring about 200.0 to any server (limit 95 %)",
    );
}

#[test]
fn gaps_in_the_request_log_are_told_with_their_cause_and_change_no_figure() {
    let mut log = RequestLogSummary {
        records: 990,
        lost: 10,
        problem: None,
    };
    let reason = |log: &RequestLogSummary| {
        let mut facts = good();
        facts.request_log = Some(log);
        let verdict = judge(&facts);
        assert_eq!(verdict.validity, Validity::Valid);
        verdict.reasons.concat()
    };
    let beginning = "10 of 1000 records are missing in the request log (limit 0): the ";
    assert!(reason(&log).starts_with(&format!("{beginning}disk, or the CPU")));
    log.problem = Some("No space left on device".to_owned());
    let full = format!("{beginning}file took no more (No space left on device)");
    assert_eq!(reason(&log), full);
    log.lost = 0;
    assert_eq!(reason(&log), "");
}

#[test]
fn a_busy_closed_loop_stays_valid_and_says_that_it_may_be_the_limit() {
    let mut facts = good();
    facts.asked_rate_rps = None;
    facts.busy_fraction = 0.97;
    facts.lag_p99_us = Some(1e6);
    only_reason(&facts, Validity::Valid, "the generator was busy 97 %");
}
