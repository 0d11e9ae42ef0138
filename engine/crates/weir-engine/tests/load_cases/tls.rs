//! TLS, against a server of the same library and against raw bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::load_support::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nuntil the connection ends";

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// An authority, a server and a client that it knows, in files of a folder.
struct Pki {
    folder: PathBuf,
}

impl Pki {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-tls-{}-{name}-{}", std::process::id(), crate::BACKEND));
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        std::fs::write(folder.join("ca.key"), key.serialize_pem()).unwrap();
        let issuer = Issuer::new(params, key);
        for (who, names) in
            [("server", vec!["localhost".to_owned(), "127.0.0.1".to_owned()]), ("client", vec!["client".to_owned()])]
        {
            let key = KeyPair::generate().unwrap();
            let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
            std::fs::write(folder.join(format!("{who}.pem")), certificate.pem()).unwrap();
            std::fs::write(folder.join(format!("{who}.key")), key.serialize_pem()).unwrap();
        }
        Self { folder }
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).to_str().unwrap().to_owned()
    }

    fn server_config(&self, asks_for_certificate: bool) -> Arc<ServerConfig> {
        let certificate = |file: &str| CertificateDer::from_pem_file(self.path(file)).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if asks_for_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(certificate("ca.pem")).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
            )
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::from_pem_file(self.path("server.key")).unwrap();
        let mut config = builder.with_single_cert(vec![certificate("server.pem")], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

impl Drop for Pki {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn tls_server(config: Arc<ServerConfig>, behaviour: impl Fn(Stream) + Send + Sync + 'static) -> SocketAddr {
    server(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        behaviour(StreamOwned::new(connection, stream));
    })
}

/// The head of the next request; nothing at the end or after a failed handshake.
fn next_request(reader: &mut BufReader<Stream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

fn respond_ok(stream: Stream) {
    let mut reader = BufReader::new(stream);
    while next_request(&mut reader).is_some() {
        assert_eq!(reader.get_ref().conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        if reader.get_mut().write_all(OK).is_err() {
            return;
        }
    }
}

fn https(address: SocketAddr, connections: usize, tls: Value) -> Value {
    let plan = with(closed(address, connections), "target", format!("https://{address}/"));
    with(plan, "tls", tls)
}

fn refused(plan: &Value) -> (i32, String) {
    let output = run_text(&plan.to_string());
    let message = records(&output.stdout)[0]["message"].to_string();
    (output.status.code().unwrap(), message)
}

#[test]
fn private_authority_is_trusted_on_request() {
    let pki = Pki::new("own");
    let address = tls_server(pki.server_config(false), respond_ok);
    let run = Run::of(&https(address, 3, json!({"ca": pki.path("ca.pem")})));
    run.assert_all_ok();
    assert_eq!(run.hello["connected"], 3);
    assert_eq!(histogram(&run.end["histograms"]["tls_handshake_ns"]).len(), 3);
    assert!(run.summary()["tls_handshake_us"]["p50"].as_f64().unwrap() > 0.0);
    // Requests and responses are counted, not what they are wrapped in.
    assert_eq!(run.summary()["bytes"]["received"].as_u64().unwrap() % OK.len() as u64, 0);
}

#[test]
fn tls_responses_have_kernel_stamps() {
    let pki = Pki::new("stamped");
    let address = tls_server(pki.server_config(false), respond_ok);
    let plan = https(address, 2, json!({"ca": pki.path("ca.pem")}));
    let run = Run::of(&with(plan, "kernel_timestamps", true));
    run.assert_all_ok();
    let expected = json!({"used": run.requests("completed"), "missing": 0});
    assert_eq!(run.summary()["generator"]["kernel_timestamps"], expected);
}

#[test]
fn tls_requests_are_logged_with_inner_bytes() {
    let pki = Pki::new("logged");
    let address = tls_server(pki.server_config(false), respond_ok);
    let plan = https(address, 2, json!({"ca": pki.path("ca.pem")}));
    let (run, log) = request_log::logged(&plan);
    run.assert_all_ok();
    let ok = log.iter().filter(|entry| entry.status == 200);
    assert!(ok.clone().all(|entry| entry.received_bytes == OK.len() as u32));
    let handshake_ns = run.summary()["tls_handshake_us"]["min"].as_f64().unwrap() * 1e3;
    let made: Vec<i64> = ok.map(|entry| entry.connect_ns).filter(|&ns| ns > 0).collect();
    assert_eq!(made.len(), 2);
    assert!(made.iter().all(|&ns| ns as f64 >= handshake_ns));
}

#[test]
fn without_tls_its_clock_is_null() {
    let run = Run::of(&closed(responding(OK), 1));
    assert!(run.summary()["tls_handshake_us"].is_null());
    assert!(run.end["histograms"]["tls_handshake_ns"].is_null());
}

#[test]
fn tls_records_byte_by_byte_are_read() {
    let pki = Pki::new("bytes");
    let config = pki.server_config(false);
    let address = server(move |mut stream| {
        let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut request = Vec::new();
        loop {
            let mut outgoing = Vec::new();
            while connection.wants_write() {
                connection.write_tls(&mut outgoing).unwrap();
            }
            for byte in outgoing {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
            if !matches!(connection.read_tls(&mut stream), Ok(1..)) {
                return;
            }
            let plaintext = connection.process_new_packets().unwrap().plaintext_bytes_to_read();
            let begin = request.len();
            request.resize(begin + plaintext, 0);
            connection.reader().read_exact(&mut request[begin..]).unwrap();
            if request.ends_with(b"\r\n\r\n") {
                request.clear();
                connection.writer().write_all(OK).unwrap();
            }
        }
    });
    Run::of(&https(address, 2, json!({"ca": pki.path("ca.pem")}))).assert_all_ok();
}

#[test]
fn several_requests_at_a_time_go_through_tls() {
    let pki = Pki::new("pipelining");
    let address = tls_server(pki.server_config(false), |stream| {
        let mut reader = BufReader::new(stream);
        loop {
            for _ in 0..8 {
                if next_request(&mut reader).is_none() {
                    return;
                }
            }
            if reader.get_mut().write_all(&OK.repeat(8)).is_err() {
                return;
            }
        }
    });
    let mut plan = https(address, 2, json!({"ca": pki.path("ca.pem")}));
    plan["pipeline"] = 8.into();
    plan["requests"] = 80.into();
    plan["duration_s"] = 20.0.into();
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 80);
}

#[test]
fn each_tls_target_has_its_server_name() {
    let pki = Pki::new("targets");
    let names = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let seen = Arc::clone(&names);
    let address = tls_server(pki.server_config(false), move |stream| {
        let mut reader = BufReader::new(stream);
        while let Some(head) = next_request(&mut reader) {
            let name = reader.get_ref().conn.server_name().map(str::to_owned);
            let host = head.lines().nth(1).unwrap().to_owned();
            seen.lock().unwrap().insert((name, host));
            if reader.get_mut().write_all(OK).is_err() {
                return;
            }
        }
    });
    let port = address.port();
    let mut plan = https(address, 4, json!({"ca": pki.path("ca.pem")}));
    plan["targets"] = json!([format!("https://127.0.0.1:{port}/"), format!("https://localhost:{port}/")]);
    plan["address"] = address.to_string().into();
    plan.as_object_mut().unwrap().remove("target");
    let run = Run::of(&plan);
    run.assert_all_ok();
    let named = Some("localhost".to_owned());
    let expected = [(None, format!("Host: 127.0.0.1:{port}")), (named, format!("Host: localhost:{port}"))];
    assert_eq!(*names.lock().unwrap(), expected.into());
}

#[test]
fn large_bodies_pass_through_tls() {
    const LENGTH: usize = 1_000_000;
    let pki = Pki::new("large");
    let address = tls_server(pki.server_config(false), |stream| {
        let mut reader = BufReader::new(stream);
        let mut body = vec![0; LENGTH];
        while next_request(&mut reader).is_some() && reader.read_exact(&mut body).is_ok() {
            assert!(body.iter().all(|&byte| byte == b'x'));
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
            let stream = reader.get_mut();
            if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() {
                return;
            }
        }
    });
    let plan = https(address, 2, json!({"ca": pki.path("ca.pem")}));
    let plan = with(plan, "request", json!({"method": "POST", "body": {"text": "x".repeat(LENGTH)}}));
    let run = Run::of(&with(plan, "duration_s", 1.0));
    run.assert_all_ok();
    assert!(run.summary()["bytes"]["received"].as_u64().unwrap() >= LENGTH as u64);
}

#[test]
fn response_until_close_needs_close_notify() {
    let pki = Pki::new("close");
    let ending = |says_so: bool| {
        let address = tls_server(pki.server_config(false), move |stream| {
            let mut reader = BufReader::new(stream);
            if next_request(&mut reader).is_some() {
                let stream = reader.get_mut();
                let _ = stream.write_all(UNTIL_CLOSE);
                if says_so {
                    stream.conn.send_close_notify();
                }
                let _ = stream.flush();
            }
        });
        Run::of(&https(address, 1, json!({"ca": pki.path("ca.pem")})))
    };
    ending(true).assert_all_ok();
    let cut = ending(false);
    cut.assert_only_error("reset");
    assert!(cut.events[0]["detail"].as_str().unwrap().contains("without close_notify"), "{:?}", cut.events);
}

#[test]
fn request_on_a_closed_tls_connection_is_sent_again() {
    let pki = Pki::new("closed");
    for says_so in [true, false] {
        let address = tls_server(pki.server_config(false), move |stream| {
            let mut reader = BufReader::new(stream);
            for _ in 0..3 {
                if next_request(&mut reader).is_none() || reader.get_mut().write_all(OK).is_err() {
                    return;
                }
            }
            let stream = reader.get_mut();
            if says_so {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        let plan = https(address, 2, json!({"ca": pki.path("ca.pem")}));
        let run = Run::of(&with_requests(plan, 30));
        run.assert_all_ok();
        let retried = run.requests("retried");
        assert!((8..=10).contains(&retried), "{retried}");
    }
}

#[test]
fn untrusted_server_exits_with_3() {
    let (pki, other) = (Pki::new("trust"), Pki::new("other"));
    let address = tls_server(pki.server_config(false), respond_ok);
    for tls in [json!({}), json!({"ca": other.path("ca.pem")})] {
        let (code, message) = refused(&https(address, 2, tls));
        assert_eq!(code, 3);
        assert!(message.contains("certificate is not trusted"), "{message}");
    }
    let (code, message) =
        refused(&https(address, 2, json!({"ca": pki.path("ca.pem"), "server_name": "elsewhere.example"})));
    assert_eq!(code, 3);
    assert!(message.contains("is for another name: expected elsewhere.example"), "{message}");
    Run::of(&https(address, 2, json!({"insecure": true}))).assert_all_ok();
    Run::of(&https(address, 2, json!({"ca": pki.path("ca.pem"), "server_name": "localhost"}))).assert_all_ok();
}

#[test]
fn server_without_tls_exits_with_3() {
    let plain = server(|mut stream| {
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let (code, message) = refused(&https(plain, 2, json!({"insecure": true})));
    assert_eq!(code, 3);
    assert!(message.contains("does not speak TLS on this port"), "{message}");
    let silent = server(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
    });
    let (code, message) = refused(&https(silent, 2, json!({"insecure": true})));
    assert_eq!(code, 3);
    assert!(message.contains("closed the connection during the handshake"), "{message}");
}

#[test]
fn client_certificate_is_sent_on_request() {
    let pki = Pki::new("client");
    let address = tls_server(pki.server_config(true), respond_ok);
    let mut tls = json!({"ca": pki.path("ca.pem")});
    let without = Run::of(&https(address, 1, tls.clone()));
    let failed = without.errors();
    // The alert may be overtaken by the end of the connection.
    assert!(failed.iter().all(|(kind, _)| kind == "connect" || kind == "reset"), "{failed:?}");
    assert_eq!(without.requests("ok"), 0);
    tls["certificate"] = pki.path("client.pem").into();
    tls["key"] = pki.path("client.key").into();
    Run::of(&https(address, 2, tls.clone())).assert_all_ok();
    tls["key"] = pki.path("server.key").into();
    let (code, message) = refused(&https(address, 1, tls.clone()));
    assert_eq!(code, 2);
    assert!(message.contains("key tls.key"), "{message}");
    tls["key"] = pki.path("nowhere").into();
    let (code, message) = refused(&https(address, 1, tls));
    assert_eq!(code, 2);
    assert!(message.contains("nowhere"), "{message}");
}

#[test]
fn resumption_follows_the_plan() {
    let pki = Pki::new("resume");
    for resumption in [true, false] {
        let kinds = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&kinds);
        let address = tls_server(pki.server_config(false), move |stream| {
            let mut reader = BufReader::new(stream);
            if next_request(&mut reader).is_some() {
                seen.lock().unwrap().push(reader.get_ref().conn.handshake_kind().unwrap());
                let stream = reader.get_mut();
                let _ = stream.write_all(OK);
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        let plan = https(address, 2, json!({"ca": pki.path("ca.pem"), "resumption": resumption}));
        Run::of(&with(plan, "keep_alive", false)).assert_all_ok();
        let resumed = kinds.lock().unwrap().iter().filter(|&&kind| kind == HandshakeKind::Resumed).count();
        assert_eq!(resumed > 0, resumption, "{resumed}");
    }
}

#[test]
fn a_self_signed_certificate_is_named() {
    let pki = Pki::new("self-signed");
    for kind in ["pem", "key"] {
        let [own, server] = ["ca", "server"].map(|who| pki.path(&format!("{who}.{kind}")));
        std::fs::copy(own, server).unwrap();
    }
    let (code, message) = refused(&https(tls_server(pki.server_config(false), respond_ok), 1, json!({})));
    assert_eq!(code, 3);
    assert!(message.contains("(self-signed)"), "{message}");
}
