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
const OF_THE_HUB: &[&str] = &[
    "authorization",
    "cookie",
    "host",
    "expect",
    "content-length",
    "http2-settings",
];

/// Prefixes of headers that name a user, an address or a token for who believes them: impersonation, and those of proxies that
/// authenticate. `_` is compared as `-`, because some servers read one as the other.
const OF_A_USER: &[&str] = &[
    "impersonate-",
    "x-remote-",
    "forwarded",
    "x-forwarded-",
    "x-real-ip",
    "x-auth-",
    "x-amzn-oidc-",
    "x-api-key",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method-override",
];

/// Headers of a response that would speak for the hub's host, or lead the caller with its credentials somewhere else.
const OF_THE_MEMBER: &[&str] = &[
    "alt-svc",
    "clear-site-data",
    "content-location",
    "content-security-policy",
    "location",
    "nel",
    "refresh",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "set-cookie",
    "strict-transport-security",
    "www-authenticate",
];

/// The prefix of headers of a response that let pages of other hosts read it.
const OF_OTHER_HOSTS: &str = "access-control-";

/// The prefix of a WebSocket subprotocol that is a bearer token.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Groups that a member adds by itself.
const IMPLIED: &[&str] = &["system:authenticated", "system:unauthenticated"];

/// The prefix of the names of ServiceAccounts, and the group of all of them.
const OF_ACCOUNTS: &str = "system:serviceaccount:";
const ACCOUNTS: &str = "system:serviceaccounts";

/// Keys of `extra` with this domain are about the credentials that were shown to the hub, such as the pod of a token.
const OF_CREDENTIALS: &str = "authentication.kubernetes.io/";

/// A protocol that a connection may change to: those of exec, attach and port-forward. HTTP/2 is none of them: its requests would
/// pass unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    WebSocket,
    Spdy,
}

impl Protocol {
    const fn text(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Spdy => "SPDY/3.1",
        }
    }
}

/// The headers of a request to a member: those of the caller that are of no hop, no credentials and no identity, and the identity
/// of the requester. `None` if that cannot be written, so that the request would be sent as somebody else. `protocol`: the one that
/// the connection shall change to.
pub(super) fn request(
    from: &HeaderMap,
    requester: &Requester,
    protocol: Option<Protocol>,
) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(from.len() + 4);
    for (name, value) in kept(from, OF_THE_HUB) {
        let plain = name.as_str().replace('_', "-");
        let is_of_user = OF_A_USER.iter().any(|prefix| plain.starts_with(prefix));
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
    change(&mut headers, protocol);
    impersonate(&mut headers, requester)?;
    Some(headers)
}

/// The headers of a request to the hub itself: the caller's own, credentials included, without those of a hop and without those of an
/// authenticating proxy.
pub(super) fn passed(from: &HeaderMap, protocol: Option<Protocol>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(from.len());
    for (name, value) in kept(from, &["host", "expect", "content-length", "http2-settings"]) {
        if !name.as_str().replace('_', "-").starts_with("x-remote-") {
            headers.append(name, value.clone());
        }
    }
    change(&mut headers, protocol);
    headers
}

/// The headers of a member's response to the caller. `changed`: the protocol that the connection changes to.
pub(super) fn response(from: &HeaderMap, changed: Option<Protocol>) -> HeaderMap {
    let mut headers: HeaderMap = HeaderMap::with_capacity(from.len());
    for (name, value) in kept(from, OF_THE_MEMBER) {
        if !name.as_str().starts_with(OF_OTHER_HOSTS) {
            headers.append(name, value.clone());
        }
    }
    // A page of a pod would otherwise run as one of the hub, with the certificate that a browser shows to the hub.
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    change(&mut headers, changed);
    headers
}

/// The headers of the hub's own response to the caller: all but those about its address. The caller's credentials are for the hub.
pub(super) fn response_of_hub(from: &HeaderMap, changed: Option<Protocol>) -> HeaderMap {
    let mut headers: HeaderMap = HeaderMap::with_capacity(from.len());
    for (name, value) in kept(from, &["alt-svc", "strict-transport-security"]) {
        headers.append(name, value.clone());
    }
    change(&mut headers, changed);
    headers
}

