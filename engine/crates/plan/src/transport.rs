//! How connections are made: kept or not, from where, over what, and with which certificates.

use std::net::IpAddr;

use serde::Deserialize;

use crate::{Load, MAX_CONNECTIONS, MAX_PIPELINE, Plan, PlanError, Target};

/// The longest path of a Unix socket: what the system's address holds, less its end.
const MAX_UNIX_PATH_BYTES: usize = 107;

/// TLS, for an `https://` target. Paths are read once, before the load.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// File of the authorities to trust instead of the system's, in PEM.
    #[serde(default)]
    pub ca: Option<String>,
    /// File of the certificate to show to the server, in PEM; needs `key`.
    #[serde(default)]
    pub certificate: Option<String>,
    /// File of its private key, in PEM.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether any certificate of the server is good enough.
    #[serde(default)]
    pub insecure: bool,
    /// The name to ask for and to look for in the certificate, instead of the URL's host.
    #[serde(default)]
    pub server_name: Option<String>,
    /// Whether a connection may resume the session of one before it, as browsers do.
    #[serde(default = "default_resumption")]
    pub resumption: bool,
}

fn default_resumption() -> bool {
    true
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            ca: None,
            certificate: None,
            key: None,
            insecure: false,
            server_name: None,
            resumption: true,
        }
    }
}

impl Plan {
    /// The Unix socket to connect to for a target, if any.
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
            if path.is_empty() || path.len() > MAX_UNIX_PATH_BYTES || path.contains('\0') {
                return Err(PlanError::value(
                    "unix",
                    format_args!("{path:?}"),
                    format_args!("the path of a socket, of 1 to {MAX_UNIX_PATH_BYTES} bytes"),
                ));
            }
            if let Some(address) = self.address {
                return Err(PlanError::value(
                    "address",
                    format_args!("{address} beside a Unix socket"),
                    "one of the two",
                ));
            }
        }
        if self.kernel_timestamps && (self.unix.is_some() || target.unix.is_some()) {
            return Err(PlanError::value(
                "kernel_timestamps",
                "true beside a Unix socket",
                "false: the kernel stamps packets, of which a Unix socket has none",
            ));
        }
        self.validate_local_addresses(target)?;
        self.validate_tls(target)
    }

    /// Several requests at a time are on connections that are kept, and of users who wait for nothing.
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
            _ if self.scenario.is_some() => Some("a scenario"),
            Load::Closed(closed) if !closed.is_plain() => {
                Some("users over time, a think time, loops or a pace")
            }
            Load::Open(open) if open.session.is_some() => Some("sessions"),
            _ => None,
        };
        if let Some(beside) = beside {
            return Err(PlanError::value(
                "pipeline",
                format_args!("{depth} beside {beside}"),
                "1, or connections that are kept and all ask the same without a pause",
            ));
        }
        let connections = self.load.connections();
        if connections.saturating_mul(depth) > MAX_CONNECTIONS {
            return Err(PlanError::value(
                "pipeline",
                format_args!("{depth} on each of {connections} connections"),
                format_args!("at most {MAX_CONNECTIONS} requests at a time"),
            ));
        }
        Ok(())
    }

    fn validate_local_addresses(&self, target: &Target) -> Result<(), PlanError> {
        let Some(&first) = self.local_addresses.first() else {
            return Ok(());
        };
        if self.unix.is_some() || target.unix.is_some() {
            return Err(PlanError::value(
                "local_addresses",
                format_args!("{first} beside a Unix socket"),
                "none: a Unix socket has no addresses",
            ));
        }
        let is_of_family = |address: &&IpAddr| {
            self.address
                .is_none_or(|to| to.is_ipv4() == address.is_ipv4())
                && first.is_ipv4() == address.is_ipv4()
        };
        if let Some(other) = self
            .local_addresses
            .iter()
            .find(|address| !is_of_family(address))
        {
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
        if !target.is_tls {
            return Err(PlanError::value(
                "tls",
                format_args!("settings for {:?}", self.urls()[0]),
                "none, or a target that begins with https://",
            ));
        }
        if tls.certificate.is_some() != tls.key.is_some() {
            let (given, missing) = if tls.key.is_none() {
                ("a certificate without its key", "tls.key")
            } else {
                ("a key without its certificate", "tls.certificate")
            };
            return Err(PlanError::value(
                missing,
                given,
                "both tls.certificate and tls.key, or neither",
            ));
        }
        if tls.insecure && tls.ca.is_some() {
            return Err(PlanError::value(
                "tls.insecure",
                "true beside tls.ca",
                "one of the two",
            ));
        }
        Ok(())
    }
}
