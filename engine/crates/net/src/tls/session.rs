//! The state of one connection.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};

use super::TlsError;

/// The result of received bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fed {
    /// The handshake is over with these bytes.
    pub(super) is_connected: bool,
    /// The server has said that it will send no more.
    pub(super) is_ended: bool,
}

/// One connection's TLS. See the crate's description.
#[derive(Debug)]
pub(super) struct Session {
    connection: ClientConnection,
}

impl Session {
    pub(super) fn new(config: Arc<ClientConfig>, server_name: ServerName<'static>) -> Result<Self, TlsError> {
        match ClientConnection::new(config, server_name) {
            Ok(mut connection) => {
                // A request is sent whole, whatever its size.
                connection.set_buffer_limit(None);
                Ok(Self { connection })
            }
            Err(error) => Err(TlsError { error, during_handshake: true }),
        }
    }

    /// Whether the handshake is not over.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Decrypts received bytes, and appends the result to `plaintext`. There may be bytes to send afterwards, also
    /// after an error.
    ///
    /// # Errors
    /// When the server is not trusted, refuses, or does not speak TLS. The connection cannot be used any more.
    pub(super) fn feed(&mut self, mut bytes: &[u8], plaintext: &mut Vec<u8>) -> Result<Fed, TlsError> {
        let was_handshaking = self.is_handshaking();
        let mut fed = Fed::default();
        while !bytes.is_empty() && !fed.is_ended {
            let before = bytes.len();
            let read = self.connection.read_tls(&mut bytes);
            let state = self
                .connection
                .process_new_packets()
                .map_err(|error| TlsError { during_handshake: was_handshaking, error })?;
            let begin = plaintext.len();
            plaintext.resize(begin + state.plaintext_bytes_to_read(), 0);
            // As many bytes as are said to be there are there.
            let taken = self.connection.reader().read_exact(&mut plaintext[begin..]);
            fed.is_ended = state.peer_has_closed();
            if taken.is_err() || read.is_err() || (bytes.len() == before && !fed.is_ended) {
                // A record that never ends: rustls takes no more of it.
                return Err(TlsError {
                    error: Error::General("a record that does not end".to_owned()),
                    during_handshake: was_handshaking,
                });
            }
        }
        fed.is_connected = was_handshaking && !self.is_handshaking();
        Ok(fed)
    }

    /// Encrypts bytes to be sent. The handshake must be over.
    pub(super) fn write(&mut self, plaintext: &[u8]) {
        // Into memory, whose size is limited where the connection is made: this does not fail.
        let _ = self.connection.writer().write_all(plaintext);
    }

    /// Adds the bytes that the server is to get to `outgoing`.
    pub(super) fn take_outgoing(&mut self, outgoing: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to memory does not fail.
            if self.connection.write_tls(outgoing).is_err() {
                return;
            }
        }
    }
}
