//! In an init: the server's own network namespace. Its `eth0` is one end of a veth pair; the host has the other end.
//!
//! ```text
//! host: weirN 198.18.x.y ─── veth ─── eth0 198.18.x.y+1: published_port ─ redirect ─► port
//! ```
//!
//! Only processes hold the namespace. When the last one ends, the kernel removes the namespace with its pair,
//! addresses, queueing disciplines and rules. So nothing has a name under /run/netns. The port is translated inside the
//! namespace, because a rule of the host would outlive it.
//!
//! `ip`, `tc` and `nft` set it up before the server starts. An error can show these commands, and users can repeat
//! them.

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use rustix::pipe::PipeFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};
use weir_sys::clock::monotonic_ns;

use crate::command::Network;
use crate::launch::Failure;
use weir_sys::process as sys;

/// First of the addresses reserved for measurements (RFC 2544, RFC 6890). A pair has a subnet of four.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const SUBNETS: u64 = 1 << 15;
/// Maximum number of subnets to try. A subnet may belong to another server.
const MAX_TRIES: u64 = 64;
/// Folders of the tools, which are not in every user's PATH.
const SYSTEM_PATHS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";
const HINT: &str =
    "run as root (CAP_NET_ADMIN) with iproute2, or leave [network] out; `weir doctor` shows what is possible";

/// The means of each network feature, or the reason against it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Abilities {
    pub network: Result<String, String>,
    pub port_translation: Result<String, String>,
    pub netem: Result<String, String>,
}

impl Abilities {
    /// Returns the same reason against each feature.
    pub fn none(why: &str) -> Self {
        Self { network: Err(why.to_owned()), port_translation: Err(why.to_owned()), netem: Err(why.to_owned()) }
    }
}

/// The network namespaces of the host and of the server.
struct Namespaces {
    host: File,
    own: File,
}

/// Enters a new network namespace. Returns the server's address.
pub fn enter(wanted: &Network) -> Result<Ipv4Addr, Failure> {
    let (namespaces, pair) = connect().map_err(|why| Failure::new(why, HINT))?;
    if wanted.delay_ms > 0.0 || wanted.loss > 0.0 {
        delay(&namespaces, &pair, wanted).map_err(|why| {
            let hint = "a kernel with CONFIG_NET_SCH_NETEM (`modprobe sch_netem`) and `tc` of iproute2, or leave delay_ms and loss out";
            Failure::new(format!("network.delay_ms, network.loss: {why}"), hint)
        })?;
    }
    if wanted.published_port != wanted.port {
        translate(wanted.published_port, wanted.port).map_err(|why| {
            let hint =
                "`apt-get install nftables`, or leave publish out: clients then connect to the server's own port";
            Failure::new(format!("network.published_port: {why}"), hint)
        })?;
    }
    Ok(pair.inside)
}

/// Tries each feature in a new network namespace.
pub fn probe() -> Abilities {
    let connected = connect();
    let reached = || connected.as_ref().map_err(|_| "there is no network namespace".to_owned());
    Abilities {
        port_translation: reached().and_then(|_| translate(1234, 8000)).map(|()| "nft".to_owned()),
        netem: reached().and_then(|_| netem("eth0", 1000, 0.0).map(|()| "tc, sch_netem".to_owned())),
        network: connected.map(|(_, pair)| format!("a veth pair, such as {} and {}", pair.outside, pair.inside)),
    }
}

/// A veth pair: its name on the host's side, and its addresses.
struct Pair {
    name: String,
    outside: Ipv4Addr,
    inside: Ipv4Addr,
}

impl Pair {
    fn numbered(number: u64) -> Self {
        let subnet = number % SUBNETS;
        let address = |host: u32| Ipv4Addr::from(FIRST_ADDRESS + 4 * subnet as u32 + host);
        Self { name: format!("weir{subnet}"), outside: address(1), inside: address(2) }
    }
}

