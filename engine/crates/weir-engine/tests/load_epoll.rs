//! All load cases on epoll.
#![allow(clippy::unwrap_used)]

#[path = "load_cases/failures.rs"]
mod failures;
#[path = "load_cases/hostile.rs"]
mod hostile;
mod load_support;
#[path = "load_cases/open.rs"]
mod open;
#[path = "load_cases/pipelining.rs"]
mod pipelining;
#[path = "load_cases/request_log.rs"]
mod request_log;
#[path = "load_cases/responses.rs"]
mod responses;
#[path = "load_cases/reuse.rs"]
mod reuse;
#[path = "load_cases/scenario.rs"]
mod scenario;
#[path = "load_cases/servers.rs"]
mod servers;
#[path = "load_cases/stamps.rs"]
mod stamps;
#[path = "load_cases/targets.rs"]
mod targets;
#[path = "load_cases/tls.rs"]
mod tls;
#[path = "load_cases/transport.rs"]
mod transport;
#[path = "load_cases/users.rs"]
mod users;

/// The back end that every plan here asks for.
const BACKEND: &str = "epoll";
