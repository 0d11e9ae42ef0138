//! One user's cookies on one host (RFC 6265).
//!
//! Supports name, value, path and removal (Max-Age of 0 or less, `Expires` in 1970). Ignores `Domain`, because there is
//! one host, and other dates, because a load is shorter. Ignores `Secure`, `HttpOnly` and `SameSite`, so that a login
//! works over http too.

/// Most cookies of a user, as in browsers.
const MAX_COOKIES: usize = 64;
/// Most bytes of name and value. A longer cookie is dropped.
const MAX_BYTES: usize = 4096;

/// The cookies of one user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jar {
    /// Longer paths first, older ones first among equals: the order of sending (section 5.4).
    cookies: Vec<Cookie>,
}

#[derive(Debug, Clone)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl Jar {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Takes the value of a `Set-Cookie` in a response to a request for this path and query (section 5.2 and 5.3).
    pub(crate) fn take(&mut self, set_cookie: &[u8], path_and_query: &[u8]) {
        let mut parts = set_cookie.split(|&byte| byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = pair.iter().position(|&byte| byte == b'=') else {
            return;
        };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let is_sendable = |bytes: &[u8]| bytes.iter().all(|&byte| byte >= b' ' && byte != 0x7f);
        if name.is_empty() || name.len() + value.len() > MAX_BYTES || !is_sendable(name) || !is_sendable(value) {
            return;
        }
        let mut path = default_path(path_and_query);
        let (mut max_age, mut is_past) = (None, false);
        for part in parts {
            let equals = part.iter().position(|&byte| byte == b'=').unwrap_or(part.len());
            let attribute = part[..equals].trim_ascii();
            let value = part.get(equals + 1..).unwrap_or_default().trim_ascii();
            if attribute.eq_ignore_ascii_case(b"path") {
                path = if value.starts_with(b"/") { value } else { default_path(path_and_query) };
            } else if attribute.eq_ignore_ascii_case(b"max-age") {
                max_age = is_over(value).or(max_age);
            } else if attribute.eq_ignore_ascii_case(b"expires") {
                is_past = value.windows(4).any(|year| year == b"1970");
            }
        }
        let same = self.cookies.iter().position(|cookie| cookie.name == name && cookie.path == path);
        // Max-Age wins over Expires.
        if max_age.unwrap_or(is_past) {
            if let Some(at) = same {
                self.cookies.remove(at);
            }
        } else if let Some(at) = same {
            let kept = &mut self.cookies[at].value;
            kept.clear();
            kept.extend_from_slice(value);
        } else if self.cookies.len() < MAX_COOKIES {
            let at = self.cookies.partition_point(|cookie| cookie.path.len() >= path.len());
            self.cookies.insert(at, Cookie { name: name.to_vec(), value: value.to_vec(), path: path.to_vec() });
        }
    }

    /// Returns whether a request for this path and query has cookies.
    pub(crate) fn has_for(&self, path_and_query: &[u8]) -> bool {
        self.list_for(path_and_query).next().is_some()
    }

    /// Appends the value of the `Cookie` field of a request for this path and query.
    pub(crate) fn append_for(&self, path_and_query: &[u8], out: &mut Vec<u8>) {
        let mut before: &[u8] = b"";
        for cookie in self.list_for(path_and_query) {
            for bytes in [before, &cookie.name, b"=", &cookie.value] {
                out.extend_from_slice(bytes);
            }
            before = b"; ";
        }
    }

    fn list_for(&self, path_and_query: &[u8]) -> impl Iterator<Item = &Cookie> {
        let path = without_query(path_and_query);
        let cookies = self.cookies.iter();
        cookies.filter(move |cookie| matches(&cookie.path, path))
    }
}

/// Returns whether a Max-Age means removal, `None` if it is not a number (section 5.2.2).
fn is_over(max_age: &[u8]) -> Option<bool> {
    let digits = max_age.strip_prefix(b"-").unwrap_or(max_age);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(max_age.starts_with(b"-") || digits.iter().all(|&digit| digit == b'0'))
}

fn without_query(path_and_query: &[u8]) -> &[u8] {
    let end = path_and_query.iter().position(|&byte| byte == b'?' || byte == b'#');
    &path_and_query[..end.unwrap_or(path_and_query.len())]
}

/// Section 5.1.4: up to and without the last slash.
fn default_path(path_and_query: &[u8]) -> &[u8] {
    let path = without_query(path_and_query);
    match path.iter().rposition(|&byte| byte == b'/') {
        None | Some(0) => b"/",
        Some(last) => &path[..last],
    }
}

/// Section 5.1.4: the same, or a folder above.
fn matches(cookie_path: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(cookie_path).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || cookie_path.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Returns the `Cookie` of a request for `asked` after these responses to requests for `/a/b`.
    fn header(set: &[&str], asked: &str) -> String {
        let mut jar = Jar::default();
        set.iter().for_each(|value| jar.take(value.as_bytes(), b"/a/b?x=/y/"));
        let mut out = Vec::new();
        jar.append_for(asked.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_was_set_is_sent_where_its_path_says() {
        assert_eq!(header(&["id=1; Path=/; HttpOnly; Secure; SameSite=Lax"], "/x"), "id=1");
        assert_eq!(header(&["id=1"], "/a/c?q"), "id=1");
        assert_eq!(header(&["id=1"], "/a"), "id=1");
        assert_eq!(header(&["id=1"], "/ab"), "");
        assert_eq!(header(&["id=1"], "/"), "");
        assert_eq!(header(&["id=1; path=/a/"], "/a/c"), "id=1");
        assert_eq!(header(&["id=1; Path=nonsense"], "/a/c"), "id=1");
    }

    #[test]
    fn longer_paths_come_first_and_older_cookies_first_among_equals() {
        assert_eq!(
            header(&["a=1; Path=/", "b=2; Path=/", "c=3; Path=/a", "a=4; Path=/a"], "/a/b"),
            "c=3; a=4; a=1; b=2"
        );
    }

    #[test]
    fn a_cookie_of_the_same_name_and_path_is_replaced_in_its_place() {
        assert_eq!(header(&["a=1", "b=2", "a=3"], "/a/x"), "a=3; b=2");
    }

    #[test]
    fn a_cookie_is_removed_by_max_age_or_by_a_date_in_1970() {
        for gone in ["a=; Max-Age=0", "a=x; max-age=-1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
            assert_eq!(header(&["a=1", gone], "/a/x"), "", "{gone}");
        }
        for kept in [
            "a=2; Max-Age=60",
            "a=2; Max-Age=x",
            "a=2; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "a=2; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
        ] {
            assert_eq!(header(&["a=1", kept], "/a/x"), "a=2", "{kept}");
        }
        assert_eq!(header(&["a=1", "a=; Max-Age=0; Path=/"], "/a/x"), "a=1");
    }

    #[test]
    fn what_is_no_cookie_is_passed_over() {
        for wrong in ["", "novalue", "=v", "a\u{1}=b", "a=b\u{7f}"] {
            assert_eq!(header(&[wrong], "/a/x"), "", "{wrong:?}");
        }
        assert_eq!(header(&[&format!("a={}", "x".repeat(5000))], "/a/x"), "");
        assert_eq!(header(&["a="], "/a/x"), "a=");
        let many: Vec<String> = (0..100).map(|n| format!("c{n}=1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(header(&many, "/a/x").matches('=').count(), MAX_COOKIES);
    }
}
