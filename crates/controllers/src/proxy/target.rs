//! The path of a request on the member.

use http::uri::PathAndQuery;

/// The reason why a path is not sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It has a step `.` or `..`: whoever resolves it could leave the address of the member.
    DotSegment,
    /// It is no path.
    Malformed,
}

/// The part of a request behind `/clusters/NAME/proxy`, as path and query for the member. Escapes are kept as they came.
pub(super) fn target(rest: &str, query: Option<&str>) -> Result<PathAndQuery, Misfit> {
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(Misfit::Malformed);
    }
    let plain = decoded(rest);
    let is_dots = |step: &[u8]| step == b"." || step == b"..";
    if plain.split(|byte| matches!(byte, b'/' | b'\\')).any(is_dots) {
        return Err(Misfit::DotSegment);
    }
    let path = if rest.is_empty() { "/" } else { rest };
    let whole = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    whole.parse().map_err(|_| Misfit::Malformed)
}

/// The bytes of a path without percent-encoding.
fn decoded(path: &str) -> Vec<u8> {
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|each| each.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_sent_as_it_came_unless_it_could_lead_elsewhere() {
        use Misfit::{DotSegment, Malformed};
        let pods = "/api/v1/namespaces/default/pods";
        let cases = [
            ("", None, Ok("/")),
            ("/", None, Ok("/")),
            (pods, None, Ok(pods)),
            (
                "/api/v1/pods",
                Some("watch=1&limit=5"),
                Ok("/api/v1/pods?watch=1&limit=5"),
            ),
            ("/api/v1/pods/", Some(""), Ok("/api/v1/pods/?")),
            ("/api/v1/x/a%2Fb%20c", None, Ok("/api/v1/x/a%2Fb%20c")),
            ("/api/v1/...", None, Ok("/api/v1/...")),
            ("/api/v1/.hidden/a..b", None, Ok("/api/v1/.hidden/a..b")),
            ("/../x", None, Err(DotSegment)),
            ("/api/./x", None, Err(DotSegment)),
            ("/api/..", None, Err(DotSegment)),
            ("/api/%2e%2E/x", None, Err(DotSegment)),
            ("/api/.%2e/x", None, Err(DotSegment)),
            ("/api%2f..%2fx", None, Err(DotSegment)),
            ("/api\\..\\x", None, Err(DotSegment)),
            ("api", None, Err(Malformed)),
            ("/a b", None, Err(Malformed)),
        ];
        for (rest, query, expected) in cases {
            let target = target(rest, query);
            assert_eq!(
                target.as_ref().map(PathAndQuery::as_str),
                expected.as_ref().copied(),
                "{rest}"
            );
        }
    }
}
