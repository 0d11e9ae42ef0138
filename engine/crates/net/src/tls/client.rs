//! What all connections of a thread share.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::session::Session;
use super::{SettingsError, TlsError};

/// Sessions that are remembered; there is one server.
const REMEMBERED_SESSIONS: usize = 256;

/// Everything that is needed to speak TLS to one server, files already read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Authorities to trust, in PEM; nothing: `system_roots`.
    pub ca_pem: Option<Vec<u8>>,
    /// The system's authorities.
    pub system_roots: Vec<CertificateDer<'static>>,
    /// The client's certificates and its private key, in PEM.
    pub identity_pem: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether any certificate is good enough.
    pub insecure: bool,
    /// The name to ask for and to look for in the certificate, or an IP address.
    pub server_name: String,
    /// Whether a connection may resume the session of one before it.
    pub resumption: bool,
}

/// The parts that the connections of one thread share. Threads do not share it: they would wait for one another's
/// sessions.
#[derive(Debug, Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
}

impl Client {
    /// Checks the settings and makes what connections share.
    ///
    /// # Errors
    /// When a PEM holds no certificate or key, they do not belong together, or the name is none.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(SettingsError::Provider)?;
        let builder = if settings.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        } else {
            builder.with_root_certificates(roots(settings)?)
        };
        let mut config = match &settings.identity_pem {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain =
                    certificates(certificate).filter(|chain| !chain.is_empty()).ok_or(SettingsError::Certificate)?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| SettingsError::Key)?;
                builder.with_client_auth_cert(chain, key).map_err(SettingsError::Identity)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = if settings.resumption {
            Resumption::in_memory_sessions(REMEMBERED_SESSIONS)
        } else {
            Resumption::disabled()
        };
        let server_name = ServerName::try_from(settings.server_name.clone())
            .map_err(|_| SettingsError::ServerName(settings.server_name.clone()))?;
        Ok(Self { config: Arc::new(config), server_name })
    }

    /// The state of a new connection. Its first bytes are ready to be sent.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn connect(&self) -> Result<Session, TlsError> {
        Session::new(Arc::clone(&self.config), self.server_name.clone())
    }
}

fn roots(settings: &Settings) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    match &settings.ca_pem {
        Some(pem) => {
            let (added, _) = roots.add_parsable_certificates(certificates(pem).ok_or(SettingsError::Ca)?);
            if added == 0 {
                return Err(SettingsError::Ca);
            }
        }
        // Without any, no certificate is trusted, which the first connection says.
        None => {
            roots.add_parsable_certificates(settings.system_roots.iter().cloned());
        }
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()
}

/// Any certificate will do, but the server must have its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
