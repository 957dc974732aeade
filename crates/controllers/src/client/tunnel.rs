//! The way to a server through an HTTP proxy: user and password of the proxy's URL, and the headers of the request CONNECT.
//!
//! kube's configuration has no field for these headers. They travel among those of its requests, under a prefix, and the client of
//! production takes them out before it makes any request: they never reach the server.

use std::{collections::BTreeMap, fmt};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use k8s_openapi::ByteString;
use kube::Config;

/// The prefix of the names under which headers of CONNECT are in a configuration.
const PREFIX: &str = "entourage-connect-";

/// Names that say how the request itself is read. Karmada does not send them either: Go's HTTP library leaves them out.
const LEFT_OUT: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TRAILER,
];

/// Headers for a proxy: `spec.proxyHeader` of a Cluster. Values may be credentials, and are not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxyHeaders(BTreeMap<String, String>);

impl fmt::Debug for ProxyHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} headers", self.0.len())
    }
}

impl From<&BTreeMap<String, String>> for ProxyHeaders {
    fn from(headers: &BTreeMap<String, String>) -> Self {
        Self(headers.clone())
    }
}

/// A name or a value that no header can have. It does not say which: a credential may be in either.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

impl ProxyHeaders {
    /// Adds them to the configuration of a client.
    pub(crate) fn add_to(&self, config: &mut Config) -> Result<(), Unfit> {
        for (name, value) in &self.0 {
            let plain = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unfit)?;
            if LEFT_OUT.contains(&plain) {
                continue;
            }
            let name = HeaderName::from_bytes(format!("{PREFIX}{plain}").as_bytes()).map_err(|_| Unfit)?;
            let mut value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| Unfit)?;
            // It is not shown when a configuration is.
            value.set_sensitive(true);
            config.headers.push((name, value));
        }
        Ok(())
    }
}

/// Takes the headers of CONNECT out of a configuration.
pub(super) fn take(config: &mut Config) -> HeaderMap {
    let mut taken = HeaderMap::new();
    config.headers.retain(|(name, value)| {
        let plain = name.as_str().strip_prefix(PREFIX);
        let Some(Ok(plain)) = plain.map(|plain| HeaderName::from_bytes(plain.as_bytes())) else {
            return true;
        };
        taken.append(plain, value.clone());
        false
    });
    taken
}

/// The connector through a proxy, with these headers, and with the user and password of its URL, which go before theirs.
pub(super) fn tunnel<C>(proxy: Uri, headers: HeaderMap, connector: C) -> Tunnel<C> {
    let userinfo = proxy
        .authority()
        .and_then(|authority| Some(authority.as_str().rsplit_once('@')?.0.to_owned()));
    let mut tunnel = Tunnel::new(proxy, connector);
    if !headers.is_empty() {
        tunnel = tunnel.with_headers(headers);
    }
    match userinfo.and_then(|userinfo| basic(&userinfo)) {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

/// The header for the user and password of a URL, which are percent-encoded there.
fn basic(userinfo: &str) -> Option<HeaderValue> {
    let mut plain = Vec::new();
    let mut rest = userinfo.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| first == b'%');
        let escaped = escaped.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        plain.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    // k8s-openapi's ByteString is a base64 encoder.
    let encoded = serde_json::to_value(ByteString(plain)).ok()?;
    HeaderValue::from_str(&format!("Basic {}", encoded.as_str()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_a_proxys_url_are_decoded() {
        for (userinfo, header) in [
            ("user:pass", "Basic dXNlcjpwYXNz"),
            ("user:pa%40ss%3Aword", "Basic dXNlcjpwYUBzczp3b3Jk"),
            ("user:%+Ax", "Basic dXNlcjolK0F4"),
        ] {
            assert_eq!(
                basic(userinfo),
                Some(HeaderValue::from_static(header)),
                "{userinfo}"
            );
        }
    }

    fn headers(pairs: &[(&str, &str)]) -> ProxyHeaders {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ProxyHeaders(pairs.collect())
    }

    #[test]
    fn headers_of_a_proxy_are_taken_out_of_a_configuration_as_they_were_put_in_and_never_shown() {
        let mut config = Config::new(Uri::from_static("https://m:6443"));
        let agent = (header::USER_AGENT, HeaderValue::from_static("x"));
        config.headers.push(agent.clone());
        let given = headers(&[
            ("X-Team", " a,b "),
            ("Proxy-Authorization", "Bearer canary"),
            ("Host", "elsewhere"),
            ("content-length", "5"),
        ]);
        given.add_to(&mut config).unwrap();
        for shown in [format!("{config:?}"), format!("{given:?}")] {
            assert!(!shown.contains("canary"), "{shown}");
        }
        let taken = take(&mut config);
        assert_eq!(taken.len(), 2, "{taken:?}");
        assert_eq!(taken["x-team"], "a,b");
        assert_eq!(taken["proxy-authorization"], "Bearer canary");
        assert_eq!(config.headers, [agent]);
    }

    #[test]
    fn a_name_or_a_value_that_no_header_can_have_is_refused() {
        for (name, value) in [
            ("", "x"),
            ("x y", "x"),
            ("x:", "x"),
            ("x", "a\r\nInjected: b"),
            ("x", "\0"),
        ] {
            let mut config = Config::new(Uri::from_static("https://m:6443"));
            assert_eq!(
                headers(&[(name, value)]).add_to(&mut config),
                Err(Unfit),
                "{name:?}"
            );
        }
    }
}
