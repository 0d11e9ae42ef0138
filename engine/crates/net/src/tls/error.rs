//! Errors in settings and connections, in words for the user.

use std::fmt;

use rustls::{CertificateError, Error};

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The authorities' PEM holds no certificate.
    #[error("no certificate in PEM")]
    Ca,
    /// The client's PEM holds no certificate.
    #[error("no certificate in PEM")]
    Certificate,
    /// The key's PEM holds no private key.
    #[error("no private key in PEM")]
    Key,
    /// The client's certificate and key do not belong together, or are of a kind that is not known.
    #[error("{0}")]
    Identity(Error),
    /// Neither a name nor an address.
    #[error("{0:?}")]
    ServerName(String),
    /// The cryptography offers no version of the protocol.
    #[error("{0}")]
    Provider(Error),
}

/// Why a connection cannot be used any more.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsError {
    pub(super) error: Error,
    pub(super) during_handshake: bool,
}

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Error::InvalidCertificate(problem) => certificate(problem, formatter),
            Error::AlertReceived(alert) => write!(
                formatter,
                "TLS: the server refused{}: {alert:?}",
                if self.during_handshake { " the handshake" } else { "" }
            ),
            Error::InvalidMessage(_) if self.during_handshake => {
                formatter.write_str("TLS: the server does not speak TLS on this port")
            }
            error if self.during_handshake => write!(formatter, "TLS: handshake failed: {error}"),
            error => write!(formatter, "TLS: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}

fn certificate(problem: &CertificateError, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str("TLS: the server's certificate ")?;
    match problem {
        CertificateError::UnknownIssuer => formatter.write_str("is not trusted: its issuer is unknown"),
        CertificateError::NotValidForName => formatter.write_str("is for another name"),
        CertificateError::NotValidForNameContext { expected, presented } => {
            write!(formatter, "is for another name: expected {}, found {}", expected.to_str(), presented.join(", "))
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => formatter.write_str("has expired"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            formatter.write_str("is not valid yet")
        }
        // The kind of this error is private to rustls' verifier; `openssl req -x509` makes such certificates.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            formatter.write_str("is not trusted: it is the certificate of an authority, not of a server (self-signed)")
        }
        other => write!(formatter, "is not trusted: {other}"),
    }
}
