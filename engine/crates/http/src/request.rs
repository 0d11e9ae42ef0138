//! Requests, from their parts to the bytes that a protocol sends.

/// The parts of one request that is the same each time.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// Path and query.
    pub path_and_query: &'a str,
    /// The default of `Host`.
    pub authority: &'a str,
    /// Names and values, in the order of sending.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: Option<&'a [u8]>,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
}

/// Encodes requests of one protocol: the bytes around path, values and body. All functions append to `out`.
pub trait RequestWriter {
    /// Begins a request. Path and query follow.
    fn before_path(out: &mut Vec<u8>, method: &str);

    /// Ends path and query.
    fn after_path(out: &mut Vec<u8>);

    /// Begins a field. Its value follows.
    fn before_value(out: &mut Vec<u8>, name: &str);

    /// Ends a field.
    fn after_value(out: &mut Vec<u8>);

    /// Ends a request without a body.
    fn end(out: &mut Vec<u8>);

    /// Ends a request with its body. `has_length` says that the fields state its length already.
    fn body(out: &mut Vec<u8>, body: &[u8], has_length: bool);
}

/// HTTP/1.1.
pub struct Http1Writer;

impl RequestWriter for Http1Writer {
    fn before_path(out: &mut Vec<u8>, method: &str) {
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
    }

    fn after_path(out: &mut Vec<u8>) {
        out.extend_from_slice(b" HTTP/1.1\r\n");
    }

    fn before_value(out: &mut Vec<u8>, name: &str) {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
    }

    fn after_value(out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n");
    }

    fn end(out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn body(out: &mut Vec<u8>, body: &[u8], has_length: bool) {
        if !has_length {
            out.extend_from_slice(b"Content-Length: ");
            out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }
}

/// Returns the fields of a request without its length: `Host` and `Connection: close` are added unless they are given.
/// No other field is added, because a server's work on it would count as its own.
pub fn list_fields<'a>(
    authority: &'a str,
    headers: &'a [(String, String)],
    keep_alive: bool,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let host = (!has_field(headers, "host")).then_some(("Host", authority));
    let close = !keep_alive && !has_field(headers, "connection");
    let close = close.then_some(("Connection", "close"));
    let given = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    host.into_iter().chain(close).chain(given)
}

/// Returns whether a field is among the given ones.
pub fn has_field(headers: &[(String, String)], wanted: &str) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

/// Returns whether a request states the length of its body even without one (RFC 9110, section 8.6).
pub fn anticipates_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

/// Returns the bytes of a request.
pub fn encode_request<W: RequestWriter>(parts: &RequestParts<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256 + parts.body.map_or(0, <[u8]>::len));
    W::before_path(&mut bytes, parts.method);
    bytes.extend_from_slice(parts.path_and_query.as_bytes());
    W::after_path(&mut bytes);
    for (name, value) in list_fields(parts.authority, parts.headers, parts.keep_alive) {
        W::before_value(&mut bytes, name);
        bytes.extend_from_slice(value.as_bytes());
        W::after_value(&mut bytes);
    }
    if parts.body.is_some() || anticipates_body(parts.method) {
        let has_length = has_field(parts.headers, "content-length");
        W::body(&mut bytes, parts.body.unwrap_or_default(), has_length);
    } else {
        W::end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(headers: &'a [(String, String)], body: Option<&'a [u8]>) -> RequestParts<'a> {
        RequestParts {
            method: "POST",
            path_and_query: "/a?b=c",
            authority: "example:8080",
            headers,
            body,
            keep_alive: true,
        }
    }

    fn encode(parts: &RequestParts<'_>) -> String {
        String::from_utf8(encode_request::<Http1Writer>(parts)).unwrap_or_default()
    }

    #[test]
    fn missing_fields_come_before_the_given_ones() {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        assert_eq!(
            encode(&parts(&headers, Some(b"{}"))),
            "POST /a?b=c HTTP/1.1\r\nHost: example:8080\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        );
    }

    #[test]
    fn given_fields_are_not_added_again() {
        let headers = [("host", "x"), ("USER-AGENT", "y"), ("content-length", "7")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            encode(&parts(&headers, Some(b"{}"))),
            "POST /a?b=c HTTP/1.1\r\nhost: x\r\nUSER-AGENT: y\r\ncontent-length: 7\r\n\r\n{}"
        );
    }

    #[test]
    fn a_connections_only_request_says_close() {
        let only = |headers| encode(&RequestParts { keep_alive: false, ..parts(headers, None) });
        assert!(only(&[]).contains("\r\nConnection: close\r\n"));
        let given = [("connection".to_owned(), "keep-alive".to_owned())];
        assert!(!only(&given).contains("close"));
    }

    #[test]
    fn a_post_without_a_body_states_its_length_and_a_get_does_not() {
        assert!(encode(&parts(&[], None)).ends_with("Content-Length: 0\r\n\r\n"));
        let get = RequestParts { method: "GET", ..parts(&[], None) };
        assert!(encode(&get).ends_with("Host: example:8080\r\n\r\n"));
    }
}
