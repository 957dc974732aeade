//! Kubeconfigs for clusters served here.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::authority::{Authority, ClientCertificate};

/// The credentials of the user of a kubeconfig.
#[derive(Clone, Copy)]
pub enum Access<'a> {
    /// By a bearer token.
    Token(&'a str),
    /// By a client certificate.
    Certificate(&'a ClientCertificate),
}

impl std::fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token",
            Self::Certificate(_) => "Certificate",
        })
    }
}

/// A kubeconfig (YAML) with one context named `name`. `server`: the URL. The text holds a secret.
#[must_use]
pub fn kubeconfig(name: &str, server: &str, authority: &Authority, access: Access<'_>) -> String {
    let user = match access {
        Access::Token(token) => json!({"token": token}),
        Access::Certificate(client) => json!({
            "client-certificate-data": STANDARD.encode(&client.certificate),
            "client-key-data": STANDARD.encode(&client.key),
        }),
    };
    let named = |what: &str, value: Value| json!([{"name": name, what: value}]);
    let cluster =
        json!({"server": server, "certificate-authority-data": STANDARD.encode(&authority.certificate)});
    crate::http::yaml::document(&json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": named("cluster", cluster),
        "contexts": named("context", json!({"cluster": name, "user": name})),
        "users": named("user", user),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_read_by_the_client_library() {
        let authority = Authority::new().expect("an authority");
        let client = authority.client("jane", &["devs"]).expect("a certificate");
        for access in [Access::Token("s3cret"), Access::Certificate(&client)] {
            let text = kubeconfig("hub", "https://127.0.0.1:6443", &authority, access);
            let read: Value = serde_saphyr::from_str(&text).expect("valid YAML");
            assert_eq!(read["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
            assert_eq!(read["contexts"][0]["context"]["user"], "hub");
        }
    }
}
