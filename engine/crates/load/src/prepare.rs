//! Prepares a load: resolves, reads and renders everything that its plan refers to.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use weir_http::{Http1Writer, RequestParts, encode_request};
use weir_net::tls::{Client, Settings, SettingsError};
use weir_net::{Endpoint, MAX_LINGERING};
use weir_plan::scenario::Scenario;
use weir_plan::{Body, Load, Plan, PlanError, Process, Profile, Target, Think, Tls};
use weir_scenario::{Base, Compiled};
use weir_schedule::Shard;

use crate::LoadError;

/// Open files of a process beside its connections: streams, epoll, pipes.
const OTHER_FILES: u64 = 64;
/// Time to connect to one of several addresses.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A plan, and everything that it refers to.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// Endpoints of the connections to each target, in turn.
    pub endpoints: Vec<Vec<Endpoint>>,
    /// Choices that the user should know.
    pub(crate) notes: Vec<String>,
    /// Settings of TLS for each target, empty without TLS.
    pub tls: Vec<Settings>,
    /// The bytes of every request, for each target.
    pub requests: Vec<Vec<u8>>,
    /// The scenario, if users do not send one request.
    pub scenario: Option<Arc<Compiled>>,
}

impl Prepared {
    /// Resolves the target, reads the body and renders the request.
    ///
    /// # Errors
    /// When the host has no address, the body's file cannot be read, or the connections are more than this process may
    /// have.
    pub fn new(mut plan: Plan) -> Result<Self, LoadError> {
        let targets = plan.parsed_targets()?;
        allow_files(own_connections(&plan), plan.threads)?;
        let body = read_body(plan.request.body.as_ref())?;
        let render = |target: &Target| {
            encode_request::<Http1Writer>(&RequestParts {
                method: plan.request.method.as_str(),
                path_and_query: &target.path_and_query,
                authority: &target.authority,
                headers: &plan.request.headers,
                body: body.as_deref(),
                keep_alive: plan.keeps_connections(),
            })
        };
        let requests: Vec<Vec<u8>> = targets.iter().map(render).collect();
        if let Some(request) = requests.iter().find(|request| u32::try_from(request.len()).is_err()) {
            return Err(
                PlanError::value("request.body", format_args!("{} bytes", request.len()), "less than 4 GiB").into()
            );
        }
        let scenario = compile_scenario(&plan, &targets[0])?.map(Arc::new);
        let pauses = |scenario: &Scenario| scenario.all().any(|step| step.think.is_some());
        if let (Load::Closed(closed), true) = (&mut plan.load, plan.scenario.as_ref().is_some_and(pauses)) {
            // Users whose steps pause have a time of their own.
            closed.think.get_or_insert(Think::ConstantS(0.0));
        }
        let encrypted = targets.iter().filter(|target| target.is_tls);
        let mut notes = Vec::new();
        Ok(Self {
            endpoints: endpoints(&plan, &targets, &mut notes)?,
            notes,
            tls: encrypted.map(|target| tls_settings(&plan, target)).collect::<Result<_, _>>()?,
            plan,
            requests,
            scenario,
        })
    }

    /// Returns the intended rate of an open loop that lasted so long and had so many due requests.
    pub(crate) fn asked_rate_rps(&self, lasted_s: f64, due: u64) -> Option<f64> {
        let Load::Open(open) = &self.plan.load else {
            return None;
        };
        let is_given = open.arrivals == Process::Constant
            && open.session.is_none()
            && self.plan.requests.is_none()
            && self.plan.until.is_none();
        match open.rate_rps {
            // Arrivals at even distances are spread evenly over the threads.
            Profile::Constant(rate_rps) if is_given => {
                Some(rate_rps * self.plan.threads as f64 / self.plan.all_threads() as f64)
            }
            _ if lasted_s > 0.0 => Some(due as f64 / lasted_s),
            _ => None,
        }
    }

    /// Returns by status whether it is right.
    pub(crate) fn right_statuses(&self) -> Box<[bool; 1000]> {
        let mut right = Box::new([false; 1000]);
        match &self.plan.check.status {
            Some(statuses) => statuses.iter().for_each(|&status| right[usize::from(status)] = true),
            None => right[..400].fill(true),
        }
        right
    }
}

