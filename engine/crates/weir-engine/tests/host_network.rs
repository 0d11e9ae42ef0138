//! Network namespaces: servers are reachable, and no network is left.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod host_support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use host_support::{Host, modes, wait_for};
use serde_json::{Value, json};

/// A host that can do what `key` of its capabilities names, or None with a line that says why not.
fn able_host(mode: &str, key: &str) -> Option<Host> {
    let mut host = Host::new(mode);
    let found = host.ask(json!({"command": "capabilities"}));
    if found[key]["possible"] == true {
        return Some(host);
    }
    eprintln!("left out: {key}: {}", found[key]["detail"]);
    None
}

/// Starts a server that listens on every address of its network; gives where it is reached.
fn serve(host: &mut Host, name: &str, port: u16, network: &Value) -> SocketAddr {
    let mut start = host.shell(name, "");
    let engine = env!("CARGO_BIN_EXE_weir-engine");
    start["argv"] = json!([engine, "serve", "null", "--listen", format!("0.0.0.0:{port}")]);
    start["network"] = network.clone();
    let started = host.ask(start);
    assert_eq!(started["record"], "started", "{started}");
    wait_for("the server", || host.log(name).contains("listening").then_some(()));
    let address = started["address"].as_str().unwrap();
    let published = &network["published_port"];
    format!("{address}:{published}").parse().unwrap()
}

/// One request; gives the first line of its response.
fn ask(server: SocketAddr) -> std::io::Result<String> {
    let mut connection = TcpStream::connect_timeout(&server, Duration::from_secs(5))?;
    connection.write_all(b"GET / HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    connection.read_to_string(&mut response)?;
    Ok(response.lines().next().unwrap_or_default().to_owned())
}

/// Whether an address of the pair that leads to `server` is still this machine's.
fn is_connected(server: SocketAddr) -> bool {
    let SocketAddr::V4(server) = server else {
        panic!("{server} is no IPv4 address");
    };
    let ours = u32::from(*server.ip()) - 1;
    let ours = std::net::Ipv4Addr::from(ours);
    std::net::UdpSocket::bind((ours, 0)).is_ok()
}

const PLAIN: &str = r#"{"port": 8000, "published_port": 8000}"#;

#[test]
fn server_in_its_network_is_reached_there_only() {
    for mode in modes() {
        let Some(mut host) = able_host(mode, "network") else {
            return;
        };
        let plain = serde_json::from_str(PLAIN).unwrap();
        let one = serve(&mut host, "one", 8000, &plain);
        // The same port once more: every network has all ports.
        let other = serve(&mut host, "other", 8000, &plain);
        assert_ne!(one, other);
        assert_eq!(ask(one).unwrap(), "HTTP/1.1 200 OK");
        assert_eq!(ask(other).unwrap(), "HTTP/1.1 200 OK");
        // Whoever reads a network's counters could hold it.
        for _ in 0..2 {
            let sample = host.ask(json!({"command": "sample"}));
            for group in sample["groups"].as_array().unwrap() {
                assert!(group["network"].is_object(), "{group}");
            }
        }
        host.stop("one", 5.0);
        assert_eq!(ask(other).unwrap(), "HTTP/1.1 200 OK");
        wait_for("the end of the pair", || (!is_connected(one)).then_some(()));
        assert!(is_connected(other));
    }
}

#[test]
fn published_port_is_translated() {
    let Some(mut host) = able_host(modes()[0], "port_translation") else {
        return;
    };
    let network = json!({"port": 8000, "published_port": 1234});
    let published = serve(&mut host, "app", 8000, &network);
    assert_eq!(published.port(), 1234);
    assert_eq!(ask(published).unwrap(), "HTTP/1.1 200 OK");
}

#[test]
fn delay_is_added_to_a_round_trip() {
    let Some(mut host) = able_host(modes()[0], "netem") else {
        return;
    };
    let network = json!({"port": 8000, "published_port": 8000, "delay_ms": 40});
    let server = serve(&mut host, "app", 8000, &network);
    let took_ms = (0..10).map(|_| {
        let begin = Instant::now();
        // One round trip to connect, another to ask.
        ask(server).unwrap();
        begin.elapsed().as_secs_f64() * 1000.0
    });
    // On a busy machine most may take longer.
    let least_ms = took_ms.fold(f64::INFINITY, f64::min);
    assert!((80.0..160.0).contains(&least_ms), "{least_ms} ms");
}

#[test]
fn missing_netem_is_named() {
    let mut host = Host::new(modes()[0]);
    let found = host.ask(json!({"command": "capabilities"}));
    if found["network"]["possible"] == false || found["netem"]["possible"] == true {
        eprintln!("left out: this takes network namespaces without netem");
        return;
    }
    let mut start = host.shell("app", "exit 0");
    start["network"] = json!({"port": 8000, "published_port": 8000, "delay_ms": 40});
    let refused = host.ask(start);
    assert_eq!(refused["record"], "error");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("network.delay_ms, network.loss"), "{message}");
    assert!(refused["hint"].as_str().unwrap().contains("sch_netem"));
}

#[test]
fn network_without_privilege_is_an_error() {
    if !host_support::is_root() {
        let mut host = Host::new(modes()[0]);
        let found = host.ask(json!({"command": "capabilities"}));
        assert_eq!(found["network"]["possible"], false);
        return;
    }
    let copy = host_support::folder().join("weir-engine");
    std::fs::copy(env!("CARGO_BIN_EXE_weir-engine"), &copy).unwrap();
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(&copy).arg("host");
    let mut host = Host::spawn(command);
    let found = host.ask(json!({"command": "capabilities"}));
    for key in ["limits", "network", "port_translation", "netem"] {
        assert_eq!(found[key]["possible"], false, "{found}");
        assert!(!found[key]["detail"].as_str().unwrap().is_empty());
    }
    let mut start = host.shell("app", "exit 0");
    start["network"] = serde_json::from_str(PLAIN).unwrap();
    let refused = host.ask(start.clone());
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("unshare(CLONE_NEWNET)"), "{message}");
    start.as_object_mut().unwrap().remove("network");
    start["limits"] = json!({"cpus": 0.5});
    let refused = host.ask(start);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("no control group can be made"), "{message}");
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
}

#[test]
fn kill_9_of_the_host_leaves_no_pair() {
    for mode in modes() {
        let Some(mut host) = able_host(mode, "network") else {
            return;
        };
        let server = serve(&mut host, "app", 8000, &serde_json::from_str(PLAIN).unwrap());
        assert!(is_connected(server));
        host.child.kill().unwrap();
        host.child.wait().unwrap();
        wait_for("the end of the pair", || (!is_connected(server)).then_some(()));
    }
}

#[test]
fn network_tools_are_not_the_servers_cpu() {
    let Some(mut host) = able_host(modes()[0], "network") else {
        return;
    };
    let used = |stopped: &Value| stopped["cpu_user_s"].as_f64().unwrap() + stopped["cpu_system_s"].as_f64().unwrap();
    // The least of some: a busy machine makes every one of them dearer at times.
    let (mut with, mut without) = (f64::MAX, f64::MAX);
    for count in 0..5 {
        let (app, plain) = (format!("app-{count}"), format!("plain-{count}"));
        let mut start = host.shell(&app, "exec sleep 1000");
        start["network"] = serde_json::from_str(PLAIN).unwrap();
        host.ask(start);
        host.start(&plain, "exec sleep 1000");
        with = with.min(used(&host.stop(&app, 5.0)));
        without = without.min(used(&host.stop(&plain, 5.0)));
    }
    assert!(with < without + 0.01, "{with} s, {without} s without a network");
}
