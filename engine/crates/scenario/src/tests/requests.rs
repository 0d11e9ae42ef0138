use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;
use weir_schedule::Shard;

use super::*;
use crate::Capture;

#[test]
fn a_constant_request_is_rendered_once_and_for_all() {
    let mut alone = Alone::new(&json!({"steps": [{"path": "/a?b=c", "headers": [["X-Y", "z"]]}]}));
    let (issued, bytes) = alone.issue().unwrap();
    assert!(issued.is_constant);
    assert_eq!(bytes, "GET /a?b=c HTTP/1.1\r\nHost: host:80\r\nX-Y: z\r\n\r\n");
}

#[test]
fn a_body_from_a_template_is_sent_with_its_length() {
    let mut alone = Alone::new(&json!({"steps": [{"method": "POST", "path": "/{{seq}}", "body": "{\"n\":{{seq}}}"}]}));
    for n in 0..12 {
        let body = format!("{{\"n\":{n}}}");
        let expected = format!("POST /{n} HTTP/1.1\r\nHost: host:80\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let (issued, bytes) = alone.issue().unwrap();
        assert_eq!((issued.is_constant, bytes), (false, expected));
    }
}

#[test]
fn a_constant_body_and_none_at_all_say_their_length_where_it_is_asked_for() {
    let end = |step: Value| {
        let request = Alone::new(&json!({"steps": [step]})).request();
        request.split_once("Host: host:80\r\n").unwrap().1.to_owned()
    };
    assert_eq!(end(json!({"method": "PUT", "path": "/", "body": "é"})), "Content-Length: 2\r\n\r\né");
    assert_eq!(end(json!({"method": "POST", "path": "/", "body": ""})), "Content-Length: 0\r\n\r\n");
    assert_eq!(end(json!({"method": "POST", "path": "/{{seq}}"})), "Content-Length: 0\r\n\r\n");
    assert_eq!(end(json!({"path": "/"})), "\r\n");
}

#[test]
fn the_host_is_the_steps_own_where_it_says_it() {
    let mut alone =
        Alone::new(&json!({"steps": [{"path": "/", "headers": [["user-agent", "me"], ["host", "h{{seq}}"]]}]}));
    assert_eq!(alone.request(), "GET / HTTP/1.1\r\nuser-agent: me\r\nhost: h0\r\n\r\n");
}

#[test]
fn a_prefix_comes_before_every_path() {
    let spec = serde_json::from_value(json!({"steps": [{"path": "/a"}, {"path": "/{{seq}}"}]})).unwrap();
    let base = Base { path_prefix: "/api", ..BASE };
    let compiled = compile::<Http1Writer>(&spec, &BTreeMap::new(), &base).unwrap();
    let (mut worker, mut user) = (compiled.worker(Shard::WHOLE, 1).unwrap(), compiled.user(0, 1));
    let mut out = Vec::new();
    user.next::<Http1Writer>(&compiled, &mut worker, &mut out).unwrap();
    assert!(compiled.constant(0).unwrap().starts_with(b"GET /api/a HTTP"));
    user.next::<Http1Writer>(&compiled, &mut worker, &mut out).unwrap();
    assert!(out.starts_with(b"GET /api/1 HTTP"));
}

#[test]
fn steps_come_in_order_and_begin_again() {
    let mut alone = Alone::new(&json!({"steps": [{"path": "/a"}, {"path": "/b"}, {"path": "/{{seq}}"}]}));
    let paths: Vec<String> = (0..6).map(|_| alone.path()).collect();
    assert_eq!(paths, ["/a", "/b", "/2", "/a", "/b", "/5"]);
}

#[test]
fn requests_come_as_often_as_their_weights_say() {
    let mut alone =
        Alone::new(&json!({"requests": [{"path": "/a", "weight": 6}, {"path": "/b", "weight": 3}, {"path": "/c"}]}));
    let mut counts = [0_u32; 3];
    for _ in 0..10_000 {
        counts[alone.issue().unwrap().0.step] += 1;
    }
    for (count, expected) in counts.into_iter().zip([6_000, 3_000, 1_000]) {
        assert!(count.abs_diff(expected) < 250, "{counts:?}");
    }
}

#[test]
fn a_request_to_head_is_told_apart() {
    let mut alone = Alone::new(&json!({"steps": [{"method": "HEAD", "path": "/"}, {"path": "/"}]}));
    assert!(alone.issue().unwrap().0.is_head);
    assert!(!alone.issue().unwrap().0.is_head);
}

#[test]
fn a_row_is_the_users_for_a_whole_round() {
    let spec = json!({
        "steps": [{"path": "/login/{{csv users.name}}"}, {"path": "/user/{{csv users.id}}/{{csv users.name}}"}],
        "feeders": {"users": {"format": "csv", "file": "users.csv"}},
    });
    let mut alone = Alone::with(&spec, &[("users", "id,name\n1,ada\n2,bob\n")]);
    let paths: Vec<String> = (0..6).map(|_| alone.path()).collect();
    assert_eq!(paths, ["/login/ada", "/user/1/ada", "/login/bob", "/user/2/bob", "/login/ada", "/user/1/ada"]);
}

#[test]
fn a_weighted_request_has_a_row_of_its_own_each_time() {
    let spec = json!({
        "requests": [{"path": "/{{json items.id}}/{{json items./tags/0}}"}],
        "feeders": {"items": {"format": "json_lines", "file": "items.jsonl"}},
    });
    let mut alone =
        Alone::with(&spec, &[("items", "{\"id\": 1, \"tags\": [\"x\"]}\n{\"id\": 2, \"tags\": [\"y\"]}\n")]);
    assert_eq!([alone.path(), alone.path(), alone.path()], ["/1/x", "/2/y", "/1/x"]);
}

#[test]
fn a_user_stops_where_a_feeder_ends() {
    let spec = json!({
        "steps": [{"path": "/a"}, {"path": "/{{csv users.id}}"}],
        "feeders": {"users": {"format": "csv", "file": "users.csv", "at_end": "stop"}},
    });
    let mut alone = Alone::with(&spec, &[("users", "id\n1\n")]);
    assert_eq!([alone.path(), alone.path(), alone.path()], ["/a", "/1", "/a"]);
    assert!(alone.issue().is_none());
    assert!(alone.issue().is_none());
}

#[test]
fn no_number_and_no_row_comes_twice_on_any_thread() {
    let spec = json!({
        "steps": [{"path": "/{{seq}}/{{csv users.id}}"}],
        "feeders": {"users": {"format": "csv", "file": "users.csv", "mode": "shuffled", "at_end": "stop"}},
    });
    let rows: String = (0..30).map(|n| format!("{n}\n")).collect();
    let compiled = try_compile(&spec, &[("users", &format!("id\n{rows}"))]).unwrap();
    let (mut numbers, mut ids, mut out) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for k in 0..3 {
        let mut worker = compiled.worker(Shard::new(k, 3).unwrap(), 7).unwrap();
        let mut users = [compiled.user(2 * k, 7), compiled.user(2 * k + 1, 7)];
        for turn in 0..10 {
            out.clear();
            users[turn % 2].next::<Http1Writer>(&compiled, &mut worker, &mut out).unwrap();
            let text = String::from_utf8(out.clone()).unwrap();
            let mut path = text.split(' ').nth(1).unwrap().split('/').skip(1);
            assert!(numbers.insert(path.next().unwrap().parse::<u64>().unwrap()));
            assert!(ids.insert(path.next().unwrap().parse::<u64>().unwrap()));
        }
        assert!(users[0].next::<Http1Writer>(&compiled, &mut worker, &mut out).is_none());
    }
    assert!(numbers.into_iter().eq(0..30));
    assert!(ids.into_iter().eq(0..30));
}

#[test]
fn the_same_seed_and_number_draw_the_same_inputs_and_others_do_not() {
    let spec = json!({"steps": [{"path": "/{{uuid}}/{{int 0 1000000}}/{{word 8}}"}]});
    let compiled = try_compile(&spec, &[]).unwrap();
    let first = |number, seed| {
        let mut out = Vec::new();
        let mut worker = compiled.worker(Shard::WHOLE, seed).unwrap();
        compiled.user(number, seed).next::<Http1Writer>(&compiled, &mut worker, &mut out).unwrap();
        out
    };
    assert_eq!(first(3, 1), first(3, 1));
    assert_ne!(first(3, 1), first(4, 1));
    assert_ne!(first(3, 1), first(3, 2));
}

#[test]
fn random_values_are_what_they_are_asked_to_be() {
    let mut alone = Alone::new(
        &json!({"steps": [{"path": "/", "body": "{{uuid}} {{int -2 2}} {{word 12}} {{int -9223372036854775808 9223372036854775807}}"}]}),
    );
    let (mut ints, mut uuids) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..500 {
        let body = alone.body();
        let values: Vec<&str> = body.split(' ').collect();
        let groups: Vec<&str> = values[0].split('-').collect();
        assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(groups[2].starts_with('4') && groups[3].starts_with(['8', '9', 'a', 'b']), "{}", values[0]);
        assert!(groups.iter().all(|group| group.bytes().all(|b| b"0123456789abcdef".contains(&b))));
        assert!(uuids.insert(values[0].to_owned()));
        ints.insert(values[1].parse::<i64>().unwrap());
        assert!(values[2].len() == 12 && values[2].bytes().all(|b| b.is_ascii_alphabetic()));
        values[3].parse::<i64>().unwrap();
    }
    assert!(ints.into_iter().eq(-2..=2));
}

#[test]
fn every_letter_of_a_word_is_about_as_frequent() {
    let mut alone = Alone::new(&json!({"steps": [{"path": "/", "body": "{{word 52000}}"}]}));
    let mut counts = [0_u32; 128];
    alone.body().bytes().for_each(|letter| counts[usize::from(letter)] += 1);
    let letters: Vec<u32> = counts.into_iter().filter(|&count| count > 0).collect();
    assert_eq!(letters.len(), 52);
    // Five standard deviations of a binomial count of 1,000.
    assert!(letters.iter().all(|count| count.abs_diff(1_000) < 158), "{letters:?}");
}

#[test]
fn a_value_cannot_break_out_of_its_place() {
    let spec = json!({
        "steps": [{"path": "/x/{{csv f.v}}?q={{csv f.v}}", "headers": [["X", "{{csv f.v}}"]], "body": "{{csv f.v}}"}],
        "feeders": {"f": {"format": "csv", "file": "f.csv"}},
    });
    let mut alone = Alone::with(&spec, &[("f", "v\n\"a b/c&d=%é\r\nX: y\"\n")]);
    let request = alone.request();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let encoded = "a%20b/c%26d%3D%25%C3%A9%0D%0AX:%20y";
    assert!(head.starts_with(&format!("GET /x/{encoded}?q={encoded} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("\r\nX: a b/c&d=%é  X: y\r\n"), "{head}");
    assert_eq!(body, "a b/c&d=%é\r\nX: y");
}

#[test]
fn what_a_step_needs_of_its_response_is_no_more_than_it_reads() {
    let needs = |step: Value, cookies: &str| {
        let alone = Alone::new(&json!({"steps": [step], "cookies": cookies, "capture_bytes": 100}));
        let needs = alone.compiled.needs(0);
        (needs.head, needs.body)
    };
    assert_eq!(needs(json!({"path": "/"}), "off"), (false, Capture::Nothing));
    assert_eq!(needs(json!({"path": "/"}), "user"), (true, Capture::Nothing));
    assert_eq!(needs(json!({"path": "/", "check": {"max_body_bytes": 9}}), "off"), (false, Capture::Length));
    assert_eq!(needs(json!({"path": "/", "check": {"json": {"": 9}}}), "off"), (false, Capture::UpTo(100)));
    assert_eq!(needs(json!({"path": "/", "extract": {"a": {"regex": "x"}}}), "off"), (false, Capture::UpTo(100)));
    assert_eq!(needs(json!({"path": "/", "extract": {"a": {"header": "x"}}}), "off"), (true, Capture::Nothing));
}

#[test]
fn pauses_are_drawn_from_their_distribution() {
    let mean_s = |think: Value| {
        let mut alone = Alone::new(&json!({"steps": [{"path": "/", "think": think}]}));
        let times: Option<Vec<f64>> =
            (0..10_000).map(|_| Some(alone.user.think_ns(&alone.compiled, 0)? as f64 / 1e9)).collect();
        let times = times?;
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        Some((mean, times.into_iter().fold(f64::INFINITY, f64::min)))
    };
    assert_eq!(mean_s(Value::Null), None);
    assert_eq!(mean_s(json!({"constant_s": 0.25})), Some((0.25, 0.25)));
    let (mean, least) = mean_s(json!({"uniform_s": [1.0, 3.0]})).unwrap();
    assert!((mean - 2.0).abs() < 0.03 && least >= 1.0, "{mean} {least}");
    let (mean, _) = mean_s(json!({"exponential_s": 2.0})).unwrap();
    assert!((mean - 2.0).abs() < 0.1, "{mean}");
}

#[test]
fn names_are_given_or_made_and_always_differ() {
    let alone = Alone::new(
        &json!({"steps": [{"path": "/a"}, {"path": "/a", "name": "again"}, {"path": "/a"}, {"path": "/a"}]}),
    );
    let names: Vec<&str> = alone.compiled.names().collect();
    assert_eq!(names, ["GET /a", "again", "GET /a #2", "GET /a #3"]);
}

proptest! {
    #[test]
    fn every_request_is_one_that_a_server_reads(
        text in ".{0,20}",
        body in prop::option::of("[^{}]{0,20}(\\{\\{(seq|uuid|word 3|csv f\\.v)\\}\\})?[^{}]{0,20}"),
        method in prop::sample::select(vec!["GET", "POST", "DELETE"]),
    ) {
        let spec = json!({
            "requests": [{"method": method, "path": "/{{csv f.v}}", "headers": [["X-V", "{{csv f.v}}"]], "body": body}],
            "feeders": {"f": {"format": "json_lines", "file": "f"}},
        });
        let spec_text = spec.to_string().replace("csv f", "json f");
        let line = json!({"v": text}).to_string();
        let mut alone = Alone::with(&serde_json::from_str(&spec_text).unwrap(), &[("f", &line)]);
        let request = alone.request();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let lines: Vec<&str> = head.split("\r\n").collect();
        prop_assert!(lines.iter().all(|line| !line.contains(['\r', '\n', '\0'])), "{head:?}");
        prop_assert_eq!(lines[0].split(' ').count(), 3);
        prop_assert!(lines[0].bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "));
        prop_assert_eq!(length.map_or(0, |length| length.parse::<usize>().unwrap()), body.len());
    }
}
