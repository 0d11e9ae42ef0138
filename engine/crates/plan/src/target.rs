//! Parses a target's URL: `http://host[:port][/path][?query]`, the same with `https://`, or
//! `unix:/path/to.sock[:/path[?query]]`.

use crate::PlanError;

/// A parsed target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address, without the brackets of an IPv6 address.
    pub host: String,
    /// Port; default: 80, or 443 with TLS.
    pub port: u16,
    /// Value of the `Host` header field: host, and the port unless it is the default of the scheme.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path_and_query: String,
    /// Whether the connection uses TLS.
    pub is_tls: bool,
    /// Path of the Unix socket, if the target is one.
    pub unix: Option<String>,
}

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    /// The URL has none of the three forms.
    pub fn parse(url: &str) -> Result<Self, PlanError> {
        let wrong = |expected: &str| PlanError::value("target", format_args!("{url:?}"), expected);
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("a URL without spaces and control characters"));
        }
        let after = |scheme: &str| {
            let begins = url.get(..scheme.len())?.eq_ignore_ascii_case(scheme);
            begins.then(|| &url[scheme.len()..])
        };
        if let Some(rest) = after("unix:") {
            return Self::parse_unix(rest)
                .ok_or_else(|| wrong("unix:/PATH/TO/SOCKET or unix:/PATH/TO/SOCKET:/HTTP/PATH"));
        }
        let (is_tls, default_port, rest) = match (after("http://"), after("https://")) {
            (Some(rest), _) => (false, 80, rest),
            (None, Some(rest)) => (true, 443, rest),
            (None, None) => {
                return Err(wrong("a URL that begins with http:// or https://, or unix:/PATH"));
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("a URL without user and password (send an Authorization header instead)"));
        }
        let (host, port) = split_authority(authority)
            .ok_or_else(|| wrong("http://HOST[:PORT]/PATH or https://, a port from 1 to 65535"))?;
        let tail = tail.split('#').next().unwrap_or_default();
        let path_and_query = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        Ok(Self {
            host: host.to_owned(),
            port: port.unwrap_or(default_port),
            authority: match port {
                Some(port) if port != default_port => authority,
                _ => authority.strip_suffix(&format!(":{default_port}")).unwrap_or(authority).trim_end_matches(':'),
            }
            .to_owned(),
            path_and_query,
            is_tls,
            unix: None,
        })
    }

    /// Parses `/path/to.sock` and, after the first `:/`, path and query. The host is `localhost`, as in curl.
    fn parse_unix(rest: &str) -> Option<Self> {
        let (path, path_and_query) = match rest.split_once(":/") {
            Some((path, rest)) => (path, format!("/{}", rest.split('#').next().unwrap_or(rest))),
            None => (rest, "/".to_owned()),
        };
        path.starts_with('/').then(|| Self {
            host: "localhost".to_owned(),
            port: 80,
            authority: "localhost".to_owned(),
            path_and_query,
            is_tls: false,
            unix: Some(path.to_owned()),
        })
    }
}

fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        (host, after.strip_prefix(':').or(after.is_empty().then_some(""))?)
    } else {
        authority.split_once(':').unwrap_or((authority, ""))
    };
    if host.is_empty() || host.contains(['[', ']']) {
        return None;
    }
    if port.is_empty() {
        return Some((host, None));
    }
    let port: u16 = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())??;
    (port != 0).then_some((host, Some(port)))
}
