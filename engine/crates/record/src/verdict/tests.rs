use super::*;

fn good() -> Facts<'static> {
    Facts {
        requests: Requests { intended: 1000, sent: 1000, completed: 1000, ok: 1000, ..Requests::default() },
        redirects: 0,
        stalls: StallDetector::default(),
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
fn good_load_has_no_reasons() {
    let verdict = judge(&good());
    assert_eq!(verdict, Verdict { validity: Validity::Valid, reasons: vec![], kinds: vec![] });
}

#[test]
fn load_without_response_is_invalid() {
    let mut facts = good();
    facts.requests.completed = 0;
    only_reason(&facts, Validity::Invalid, "no response arrived (1000 requests were sent)");
}

#[test]
fn used_up_ports_are_no_failure_of_the_target() {
    let mut facts = good();
    facts.errors.count(ErrorKind::Connect, 1);
    facts.requests.failed = 1;
    let cause = |facts: &Facts| judge(facts).reasons.remove(0);
    assert!(cause(&facts).ends_with("the target refuses connections or its accept queue is full"));
    assert_eq!(judge(&facts).kinds, ["failed"]);
    facts.ports_used_up = true;
    assert_eq!(judge(&facts).kinds, ["ports"]);
    assert!(cause(&facts).contains("this machine's ports towards the target are used up"));
}

#[test]
fn majority_of_redirects_is_reported() {
    let mut facts = good();
    facts.redirects = 501;
    only_reason(&facts, Validity::Valid, "501 responses were redirects, which weir does not follow");
    facts.redirects = 500;
    assert_eq!(judge(&facts).reasons, Vec::<String>::new());
}

#[test]
fn failed_request_is_suspect() {
    let mut facts = good();
    facts.requests.failed = 3;
    facts.errors.count(ErrorKind::Timeout, 2);
    facts.errors.count(ErrorKind::Reset, 1);
    only_reason(
        &facts,
        Validity::Suspect,
        "3 of 1000 requests failed (timeout 2, reset 1; limit 0): the target is slower",
    );
}

#[test]
fn late_open_loop_is_suspect() {
    let mut facts = good();
    facts.requests.unsent = 1;
    only_reason(&facts, Validity::Suspect, "1 of 1000 requests were due and not sent");
    let mut facts = good();
    facts.sent_rps = 98.9;
    only_reason(&facts, Validity::Suspect, "98.9 requests per second were sent, 100 were requested (limit 99 %)");
    let mut facts = good();
    facts.lag_p99_us = Some(10.1);
    only_reason(&facts, Validity::Suspect, "the 99th percentile of the schedule lag is 10.1 us, above 10 %");
    let mut facts = good();
    facts.busy_fraction = 0.85;
    only_reason(&facts, Validity::Suspect, "the generator was busy 85 %");
}

#[test]
fn load_until_failure_stays_valid() {
    let mut facts = good();
    facts.requests.failed = 1;
    facts.errors.count(ErrorKind::Reset, 1);
    facts.is_until_failure = true;
    only_reason(&facts, Validity::Valid, "ended at the first failure, as asked: 1 of 1000 requests failed (reset 1");
}

#[test]
fn missing_responses_make_lower_bounds() {
    let mut facts = good();
    facts.requests.unanswered = 10;
    assert_eq!(judge(&facts).reasons, Vec::<String>::new());
    facts.requests.unanswered = 11;
    only_reason(&facts, Validity::Valid, "p99 and above are lower bounds: 11 of 1000 requests had no response");
    facts.requests.unsent = 500;
    let reasons = judge(&facts).reasons;
    assert!(reasons[1].starts_with("p50 and above are lower bounds: 511 of 1000"));
}

#[test]
fn ramp_can_limit_the_throughput() {
    let mut facts = good();
    facts.asked_rate_rps = None;
    facts.ramp = Some(Ramp { users: 2000.0, within_s: 50.0, loops: 5 });
    facts.completed_rps = 189.9;
    assert_eq!(judge(&facts).reasons, Vec::<String>::new());
    facts.completed_rps = 190.0;
    only_reason(
        &facts,
        Validity::Suspect,
        "the load itself caps the throughput: 190.0 requests per second were answered, and 2000 users who arrive within 50.0 s and send 5 requests each bring about 200.0 to any server (limit 95 %)",
    );
}

#[test]
fn lost_records_are_reported_with_their_cause() {
    let mut log = RequestLogSummary { records: 990, lost: 10, problem: None };
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
fn busy_closed_loop_stays_valid() {
    let mut facts = good();
    facts.asked_rate_rps = None;
    facts.busy_fraction = 0.97;
    facts.lag_p99_us = Some(1e6);
    only_reason(&facts, Validity::Valid, "the generator was busy 97 %");
}

#[test]
fn many_requests_that_were_sent_again_are_suspect() {
    let mut facts = good();
    facts.requests.retried = 10;
    assert_eq!(judge(&facts).validity, Validity::Valid);
    facts.requests.retried = 11;
    only_reason(
        &facts,
        Validity::Suspect,
        "11 of 1000 requests were sent a second time (limit 1 %): the server closes connections that clients reuse",
    );
}