/// The protocol that the connection shall change to, if it is the only one named and one of those that are passed on.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<Protocol> {
    let mut named = headers.get_all(header::UPGRADE).iter();
    let (Some(named), None) = (named.next(), named.next()) else {
        return None;
    };
    if !options(headers).any(|option| option == "upgrade") {
        return None;
    }
    let named = named.to_str().ok()?.trim();
    [Protocol::WebSocket, Protocol::Spdy]
        .into_iter()
        .find(|protocol| named.eq_ignore_ascii_case(protocol.text()))
}

fn change(headers: &mut HeaderMap, protocol: Option<Protocol>) {
    if let Some(protocol) = protocol {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(protocol.text()));
    }
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
    headers.insert(
        HeaderName::from_static("impersonate-user"),
        identity(&requester.name)?,
    );
    let groups: Vec<&str> = requester
        .groups
        .iter()
        .map(String::as_str)
        .filter(|group| !IMPLIED.contains(group))
        .collect();
    if !are_of_account(&requester.name, &groups) {
        for group in groups {
            headers.append(HeaderName::from_static("impersonate-group"), identity(group)?);
        }
    }
    for (key, values) in &requester.extra {
        if key.starts_with(OF_CREDENTIALS) {
            continue;
        }
        let name: HeaderName = format!("impersonate-extra-{}", escaped(key)).parse().ok()?;
        for text in values {
            headers.append(name.clone(), identity(text)?);
        }
    }
    Some(())
}

/// A name as the value of a header. Whoever reads a header takes the blanks off its ends, and so would read another name.
fn identity(text: &str) -> Option<HeaderValue> {
    if text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']) {
        return None;
    }
    HeaderValue::from_bytes(text.as_bytes()).ok()
}

