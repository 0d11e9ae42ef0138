//! Connections: sockets, local addresses, pipelining and TLS.

use std::net::IpAddr;

use serde::Deserialize;

use crate::scenario::Scenario;
use crate::{Load, MAX_CONNECTIONS, MAX_PIPELINE, Plan, PlanError, Target};

/// Maximum length of a Unix socket's path, without its final zero.
const MAX_UNIX_PATH_BYTES: usize = 107;

/// TLS settings for an `https://` target. Files are read once, before the load.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// PEM file of trusted authorities, instead of the system's.
    pub ca: Option<String>,
    /// PEM file of the client certificate; needs `key`.
    pub certificate: Option<String>,
    /// PEM file of its private key.
    pub key: Option<String>,
    /// Whether to accept any certificate of the server.
    pub insecure: bool,
    /// Expected name of the server, instead of the URL's host.
    pub server_name: Option<String>,
    /// Whether a connection may resume an earlier session, as browsers do.
    pub resumption: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self { ca: None, certificate: None, key: None, insecure: false, server_name: None, resumption: true }
    }
}

impl Plan {
    /// Returns the Unix socket of a target. Returns `None` if it has none.
    pub fn unix_path(&self, target: &Target) -> Option<String> {
        self.unix.clone().or_else(|| target.unix.clone())
    }

    pub(crate) fn validate_transport(&self, target: &Target) -> Result<(), PlanError> {
        if let (Some(path), true) = (&self.unix, target.unix.is_some()) {
            return Err(PlanError::value(
                "unix",
                format_args!("{path:?} beside a target that names a socket"),
                "one of the two",
            ));
        }
        if let Some(path) = self.unix.as_ref().or(target.unix.as_ref()) {
            PlanError::reject_if(
                path.is_empty() || path.len() > MAX_UNIX_PATH_BYTES || path.contains('\0'),
                "unix",
                format_args!("{path:?}"),
                format_args!("the path of a socket, of 1 to {MAX_UNIX_PATH_BYTES} bytes"),
            )?;
            if let Some(address) = self.address {
                return Err(PlanError::value(
                    "address",
                    format_args!("{address} beside a Unix socket"),
                    "one of the two",
                ));
            }
        }
        let fixed = match (self.address, &self.unix, &target.unix) {
            (Some(_), ..) => Some("address"),
            (None, None, None) => None,
            _ => Some("a Unix socket"),
        };
        if let (Some(fixed), true) = (fixed, self.all_addresses) {
            return Err(PlanError::value(
                "all_addresses",
                format_args!("true beside {fixed}"),
                "false, or a host whose addresses are looked up",
            ));
        }
        PlanError::reject_if(
            self.kernel_timestamps && (self.unix.is_some() || target.unix.is_some()),
            "kernel_timestamps",
            "true beside a Unix socket",
            "false: the kernel stamps packets, of which a Unix socket has none",
        )?;
        self.validate_local_addresses(target)?;
        self.validate_tls(target)
    }

    /// Checks that pipelining is on reused connections, with users who never pause.
    pub(crate) fn validate_pipeline(&self) -> Result<(), PlanError> {
        let depth = self.pipeline;
        if depth == 1 {
            return Ok(());
        }
        if !(1..=MAX_PIPELINE).contains(&depth) {
            let expected = format_args!("a number from 1 to {MAX_PIPELINE}");
            return Err(PlanError::value("pipeline", depth, expected));
        }
        let beside = match &self.load {
            _ if !self.keep_alive => Some("keep_alive: false"),
            _ if !self.keeps_connections() => Some("a header Connection: close"),
            _ if self.scenario.as_ref().is_some_and(Scenario::needs_responses) => {
                Some("a scenario with cookies, extraction, a pause, or users that leave")
            }
            Load::Closed(closed) if !closed.is_plain() => Some("users over time, a think time, loops or a pace"),
            Load::Open(open) if open.session.is_some() => Some("sessions"),
            _ => None,
        };
        if let Some(beside) = beside {
            return Err(PlanError::value(
                "pipeline",
                format_args!("{depth} beside {beside}"),
                "1, or reused connections with one request and no pauses",
            ));
        }
        let connections = self.load.connections();
        PlanError::reject_if(
            connections.saturating_mul(depth) > MAX_CONNECTIONS,
            "pipeline",
            format_args!("{depth} on each of {connections} connections"),
            format_args!("at most {MAX_CONNECTIONS} requests at a time"),
        )?;
        Ok(())
    }

    fn validate_local_addresses(&self, target: &Target) -> Result<(), PlanError> {
        let Some(&first) = self.local_addresses.first() else {
            return Ok(());
        };
        PlanError::reject_if(
            self.unix.is_some() || target.unix.is_some(),
            "local_addresses",
            format_args!("{first} beside a Unix socket"),
            "none: a Unix socket has no addresses",
        )?;
        let is_of_family = |address: &&IpAddr| {
            self.address.is_none_or(|to| to.is_ipv4() == address.is_ipv4()) && first.is_ipv4() == address.is_ipv4()
        };
        if let Some(other) = self.local_addresses.iter().find(|address| !is_of_family(address)) {
            return Err(PlanError::value(
                "local_addresses",
                other,
                "addresses of the target's family, all IPv4 or all IPv6",
            ));
        }
        Ok(())
    }

    fn validate_tls(&self, target: &Target) -> Result<(), PlanError> {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        PlanError::reject_if(
            !target.is_tls,
            "tls",
            format_args!("settings for {:?}", self.urls()[0]),
            "none, or a target that begins with https://",
        )?;
        if tls.certificate.is_some() != tls.key.is_some() {
            let (given, missing) = if tls.key.is_none() {
                ("a certificate without its key", "tls.key")
            } else {
                ("a key without its certificate", "tls.certificate")
            };
            return Err(PlanError::value(missing, given, "both tls.certificate and tls.key, or neither"));
        }
        PlanError::reject_if(tls.insecure && tls.ca.is_some(), "tls.insecure", "true beside tls.ca", "one of the two")?;
        Ok(())
    }
}