/// Reads the feeders and compiles the scenario, for as many threads as there are.
fn compile_scenario(plan: &Plan, target: &Target) -> Result<Option<Compiled>, LoadError> {
    let Some(scenario) = &plan.scenario else {
        return Ok(None);
    };
    let mut contents = BTreeMap::new();
    for (name, feeder) in &scenario.feeders {
        let content = std::fs::read(&feeder.file).map_err(|problem| LoadError::Feeder {
            name: name.clone(),
            path: feeder.file.clone(),
            problem,
        })?;
        contents.insert(name.clone(), content);
    }
    let base = Base {
        authority: &target.authority,
        path_prefix: target.path_and_query.trim_end_matches('/'),
        keep_alive: plan.keeps_connections(),
        right_statuses: plan.check.status.as_deref(),
    };
    let compiled = weir_scenario::compile::<Http1Writer>(scenario, &contents, &base)?;
    for k in 0..plan.threads {
        compiled.worker(shard(plan, k), plan.seed)?;
    }
    Ok(Some(compiled))
}

/// Returns a thread's share of the load.
pub(crate) fn shard(plan: &Plan, thread: usize) -> Shard {
    let first = plan.part.map_or(0, |part| part.first);
    Shard::new((first + thread) as u64, plan.all_threads() as u64).unwrap_or(Shard::WHOLE)
}

/// Returns how many connections this engine makes.
pub(crate) fn own_connections(plan: &Plan) -> usize {
    let all = plan.load.connections() as u64;
    let own: u64 = (0..plan.threads).map(|thread| shard(plan, thread).count(all)).sum();
    own as usize
}

/// Returns the endpoints of each target: each of its addresses from each local address.
fn endpoints(plan: &Plan, targets: &[Target], notes: &mut Vec<String>) -> Result<Vec<Vec<Endpoint>>, LoadError> {
    let of_target = |target| {
        let to = addresses(plan, target, notes)?;
        if plan.local_addresses.is_empty() {
            return Ok(to);
        }
        let from_each = plan.local_addresses.iter().flat_map(|&address| {
            to.iter().map(move |endpoint| match endpoint {
                &Endpoint::Tcp { to, .. } => Endpoint::Tcp { to, from: Some(address) },
                Endpoint::Unix(_) => endpoint.clone(),
            })
        });
        Ok(from_each.collect())
    };
    targets.iter().map(of_target).collect()
}

/// Returns the endpoints of a target, without local addresses.
fn addresses(plan: &Plan, target: &Target, notes: &mut Vec<String>) -> Result<Vec<Endpoint>, LoadError> {
    if let Some(path) = plan.unix_path(target) {
        return Endpoint::unix(&path)
            .map(|endpoint| vec![endpoint])
            .map_err(|errno| PlanError::value("unix", format_args!("{path:?}"), errno).into());
    }
    if let Some(address) = plan.address {
        return Ok(vec![address.into()]);
    }
    let from = plan.local_addresses.first().copied();
    let Resolved { addresses, note } = resolve(target, from, plan.all_addresses)?;
    notes.extend(note);
    Ok(addresses.into_iter().map(Endpoint::from).collect())
}

/// Reads and checks the files that TLS needs.
fn tls_settings(plan: &Plan, target: &Target) -> Result<Settings, LoadError> {
    let tls = plan.tls.clone().unwrap_or_default();
    let system_roots = if tls.insecure || tls.ca.is_some() {
        Vec::new()
    } else {
        // Unreadable certificates of the system's store are not trusted. The first connection reports that.
        rustls_native_certs::load_native_certs().certs
    };
    let settings = Settings {
        ca_pem: read_pem("tls.ca", tls.ca.as_ref())?,
        system_roots,
        identity_pem: read_pem("tls.certificate", tls.certificate.as_ref())?
            .zip(read_pem("tls.key", tls.key.as_ref())?),
        insecure: tls.insecure,
        server_name: tls.server_name.clone().unwrap_or_else(|| target.host.clone()),
        resumption: tls.resumption,
    };
    Client::new(&settings).map_err(|error| tls_error(&tls, error))?;
    Ok(settings)
}

