//! The headers of a request and of its response on the way through the hub.
//!
//! Invariant: the member is told the user whom the hub authenticated, and nothing that the caller wrote can change that. Every
//! header is judged by its name in lower case, as [`HeaderName`] keeps it.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Requester;

/// Headers that concern one connection. Source: RFC 9110, 7.6.1.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of a request that the member must not get: credentials for the hub, and what the connection to the member has of its own.
const OF_THE_HUB: &[&str] = &["authorization", "cookie", "host", "expect", "content-length"];

/// Prefixes of headers that name a user: impersonation, and those of an authenticating proxy.
const OF_A_USER: &[&str] = &["impersonate-", "x-remote-"];

/// Headers of a response that would speak for the hub's host.
const OF_THE_MEMBER: &[&str] = &[
    "alt-svc",
    "set-cookie",
    "strict-transport-security",
    "www-authenticate",
];

/// The prefix of a WebSocket subprotocol that is a bearer token.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Groups that a member adds by itself.
const IMPLIED: &[&str] = &["system:authenticated", "system:unauthenticated"];

/// Keys of `extra` with this domain are about the credentials that were shown to the hub, such as the pod of a token.
const OF_CREDENTIALS: &str = "authentication.kubernetes.io/";

/// The headers of a request to a member: those of the caller that are of no hop, no credentials and no identity, and the identity
/// of the requester. `None` if that cannot be written, so that the request would be sent as somebody else.
pub(super) fn request(from: &HeaderMap, requester: &Requester) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(from.len() + 4);
    for (name, value) in kept(from, OF_THE_HUB) {
        let is_of_user = OF_A_USER.iter().any(|prefix| name.as_str().starts_with(prefix));
        if is_of_user {
            continue;
        }
        if name == header::SEC_WEBSOCKET_PROTOCOL {
            if let Some(value) = without_token(value) {
                headers.append(name, value);
            }
            continue;
        }
        headers.append(name, value.clone());
    }
    if let Some(protocol) = upgrade(from) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
    }
    impersonate(&mut headers, requester)?;
    Some(headers)
}

/// The headers of a request to the hub itself: the caller's own, credentials included, without those of a hop and without those of an
/// authenticating proxy.
pub(super) fn passed(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(from.len());
    for (name, value) in kept(from, &["host", "expect", "content-length"]) {
        if !name.as_str().starts_with("x-remote-") {
            headers.append(name, value.clone());
        }
    }
    if let Some(protocol) = upgrade(from) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
    }
    headers
}

/// The headers of a response to the caller. `upgraded`: the connection changes its protocol.
pub(super) fn response(from: &HeaderMap, upgraded: bool) -> HeaderMap {
    let mut headers: HeaderMap = HeaderMap::with_capacity(from.len());
    for (name, value) in kept(from, OF_THE_MEMBER) {
        headers.append(name, value.clone());
    }
    if upgraded && let Some(protocol) = from.get(header::UPGRADE) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
    }
    headers
}

/// The protocol that the connection shall change to.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<&HeaderValue> {
    let protocol = headers.get(header::UPGRADE)?;
    options(headers)
        .any(|option| option == "upgrade")
        .then_some(protocol)
}

/// The headers that concern no single connection, without those named.
fn kept<'a>(
    from: &'a HeaderMap,
    dropped: &'static [&'static str],
) -> impl Iterator<Item = (HeaderName, &'a HeaderValue)> {
    let of_connection: Vec<String> = options(from).collect();
    from.iter().filter_map(move |(name, value)| {
        let text = name.as_str();
        let is_dropped = HOP_BY_HOP.contains(&text)
            || dropped.contains(&text)
            || of_connection.iter().any(|option| option == text);
        (!is_dropped).then(|| (name.clone(), value))
    })
}

/// The options of the header Connection, in lower case.
fn options(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|option| option.trim().to_ascii_lowercase())
}

/// The subprotocols without bearer tokens; `None` if none is left.
fn without_token(value: &HeaderValue) -> Option<HeaderValue> {
    let protocols = value.to_str().ok()?.split(',').map(str::trim);
    let kept: Vec<&str> = protocols
        .filter(|each| !each.to_ascii_lowercase().starts_with(BEARER_PROTOCOL))
        .collect();
    if kept.is_empty() {
        return None;
    }
    HeaderValue::from_str(&kept.join(", ")).ok()
}

fn impersonate(headers: &mut HeaderMap, requester: &Requester) -> Option<()> {
    // Without a name the member would not impersonate at all.
    if requester.name.is_empty() {
        return None;
    }
    let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).ok();
    headers.insert(
        HeaderName::from_static("impersonate-user"),
        value(&requester.name)?,
    );
    for group in &requester.groups {
        if !IMPLIED.contains(&group.as_str()) {
            headers.append(HeaderName::from_static("impersonate-group"), value(group)?);
        }
    }
    for (key, values) in &requester.extra {
        if key.starts_with(OF_CREDENTIALS) {
            continue;
        }
        let name: HeaderName = format!("impersonate-extra-{}", escaped(key)).parse().ok()?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Some(())
}

