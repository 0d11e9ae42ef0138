//! Rendering a request to the bytes that go on the wire.

/// Everything one request says.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// Path and query.
    pub path_and_query: &'a str,
    /// What `Host` says unless `headers` say it.
    pub authority: &'a str,
    /// Names and values, in the order of sending.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: Option<&'a [u8]>,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
}

/// The bytes of one request. `Host`, `Content-Length` and, where none may follow, `Connection: close` are added unless present; nothing
/// else is, since whatever a server must parse is counted as its own.
pub fn render_request(parts: &RequestParts<'_>) -> Vec<u8> {
    let has = |wanted: &str| {
        parts
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let body = parts.body.unwrap_or_default();
    let mut bytes = Vec::with_capacity(256 + body.len());
    let mut line = |pieces: &[&str]| {
        for piece in pieces {
            bytes.extend_from_slice(piece.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
    };
    line(&[parts.method, " ", parts.path_and_query, " HTTP/1.1"]);
    if !has("host") {
        line(&["Host: ", parts.authority]);
    }
    if !parts.keep_alive && !has("connection") {
        line(&["Connection: close"]);
    }
    for (name, value) in parts.headers {
        line(&[name, ": ", value]);
    }
    // RFC 9110, section 8.6: a method that anticipates a body says its length even when there is none.
    let wants_length = parts.body.is_some() || matches!(parts.method, "POST" | "PUT" | "PATCH");
    if wants_length && !has("content-length") {
        line(&["Content-Length: ", &body.len().to_string()]);
    }
    line(&[]);
    bytes.extend_from_slice(body);
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

    #[test]
    fn what_is_missing_is_added_in_front_of_the_given_headers() {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        assert_eq!(
            render_request(&parts(&headers, Some(b"{}"))),
            b"POST /a?b=c HTTP/1.1\r\nHost: example:8080\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        );
    }

    #[test]
    fn what_is_given_is_not_added_again() {
        let headers = [("host", "x"), ("USER-AGENT", "y"), ("content-length", "7")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            render_request(&parts(&headers, Some(b"{}"))),
            b"POST /a?b=c HTTP/1.1\r\nhost: x\r\nUSER-AGENT: y\r\ncontent-length: 7\r\n\r\n{}"
        );
    }

    #[test]
    fn the_only_request_of_a_connection_says_so() {
        let only = |headers| {
            let only = RequestParts {
                keep_alive: false,
                ..parts(headers, None)
            };
            String::from_utf8(render_request(&only)).unwrap_or_default()
        };
        assert!(only(&[]).contains("\r\nConnection: close\r\n"));
        let given = [("connection".to_owned(), "keep-alive".to_owned())];
        assert!(!only(&given).contains("close"));
    }

    #[test]
    fn a_post_without_a_body_says_so_and_a_get_says_nothing() {
        assert!(render_request(&parts(&[], None)).ends_with(b"Content-Length: 0\r\n\r\n"));
        let get = RequestParts {
            method: "GET",
            ..parts(&[], None)
        };
        assert!(render_request(&get).ends_with(b"Host: example:8080\r\n\r\n"));
    }
}