fn read_pem(key: &'static str, path: Option<&String>) -> Result<Option<Vec<u8>>, LoadError> {
    let read = |path: &String| {
        std::fs::read(path).map_err(|error| LoadError::Tls { key, found: path.clone(), problem: error.to_string() })
    };
    path.map(read).transpose()
}

fn tls_error(tls: &Tls, error: SettingsError) -> LoadError {
    let problem = error.to_string();
    let (key, found) = match error {
        SettingsError::Ca => ("tls.ca", tls.ca.clone()),
        SettingsError::Certificate => ("tls.certificate", tls.certificate.clone()),
        SettingsError::Key | SettingsError::Identity(_) => ("tls.key", tls.key.clone()),
        SettingsError::ServerName(name) => {
            return LoadError::Tls {
                key: "tls.server_name",
                found: name,
                problem: "neither a host name nor an IP address".to_owned(),
            };
        }
        SettingsError::Provider(_) => return LoadError::System(std::io::Error::other(problem)),
    };
    LoadError::Tls { key, found: found.unwrap_or_default(), problem }
}

fn read_body(body: Option<&Body>) -> Result<Option<Vec<u8>>, LoadError> {
    match body {
        None => Ok(None),
        Some(Body::Text(text)) => Ok(Some(text.clone().into_bytes())),
        Some(Body::Base64(encoded)) => Ok(Some(Body::decode_base64(encoded)?)),
        Some(Body::File(path)) => {
            std::fs::read(path).map(Some).map_err(|problem| LoadError::Body { path: path.clone(), problem })
        }
    }
}

/// Returns the addresses of the target that accept connections, in the resolver's order: the first, or with `all` each
/// of them. If none does, returns the first of all: the load reports its error. With `from`, only addresses of its
/// family are tried.
fn resolve(target: &Target, from: Option<IpAddr>, all: bool) -> Result<Resolved, LoadError> {
    let unknown = |problem: String| LoadError::Resolve { host: target.host.clone(), problem };
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let found = (target.host.as_str(), target.port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    // RFC 6761, section 6.3: localhost has both loopback addresses, though a hosts file may name only one. Node listens
    // on ::1 alone.
    let loopbacks = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let is_localhost = target.host.eq_ignore_ascii_case("localhost");
    let known = loopbacks.map(|address| SocketAddr::new(address, target.port));
    for address in found.chain(known.into_iter().filter(|_| is_localhost)) {
        let is_of_family = from.is_none_or(|from| from.is_ipv4() == address.is_ipv4());
        if is_of_family && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let Some(&first) = addresses.first() else {
        return Err(unknown(match from {
            None => "no address found".to_owned(),
            Some(from) => format!("no address of the family of {from} found"),
        }));
    };
    if addresses.len() == 1 {
        return Ok(Resolved { addresses, note: None });
    }
    let accepts = |to: &SocketAddr| TcpStream::connect_timeout(to, PROBE_TIMEOUT).is_ok();
    let (used, refusing): (Vec<SocketAddr>, Vec<SocketAddr>) = if all {
        addresses.into_iter().partition(accepts)
    } else {
        let nth = addresses.iter().position(accepts).unwrap_or(0);
        (vec![addresses[nth]], addresses[..nth].to_vec())
    };
    if used.is_empty() {
        return Ok(Resolved { addresses: vec![first], note: None });
    }
    let go = format!("{}: connections go to {}", target.host, list(&used));
    let note = match refusing.is_empty() {
        true => all.then_some(go),
        false => Some(format!("{go}, because {} accepts none", list(&refusing))),
    };
    Ok(Resolved { addresses: used, note })
}

fn list(addresses: &[SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    texts.join(", ")
}

/// The addresses of a target.
struct Resolved {
    addresses: Vec<SocketAddr>,
    /// What the user should know of the choice.
    note: Option<String>,
}

/// Raises the limit of open files as far as the connections need and the system allows.
fn allow_files(connections: usize, threads: usize) -> Result<(), LoadError> {
    let others = OTHER_FILES + (threads * MAX_LINGERING) as u64;
    let needed = connections as u64 + others;
    weir_sys::limits::raise_open_files(needed);
    let current = weir_sys::limits::max_open_files();
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    Err(LoadError::Files { connections, limit: current.unwrap_or(0).saturating_sub(others) })
}