/// Makes a namespace and a veth pair, and brings both ends up.
fn connect() -> Result<(Namespaces, Pair), String> {
    let open = || File::open("/proc/self/ns/net").map_err(|error| format!("/proc/self/ns/net: {error}"));
    let host = open()?;
    sys::unshare_network().map_err(|error| format!("unshare(CLONE_NEWNET): {error}"))?;
    let namespaces = Namespaces { host, own: open()? };
    let pair = make_pair(&namespaces)?;
    let Pair { name, outside, inside } = &pair;
    ip(&format!("link set lo up\naddr add {inside}/30 dev eth0\nlink set eth0 up\n"))?;
    namespaces.in_host_namespace(|| ip(&format!("addr add {outside}/30 dev {name}\nlink set {name} up\n")))?;
    Ok((namespaces, pair))
}

/// Makes the pair from inside the namespace, which owns one end from the start. Tries the next subnet if the host has
/// its name already.
fn make_pair(namespaces: &Namespaces) -> Result<Pair, String> {
    let first = monotonic_ns() / 1000;
    let mut why = String::new();
    for number in first..first + MAX_TRIES {
        let pair = Pair::numbered(number);
        // The tool names the host's namespace by its standard input.
        let host = namespaces.host.try_clone().map_err(|error| error.to_string())?;
        let arguments = ["link", "add", "eth0", "type", "veth", "peer", "name", &pair.name, "netns", "/proc/self/fd/0"];
        match run("ip", &arguments, Stdio::from(host)) {
            Ok(()) => return Ok(pair),
            Err(error) if error.contains("File exists") => why = error,
            Err(error) => return Err(error),
        }
    }
    Err(why)
}

/// Sets half of the delay at each end, because each end delays what it sends.
fn delay(namespaces: &Namespaces, pair: &Pair, wanted: &Network) -> Result<(), String> {
    let half_us = (wanted.delay_ms * 500.0).round() as u64;
    netem("eth0", half_us, wanted.loss)?;
    namespaces.in_host_namespace(|| netem(&pair.name, half_us, wanted.loss))
}

fn netem(device: &str, delay_us: u64, loss: f64) -> Result<(), String> {
    // The default limit of 1,000 packets would drop packets of a fast server during a long delay.
    let limit = "limit 1000000";
    let percent = loss * 100.0;
    let line = format!("qdisc add dev {device} root netem {limit} delay {delay_us}us loss {percent}%");
    let arguments: Vec<_> = line.split(' ').collect();
    run("tc", &arguments, Stdio::null()).map_err(|why| {
        if why.contains("qdisc kind is unknown") { format!("this kernel has no netem (sch_netem): {why}") } else { why }
    })
}

/// Redirects connections from one port to another, like a container's published port.
fn translate(from: u16, to: u16) -> Result<(), String> {
    let rules = format!(
        "table ip weir {{\n\
           chain published {{\n\
             type nat hook prerouting priority dstnat\n\
             tcp dport {from} redirect to :{to}\n\
           }}\n\
         }}\n"
    );
    run_with_input("nft", &["-f", "-"], &rules)
}

fn ip(commands: &str) -> Result<(), String> {
    run_with_input("ip", &["-batch", "-"], commands)
}

impl Namespaces {
    fn in_host_namespace<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let go = |to: &File| {
            move_into_link_name_space(to.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| format!("setns(CLONE_NEWNET): {error}"))
        };
        go(&self.host)?;
        let done = act();
        go(&self.own)?;
        done
    }
}

/// Runs a tool with `input` as its standard input.
fn run_with_input(tool: &str, arguments: &[&str], input: &str) -> Result<(), String> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
    // The pipe has room for these few lines.
    let mut writer = File::from(writer);
    writer.write_all(input.as_bytes()).map_err(|error| error.to_string())?;
    drop(writer);
    run(tool, arguments, Stdio::from(reader))
}

fn run(tool: &str, arguments: &[impl AsRef<str>], input: Stdio) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(tool);
    command.args(arguments.iter().map(AsRef::as_ref)).env("PATH", format!("{path}:{SYSTEM_PATHS}")).stdin(input);
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{tool} is not installed"),
        _ => format!("{tool}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    // The first line names the error.
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.lines().map(str::trim).find(|line| !line.is_empty());
    Err(format!("{tool}: {}", text.map_or(output.status.to_string(), str::to_owned)))
}
