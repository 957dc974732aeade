//! The method and the path of a request on the member, and what a path says of the response.

use http::{Method, uri::PathAndQuery};

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

/// The verb of a method, as an API server authorizes it; `None` for a method that no API server serves.
pub(super) fn verb(method: &Method) -> Option<&'static str> {
    Some(match *method {
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    })
}

/// True if the path, as [`target`] reads it, is below a subresource `proxy`: the API server of the member sends the request on, too.
pub(super) fn is_proxied(rest: &str) -> bool {
    let plain = decoded(rest);
    let plain = String::from_utf8_lossy(&plain);
    let steps: Vec<&str> = plain.split('/').filter(|step| !step.is_empty()).collect();
    let below = match steps.as_slice() {
        ["api", _, below @ ..] | ["apis", _, _, below @ ..] => below,
        _ => return false,
    };
    let below = match below {
        ["namespaces", _, below @ ..] => below,
        below => below,
    };
    matches!(below, [_, _, "proxy", ..])
}

/// True for the log of a pod that is followed: its response begins with the next line, whenever that is written.
pub(super) fn is_followed_log(rest: &str, query: Option<&str>) -> bool {
    let steps: Vec<&str> = rest.split('/').filter(|step| !step.is_empty()).collect();
    let mut pairs = query.unwrap_or_default().split('&');
    matches!(steps.as_slice(), ["api", _, "namespaces", _, "pods", _, "log"])
        && pairs.any(|pair| matches!(pair, "follow=true" | "follow=1"))
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

    #[test]
    fn only_methods_with_a_verb_are_sent_on() {
        let cases = [
            ("GET", Some("get")),
            ("HEAD", Some("get")),
            ("POST", Some("create")),
            ("PUT", Some("update")),
            ("PATCH", Some("patch")),
            ("DELETE", Some("delete")),
            ("OPTIONS", None),
            ("TRACE", None),
            ("CONNECT", None),
            ("get", None),
            ("PROPFIND", None),
        ];
        for (method, expected) in cases {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(verb(&method), expected, "{method}");
        }
    }

    #[test]
    fn a_log_that_is_followed_may_begin_late() {
        let log = "/api/v1/namespaces/a/pods/p/log";
        let cases = [
            (log, Some("container=c&follow=true"), true),
            (log, Some("follow=1"), true),
            (log, Some("follow=false"), false),
            (log, Some("xfollow=true"), false),
            (log, None, false),
            ("/api/v1/namespaces/a/pods/p", Some("follow=true"), false),
            ("/api/v1/namespaces/a/services/p/log", Some("follow=true"), false),
        ];
        for (path, query, expected) in cases {
            assert_eq!(is_followed_log(path, query), expected, "{path} {query:?}");
        }
    }

    #[test]
    fn paths_that_the_member_sends_on() {
        let cases = [
            ("/api/v1/nodes/n/proxy", true),
            ("/api/v1/nodes/n/proxy/metrics", true),
            ("/api/v1/namespaces/a/services/web:80/proxy/", true),
            ("/api/v1/namespaces/a/services/web:80/proxy/x/y", true),
            ("/api/v1/namespaces/a/pods/p/%70roxy/x", true),
            ("/apis/cluster.karmada.io/v1alpha1/clusters/m2/proxy/api", true),
            ("/api/v1/namespaces/proxy/pods", false),
            ("/api/v1/namespaces/a/services/proxy", false),
            ("/api/v1/namespaces/a/pods/p/log", false),
            ("/api/v1/pods", false),
            ("/healthz/x/y/proxy", false),
            ("", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_proxied(path), expected, "{path}");
        }
    }
}