/// A key of `extra` as part of a header's name: servers read it in lower case, and undo the percent-encoding after that.
fn escaped(key: &str) -> String {
    let mut escaped = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_') {
            escaped.push(char::from(byte));
        } else {
            // A String takes everything.
            let _ = write!(escaped, "%{byte:02x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jane() -> Requester {
        Requester {
            name: "jane".into(),
            groups: vec!["devs".into(), "system:authenticated".into(), "ops".into()],
            extra: [
                (
                    "acme.com/Project".to_owned(),
                    vec!["x".to_owned(), "y".to_owned()],
                ),
                (
                    "authentication.kubernetes.io/pod-name".to_owned(),
                    vec!["p".to_owned()],
                ),
            ]
            .into(),
        }
    }

    const JANE: &[&str] = &[
        "impersonate-extra-acme.com%2f%50roject: x",
        "impersonate-extra-acme.com%2f%50roject: y",
        "impersonate-group: devs",
        "impersonate-group: ops",
        "impersonate-user: jane",
    ];

    fn map(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn the_member_is_told_the_user_of_the_hub_whatever_the_caller_wrote() {
        // headers of the caller; those that reach the member, besides jane's
        let cases: &[(&[&str], &[&str])] = &[
            (&[], &[]),
            (
                &["Accept: application/json", "User-Agent: kubectl"],
                &["accept: application/json", "user-agent: kubectl"],
            ),
            (
                &[
                    "Authorization: Bearer t",
                    "Cookie: session=t",
                    "Proxy-Authorization: Basic t",
                ],
                &[],
            ),
            (
                &[
                    "Impersonate-User: admin",
                    "IMPERSONATE-GROUP: system:masters",
                    "impersonate-uid: 1",
                    "Impersonate-Extra-Scopes: all",
                    "Impersonate-Extra-acme.com%2f%50roject: z",
                    "Impersonate-Anything: x",
                ],
                &[],
            ),
            (
                &[
                    "X-Remote-User: admin",
                    "X-Remote-Group: system:masters",
                    "X-Remote-Extra-Scopes: all",
                ],
                &[],
            ),
            // A hop must not drop what was written for the member.
            (
                &[
                    "Connection: close, Impersonate-User, X-Own",
                    "X-Own: 1",
                    "Keep-Alive: 5",
                    "TE: trailers",
                ],
                &[],
            ),
            (
                &[
                    "Host: hub",
                    "Content-Length: 5",
                    "Transfer-Encoding: chunked",
                    "Expect: 100-continue",
                ],
                &[],
            ),
            (
                &[
                    "Connection: Upgrade",
                    "Upgrade: SPDY/3.1",
                    "X-Stream-Protocol-Version: v4.channel.k8s.io",
                ],
                &[
                    "connection: Upgrade",
                    "upgrade: SPDY/3.1",
                    "x-stream-protocol-version: v4.channel.k8s.io",
                ],
            ),
            // No upgrade without the option.
            (&["Upgrade: SPDY/3.1"], &[]),
            (
                &["Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dG9rZW4, v5.channel.k8s.io"],
                &["sec-websocket-protocol: v5.channel.k8s.io"],
            ),
            (
                &["Sec-WebSocket-Protocol: Base64URL.bearer.authorization.k8s.io.dG9rZW4"],
                &[],
            ),
        ];
        for (caller, reaching) in cases {
            let mut expected: Vec<String> = JANE
                .iter()
                .chain(*reaching)
                .map(|each| (*each).to_owned())
                .collect();
            expected.sort();
            assert_eq!(
                lines(&request(&map(caller), &jane()).unwrap()),
                expected,
                "{caller:?}"
            );
        }
    }

    #[test]
    fn the_hub_gets_the_callers_own_credentials() {
        let from = map(&[
            "Authorization: Bearer t",
            "Impersonate-User: jane",
            "X-Remote-User: admin",
            "Host: front",
            "Connection: keep-alive",
        ]);
        assert_eq!(
            lines(&passed(&from)),
            ["authorization: Bearer t", "impersonate-user: jane"]
        );
    }

    #[test]
    fn a_user_that_cannot_be_named_is_nobody() {
        let named = |name: &str, group: &str| Requester {
            name: name.into(),
            groups: vec![group.into()],
            ..Requester::default()
        };
        for (name, group) in [
            ("", "devs"),
            ("a\nb", "devs"),
            ("jane", "devs\r\nImpersonate-User: root"),
        ] {
            assert_eq!(
                request(&HeaderMap::new(), &named(name, group)),
                None,
                "{name:?} {group:?}"
            );
        }
        assert!(request(&HeaderMap::new(), &named("j\u{e4}ne", "devs")).is_some());
    }

    #[test]
    fn a_response_does_not_speak_for_the_hub() {
        let cases: &[(&[&str], bool, &[&str])] = &[
            (
                &["Content-Type: application/json", "Content-Length: 5"],
                false,
                &["content-length: 5", "content-type: application/json"],
            ),
            (
                &["Set-Cookie: a=b", "Www-Authenticate: Basic", "Connection: close"],
                false,
                &[],
            ),
            (&["Connection: Upgrade", "Upgrade: websocket"], false, &[]),
            (
                &["Connection: Upgrade", "Upgrade: websocket"],
                true,
                &["connection: Upgrade", "upgrade: websocket"],
            ),
        ];
        for (from, upgraded, expected) in cases {
            assert_eq!(lines(&response(&map(from), *upgraded)), *expected, "{from:?}");
        }
    }
}
