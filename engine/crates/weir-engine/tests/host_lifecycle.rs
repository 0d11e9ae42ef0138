//! Starts, stops and exits of processes, and their records.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod host_support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use host_support::{Host, is_root, marker, modes, wait_for};
use serde_json::json;

#[test]
fn hello_has_version_and_isolation() {
    for mode in modes() {
        let host = Host::new(mode);
        assert_eq!(host.hello["schema"], 1);
        assert_eq!(host.hello["pid"], host.child.id());
        assert_eq!(host.hello["isolation"], mode);
        assert!(!host.hello["isolation_detail"].as_str().unwrap().is_empty());
    }
}

#[test]
fn exit_code_is_reported() {
    for mode in modes() {
        let mut host = Host::new(mode);
        host.start("app", "exit 7");
        let exited = host.record("exited", |record| record["record"] == "exited");
        assert_eq!(exited["name"], "app");
        assert_eq!(exited["exit_code"], 7);
        assert_eq!(exited["signal"], json!(null));
        let stopped = host.stop("app", 1.0);
        assert_eq!(stopped["record"], "stopped");
        assert_eq!(stopped["exit_code"], 7);
        assert_eq!(stopped["killed"], false);
        assert_eq!(stopped["cpu_user_s"], exited["cpu_user_s"]);
        assert_eq!(host.stop("app", 1.0)["record"], "error", "it is stopped");
    }
}

#[test]
fn exit_by_signal_is_reported() {
    for mode in modes() {
        let mut host = Host::new(mode);
        host.start("app", "kill -SEGV $$");
        let exited = host.record("exited", |record| record["record"] == "exited");
        assert_eq!(exited["exit_code"], json!(null));
        assert_eq!(exited["signal"], 11);
    }
}

#[test]
fn stop_sends_sigterm_and_reports_the_exit() {
    for mode in modes() {
        let mut host = Host::new(mode);
        host.start("polite", "trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done");
        host.start("plain", "exec sleep 1000");
        wait_for("the trap", || host.log("polite").contains("up").then_some(()));
        let polite = host.stop("polite", 10.0);
        assert_eq!((&polite["exit_code"], &polite["killed"]), (&json!(3), &json!(false)));
        let plain = host.stop("plain", 10.0);
        assert_eq!((&plain["signal"], &plain["killed"]), (&json!(15), &json!(false)));
    }
}

#[test]
fn deaf_process_is_killed_after_the_grace_period() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let mark = marker();
        host.start("deaf", &format!("trap '' TERM; echo up; while :; do sleep 0.1{mark}; done"));
        wait_for("the trap", || host.log("deaf").contains("up").then_some(()));
        let stopped = host.stop("deaf", 0.2);
        assert_eq!(stopped["killed"], true);
        assert_eq!(stopped["signal"], 9);
        assert!(host_support::marked(&mark).is_empty(), "replied before all was gone");
    }
}

#[test]
fn left_behind_processes_are_named() {
    for mode in modes() {
        let mut host = Host::new(mode);
        // Its child leaves its session, so that the group's SIGTERM does not reach it.
        host.start("careless", "setsid sh -c 'echo up; while :; do sleep 1000; done' & exec sleep 1000");
        wait_for("its child", || host.log("careless").contains("up").then_some(()));
        let stopped = host.stop("careless", 5.0);
        assert_eq!(stopped["killed"], false);
        let left = stopped["left_behind"].as_array().unwrap();
        assert!(left.contains(&json!("sh")), "{left:?} {}", host.hello);
        // Children that are told to end along with it may do so after it.
        host.start("tidy", "trap 'exit 0' TERM; sh -c 'echo up; sleep 1000; :' & wait");
        wait_for("the trap", || host.log("tidy").contains("up").then_some(()));
        assert_eq!(host.stop("tidy", 5.0)["left_behind"], json!([]));
    }
}

#[test]
fn files_outside_the_folder_are_reported() {
    if !is_root() {
        return eprintln!("left out: not root");
    }
    let mut host = Host::new("namespace");
    let elsewhere = host_support::folder();
    let (left, gone) = (elsewhere.join("left"), elsewhere.join("gone"));
    let script = format!(
        "echo own > own; echo x > {0}; echo x > {1}; rm {1}; echo up; exec sleep 1000",
        left.display(),
        gone.display()
    );
    let mut start = host.shell("untidy", &script);
    start["watch_writes"] = json!(true);
    assert_eq!(host.ask(start)["record"], "started");
    wait_for("its files", || host.log("untidy").contains("up").then_some(()));
    let stopped = host.stop("untidy", 5.0);
    assert_eq!(stopped["written"], json!([left]));
    host.start("unwatched", &script);
    assert_eq!(host.stop("unwatched", 5.0)["written"], json!(null));
    std::fs::remove_dir_all(elsewhere).unwrap();
}

#[test]
fn slow_stop_delays_no_other_command() {
    let mut host = Host::new(modes()[0]);
    host.start("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done");
    wait_for("the trap", || host.log("deaf").contains("up").then_some(()));
    let stop = host.send(json!({"command": "stop", "name": "deaf", "grace_s": 1.0}));
    host.start("other", "exec sleep 1000");
    assert_eq!(host.stop("other", 1.0)["signal"], 15);
    assert_eq!(host.stop("deaf", 1.0)["record"], "error", "it is being stopped");
    let stopped = host.record("stopped", |record| record["id"] == stop);
    assert_eq!(stopped["killed"], true);
}

