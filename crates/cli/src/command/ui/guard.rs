//! The requests that the page's server answers: those of its own page, in the browser of the user who started it.
//!
//! Pure. Another process on the machine does not know the token. A page of another origin cannot send it, and a name that was rebound
//! to the loopback address is not among the hosts.

use std::fmt;

use http::{HeaderMap, Method, StatusCode, header};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The key to the page's data: whoever has it reads what the user may read.
pub(super) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A new one, of 256 random bits.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(super) fn random() -> anyhow::Result<Self> {
        use fmt::Write as _;
        let mut bytes = [0; 32];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
        let mut text = String::new();
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Its text, for the address of the page.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// True if a request has it. Takes the same time for each wrong one of its length.
    fn is_sent(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(header::AUTHORIZATION);
        let sent = sent.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let sent = sent.unwrap_or_default();
        let differs = sent.iter().zip(self.0.as_bytes());
        let differs = differs.fold(0, |all, (sent, own)| all | (sent ^ own));
        sent.len() == self.0.len() && differs == 0
    }
}

/// The refusal of a request for anything: the status and the cause.
pub(super) fn refusal(method: &Method, headers: &HeaderMap, port: u16) -> Option<(StatusCode, &'static str)> {
    if !is_own_host(headers, port) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this server is 127.0.0.1 or localhost, at its own port\n",
        ));
    }
    if method != Method::GET && method != Method::HEAD {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n"));
    }
    None
}

/// The refusal of a request for data.
pub(super) fn refusal_of_data(
    headers: &HeaderMap,
    port: u16,
    token: &Token,
) -> Option<(StatusCode, &'static str)> {
    let site = headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes);
    let origin = headers.get(header::ORIGIN).map(http::HeaderValue::as_bytes);
    let is_own = |origin: &[u8]| {
        let host = origin.strip_prefix(b"http://");
        host.is_some_and(|host| hosts(port).iter().any(|own| own.as_bytes() == host))
    };
    if site.is_some_and(|site| site != b"same-origin") || origin.is_some_and(|origin| !is_own(origin)) {
        return Some((StatusCode::FORBIDDEN, "only the page of this server reads this\n"));
    }
    if !token.is_sent(headers) {
        return Some((
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong: open the address that `entourage ui` printed\n",
        ));
    }
    None
}

/// True if the one Host header names the loopback address and our port.
fn is_own_host(headers: &HeaderMap, port: u16) -> bool {
    let mut sent = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (sent.next(), sent.next()) else {
        return false;
    };
    hosts(port)
        .iter()
        .any(|own| own.as_bytes().eq_ignore_ascii_case(host.as_bytes()))
}

fn hosts(port: u16) -> [String; 2] {
    ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn only_get_of_the_own_host_is_answered() {
        for (method, hosts, wanted) in [
            (Method::GET, &["127.0.0.1:81"][..], None),
            (Method::HEAD, &["LocalHost:81"], None),
            (Method::GET, &["127.0.0.1:82"], Some(421)),
            (Method::GET, &["127.0.0.1"], Some(421)),
            (Method::GET, &["rebound.example.com:81"], Some(421)),
            (Method::GET, &["127.0.0.1:81", "rebound.example.com"], Some(421)),
            (Method::GET, &[], Some(421)),
            (Method::POST, &["rebound.example.com:81"], Some(421)),
            (Method::POST, &["localhost:81"], Some(405)),
            (Method::OPTIONS, &["localhost:81"], Some(405)),
        ] {
            let all: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            let got = refusal(&method, &headers(&all), 81).map(|(status, _)| status.as_u16());
            assert_eq!(got, wanted, "{method} {hosts:?}");
        }
    }

    #[test]
    fn data_is_for_the_own_page_with_the_token() {
        let token = Token::random().unwrap();
        let right = format!("Bearer {}", token.text());
        let wrong = format!("Bearer {}", Token::random().unwrap().text());
        let (short, long) = (&right[..right.len() - 1], format!("{right}0"));
        for (all, wanted) in [
            (vec![("authorization", right.as_str())], None),
            (
                vec![
                    ("authorization", right.as_str()),
                    ("sec-fetch-site", "same-origin"),
                ],
                None,
            ),
            (
                vec![
                    ("authorization", right.as_str()),
                    ("origin", "http://127.0.0.1:81"),
                ],
                None,
            ),
            (
                vec![
                    ("authorization", right.as_str()),
                    ("origin", "http://127.0.0.1:82"),
                ],
                Some(403),
            ),
            (
                vec![("authorization", right.as_str()), ("origin", "null")],
                Some(403),
            ),
            (
                vec![("authorization", right.as_str()), ("sec-fetch-site", "same-site")],
                Some(403),
            ),
            (
                vec![
                    ("authorization", right.as_str()),
                    ("sec-fetch-site", "cross-site"),
                ],
                Some(403),
            ),
            (vec![("authorization", wrong.as_str())], Some(401)),
            (vec![("authorization", short)], Some(401)),
            (vec![("authorization", long.as_str())], Some(401)),
            (vec![("authorization", token.text())], Some(401)),
            (vec![("authorization", "Bearer ")], Some(401)),
            (vec![], Some(401)),
        ] {
            let got = refusal_of_data(&headers(&all), 81, &token).map(|(status, _)| status.as_u16());
            assert_eq!(got, wanted, "{all:?}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = Token::random().unwrap();
        assert_eq!(format!("{token:?}"), "Token");
        assert_eq!(token.text().len(), 64);
    }
}
