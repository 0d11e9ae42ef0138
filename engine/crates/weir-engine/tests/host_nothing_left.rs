//! No process survives, whichever process is killed.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod host_support;

use host_support::{Host, kill, marked, marker, modes, parent_of, wait_until_count, wait_until_gone};

/// A server with a child, a grandchild that left its session and whose parent is gone, and one that ignores SIGTERM: 4
/// processes.
fn family(mark: &str) -> String {
    format!("sleep {mark} & (setsid sleep {mark} &) ; (trap '' TERM; exec setsid sleep {mark}) & exec sleep {mark}")
}

fn with_family() -> Vec<(Host, String, i32)> {
    modes()
        .into_iter()
        .map(|mode| {
            let mut host = Host::new(mode);
            let mark = marker();
            let server = host.start("app", &family(&mark));
            wait_until_count(&mark, 4);
            (host, mark, server)
        })
        .collect()
}

#[test]
fn stop_takes_daemons_and_the_deaf_with_it() {
    for (mut host, mark, _) in with_family() {
        host.stop("app", 5.0);
        assert_eq!(marked(&mark), [0; 0], "{}", host.hello);
    }
}

#[test]
fn exit_of_the_server_ends_its_descendants() {
    for (mut host, mark, server) in with_family() {
        kill(server, "-KILL");
        let exited = host.record("exited", |record| record["record"] == "exited");
        assert_eq!(exited["signal"], 9);
        assert_eq!(marked(&mark), [0; 0], "{}", host.hello);
    }
}

#[test]
fn closed_input_of_the_host_leaves_nothing() {
    for (mut host, mark, _) in with_family() {
        host.close_input();
        assert_eq!(host.child.wait().unwrap().code(), Some(0));
        assert_eq!(marked(&mark), [0; 0], "{}", host.hello);
    }
}

#[test]
fn sigterm_to_the_host_leaves_nothing() {
    for (mut host, mark, _) in with_family() {
        kill(i32::try_from(host.child.id()).unwrap(), "-TERM");
        host.child.wait().unwrap();
        assert_eq!(marked(&mark), [0; 0], "{}", host.hello);
    }
}

#[test]
fn kill_9_of_the_host_leaves_nothing() {
    for (mut host, mark, server) in with_family() {
        let init = parent_of(server);
        host.child.kill().unwrap();
        host.child.wait().unwrap();
        wait_until_gone(&mark);
        host_support::wait_for("the end of the init", || {
            (!std::path::Path::new(&format!("/proc/{init}")).exists()).then_some(())
        });
    }
}

#[test]
fn killed_init_leaves_nothing_and_is_reported() {
    for (mut host, mark, server) in with_family() {
        kill(parent_of(server), "-KILL");
        let exited = host.record("exited", |record| record["record"] == "exited");
        assert_eq!(exited["signal"], 9);
        assert_eq!(marked(&mark), [0; 0], "{}", host.hello);
        host.start("app", "exit 0");
    }
}

#[test]
fn stopped_init_is_killed_with_its_descendants() {
    for (mut host, mark, server) in with_family() {
        kill(parent_of(server), "-STOP");
        let stopped = host.stop("app", 0.1);
        assert_eq!(stopped["killed"], true);
        assert_eq!(marked(&mark), [0; 0], "{}", host.hello);
    }
}

#[test]
fn host_without_reader_ends() {
    for mode in modes() {
        let mut command = std::process::Command::new("sh");
        // `head` takes hello and ends; the host's input stays open.
        command.args(["-c", "exec 3<&0; \"$0\" host --isolation \"$1\" <&3 | head -n1"]);
        command.args([env!("CARGO_BIN_EXE_weir-engine"), mode]);
        let mut host = Host::spawn(command);
        assert!(host.child.wait().unwrap().success());
    }
}

#[test]
fn hosts_killed_during_a_start_leave_nothing() {
    for mode in modes() {
        let mark = marker();
        for _ in 0..20 {
            let mut host = Host::new(mode);
            let start = host.shell("app", &family(&mark));
            host.send(start);
            host.child.kill().unwrap();
            host.child.wait().unwrap();
        }
        wait_until_gone(&mark);
        // A start that was still under way would show up now.
        let mut host = Host::new(mode);
        host.start("app", "exit 0");
        host.record("exited", |record| record["record"] == "exited");
        assert_eq!(marked(&mark), [0; 0]);
    }
}