#[test]
fn name_is_free_after_the_exit() {
    let mut host = Host::new(modes()[0]);
    host.start("app", "exec sleep 1000");
    let again = host.shell("app", "exit 0");
    let refused = host.ask(again.clone());
    assert_eq!(refused["record"], "error");
    assert!(refused["message"].as_str().unwrap().contains("`app`"));
    host.stop("app", 1.0);
    assert_eq!(host.ask(again)["record"], "started");
}

#[test]
fn failed_start_names_the_key() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let text_file = host.folder().join("text");
        std::fs::write(&text_file, "not a program").unwrap();
        for (key, value, expected) in [
            ("argv", json!(["no-such-program"]), "argv: command `no-such-program` not found in PATH=/usr"),
            ("argv", json!(["/no/such/program"]), "argv: found no program /no/such/program"),
            ("argv", json!([text_file]), "is not executable"),
            ("cwd", json!("/no/such/folder"), "cwd: /no/such/folder"),
            ("cwd", json!(text_file), "is not a folder"),
            ("log", json!("/no/such/folder/app.log"), "log: /no/such/folder/app.log cannot be written"),
            ("cpus", json!([1000]), "cpus: CPU 1000"),
            ("nice", json!(50), "start.nice: found 50"),
            ("argv", json!([]), "start.argv"),
            ("grace", json!(1), "`grace`"),
        ] {
            let mut start = host.shell("app", "exit 0");
            start[key] = value;
            let reply = host.ask(start);
            assert_eq!(reply["record"], "error", "{reply}");
            assert_eq!(reply.get("code"), None);
            let message = reply["message"].as_str().unwrap();
            assert!(message.contains(expected), "{message} has no {expected}");
        }
        host.start("app", "exit 0");
    }
}

#[test]
fn invalid_command_is_an_error_record() {
    let mut host = Host::new(modes()[0]);
    host.send_line("{oops");
    let refused = host.record("error", |record| record["record"] == "error");
    assert_eq!(refused["id"], json!(null));
    host.start("app", "exit 0");
}

#[test]
fn environment_is_exact_and_log_is_appended() {
    for mode in modes() {
        let mut host = Host::new(mode);
        std::fs::write(host.folder().join("app.log"), "before\n").unwrap();
        let mut start = host.shell("app", "");
        start["argv"] = json!(["/usr/bin/env"]);
        start["env"] = json!({"ONE": "1", "TWO": "a b"});
        host.ask(start);
        host.record("exited", |record| record["record"] == "exited");
        assert_eq!(host.log("app"), "before\nONE=1\nTWO=a b\n");
    }
}

#[test]
fn without_rights_the_host_says_so_and_works() {
    if !is_root() {
        eprintln!("left out: not root, every other test runs without rights");
        return;
    }
    let copy = host_support::folder().join("weir-engine");
    std::fs::copy(env!("CARGO_BIN_EXE_weir-engine"), &copy).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(&copy).arg("host");
    let mut host = Host::spawn(command);
    assert_eq!(host.hello["isolation"], "process-group");
    let detail = host.hello["isolation_detail"].as_str().unwrap();
    assert!(detail.contains("unshare(CLONE_NEWPID)"), "{detail}");
    let mark = marker();
    host.start("app", &format!("sh -c 'setsid sleep {mark} & exit 0'; exec sleep {mark}"));
    host_support::wait_until_count(&mark, 2);
    assert_eq!(host.stop("app", 5.0)["signal"], 15);
    assert!(host_support::marked(&mark).is_empty());
    let mut start = host.shell("root", "exit 0");
    start["user"] = json!({"uid": 0, "gid": 0});
    let refused = host.ask(start);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("user: this process may not become 0:0"), "{message}");
    let forced = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["host", "--isolation", "namespace"])
        .output()
        .unwrap();
    assert_eq!(forced.status.code(), Some(2));
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
}

#[test]
fn process_runs_as_its_user_only() {
    if !is_root() {
        eprintln!("left out: becoming another user takes root");
        return;
    }
    for mode in modes() {
        let mut host = Host::new(mode);
        let mark = marker();
        let mut start = host.shell(
            "app",
            &format!("id -u; id -g; id -G; touch made; (setsid sleep {mark} &); echo made; exec sleep {mark}"),
        );
        start["user"] = json!({"uid": 65534, "gid": 65533});
        assert_eq!(host.ask(start)["record"], "started");
        host_support::wait_for("its children", || host.log("app").contains("made").then_some(()));
        assert_eq!(host.log("app"), "65534\n65533\n65533\nmade\n");
        let made = std::fs::metadata(host.folder().join("made")).unwrap();
        assert_eq!((made.uid(), made.gid()), (65534, 65533));
        assert_eq!(host.stop("app", 5.0)["signal"], 15);
        assert!(host_support::marked(&mark).is_empty());
    }
}

#[test]
fn inaccessible_program_names_the_user() {
    if !is_root() {
        eprintln!("left out: becoming another user takes root");
        return;
    }
    let mut host = Host::new(modes()[0]);
    let closed = host.folder().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut start = host.shell("app", "exit 0");
    start["user"] = json!({"uid": 65534, "gid": 65534});
    start["cwd"] = json!(closed);
    let refused = host.ask(start.clone());
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("user 65534:65534") && message.contains("closed"), "{message}");
    start["user"] = json!({"uid": 4_294_967_295_u32, "gid": 65534});
    let refused = host.ask(start);
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("start.user: found"), "{message}");
}