/// True if the groups are those of the ServiceAccount of this name and no others. A member adds them itself if none is sent; to send
/// them, its account would have to be allowed to impersonate them.
fn are_of_account(name: &str, groups: &[&str]) -> bool {
    let Some((namespace, account)) = name
        .strip_prefix(OF_ACCOUNTS)
        .and_then(|rest| rest.split_once(':'))
    else {
        return false;
    };
    if namespace.is_empty() || account.is_empty() || account.contains(':') {
        return false;
    }
    let own = format!("{ACCOUNTS}:{namespace}");
    groups.len() == 2 && groups.contains(&ACCOUNTS) && groups.contains(&own.as_str())
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
            (
                &[
                    "Impersonate_User: root",
                    "X_Remote_User: root",
                    "X-Forwarded-User: root",
                    "X-Forwarded-For: 10.0.0.1",
                    "X-Forwarded-Access-Token: canary",
                    "X-Auth-Request-Access-Token: canary",
                    "X-Amzn-Oidc-Data: canary",
                    "X-Api-Key: canary",
                    "X-Http-Method-Override: DELETE",
                    "Forwarded: for=10.0.0.1",
                ],
                &[],
            ),
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
            // No upgrade without the option, and none to what is not understood here.
            (&["Upgrade: SPDY/3.1"], &[]),
            (
                &[
                    "Connection: Upgrade, HTTP2-Settings",
                    "Upgrade: h2c",
                    "HTTP2-Settings: AAMAAABkAAQAAP__",
                ],
                &[],
            ),
            (&["HTTP2-Settings: AAMAAABkAAQAAP__"], &[]),
            (&["Connection: Upgrade", "Upgrade: websocket, h2c"], &[]),
            (
                &["Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c"],
                &[],
            ),
            (
                &["Connection: keep-alive, upgrade", "Upgrade: WebSocket"],
                &["connection: Upgrade", "upgrade: websocket"],
            ),
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
            let caller = map(caller);
            let headers = request(&caller, &jane(), upgrade(&caller)).unwrap();
            assert_eq!(lines(&headers), expected, "{caller:?}");
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
            lines(&passed(&from, None)),
            ["authorization: Bearer t", "impersonate-user: jane"]
        );
        let from = map(&["Location: /x", "Www-Authenticate: Bearer", "Alt-Svc: h2=\":1\""]);
        assert_eq!(
            lines(&response_of_hub(&from, None)),
            ["location: /x", "www-authenticate: Bearer"]
        );
    }

    #[test]
    fn a_user_that_cannot_be_named_is_nobody() {
        let named = |name: &str, group: &str, extra: &str| Requester {
            name: name.into(),
            groups: vec![group.into()],
            extra: [("acme.com/scope".to_owned(), vec![extra.to_owned()])].into(),
        };
        for (name, group, extra) in [
            ("", "devs", "x"),
            ("a\nb", "devs", "x"),
            ("jane", "devs\r\nImpersonate-User: root", "x"),
            // Servers take the blanks off.
            ("admin ", "devs", "x"),
            (" admin", "devs", "x"),
            ("admin\t", "devs", "x"),
            (" ", "devs", "x"),
            ("jane", "system:masters ", "x"),
            ("jane", "\tsystem:masters", "x"),
            ("jane", "system:authenticated ", "x"),
            ("jane", "devs", "x "),
            ("jane", "devs", "\tx"),
        ] {
            assert_eq!(
                request(&HeaderMap::new(), &named(name, group, extra), None),
                None,
                "{name:?} {group:?} {extra:?}"
            );
        }
        for name in ["j\u{e4}ne", "jane doe"] {
            assert!(request(&HeaderMap::new(), &named(name, "devs", "x y"), None).is_some());
        }
    }

    #[test]
    fn the_groups_of_a_service_account_are_the_members_to_add() {
        let all = "system:serviceaccounts";
        // user, groups, those that are sent
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "system:serviceaccount:shop:robot",
                &[all, "system:serviceaccounts:shop", "system:authenticated"],
                &[],
            ),
            // Without one of them, or with another one, they are not those that the member would add.
            ("system:serviceaccount:shop:robot", &[all], &[all]),
            (
                "system:serviceaccount:shop:robot",
                &[all, "system:serviceaccounts:other"],
                &[all, "system:serviceaccounts:other"],
            ),
            (
                "system:serviceaccount:shop:robot",
                &[all, "system:serviceaccounts:shop", "devs"],
                &[all, "system:serviceaccounts:shop", "devs"],
            ),
            (
                "system:serviceaccount:shop:robot:x",
                &[all, "system:serviceaccounts:shop"],
                &[all, "system:serviceaccounts:shop"],
            ),
            (
                "jane",
                &[all, "system:serviceaccounts:shop"],
                &[all, "system:serviceaccounts:shop"],
            ),
        ];
        for (name, groups, sent) in cases {
            let requester = Requester {
                name: (*name).into(),
                groups: groups.iter().map(|each| (*each).into()).collect(),
                ..Requester::default()
            };
            let headers = request(&HeaderMap::new(), &requester, None).unwrap();
            let given: Vec<&str> = headers
                .get_all("impersonate-group")
                .iter()
                .map(|each| each.to_str().unwrap())
                .collect();
            assert_eq!(given, *sent, "{name} {groups:?}");
        }
    }

    #[test]
    fn a_response_does_not_speak_for_the_hub() {
        const SANDBOX: [&str; 2] = [
            "content-security-policy: sandbox",
            "x-content-type-options: nosniff",
        ];
        use Protocol::WebSocket;
        let cases: &[(&[&str], Option<Protocol>, &[&str])] = &[
            (
                &["Content-Type: application/json", "Content-Length: 5"],
                None,
                &["content-length: 5", "content-type: application/json"],
            ),
            (
                &["Set-Cookie: a=b", "Www-Authenticate: Basic", "Connection: close"],
                None,
                &[],
            ),
            (
                &[
                    "Location: https://hub/api/v1/secrets",
                    "Content-Location: /api",
                    "Refresh: 0; url=/api",
                ],
                None,
                &[],
            ),
            (
                &[
                    "Clear-Site-Data: \"*\"",
                    "Content-Security-Policy: default-src *",
                    "Access-Control-Allow-Origin: *",
                    "Access-Control-Allow-Credentials: true",
                    "Alt-Svc: h2=\":1\"",
                    "Strict-Transport-Security: max-age=1",
                    "NEL: {}",
                    "Report-To: {}",
                    "Reporting-Endpoints: a",
                    "Service-Worker-Allowed: /",
                ],
                None,
                &[],
            ),
            (&["Connection: Upgrade", "Upgrade: websocket"], None, &[]),
            (
                &["Connection: Upgrade", "Upgrade: websocket"],
                Some(WebSocket),
                &["connection: Upgrade", "upgrade: websocket"],
            ),
        ];
        for (from, changed, expected) in cases {
            let mut found = lines(&response(&map(from), *changed));
            // No page of a member runs as one of the hub.
            found.retain(|line| !SANDBOX.contains(&line.as_str()));
            assert_eq!(found, *expected, "{from:?}");
            let all = lines(&response(&map(from), *changed));
            assert!(
                SANDBOX.iter().all(|line| all.contains(&(*line).to_owned())),
                "{all:?}"
            );
        }
    }
}
