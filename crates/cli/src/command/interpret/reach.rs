//! Other addresses of webhooks than those in their configuration: --hook-url.
//!
//! The certificate of a webhook behind a Service must be valid for the Service's name at any address, so that a port of
//! `kubectl port-forward` is trusted like the Service, and no more than it.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Result, bail};
use entourage_controllers::hooks::Services;
use futures::future::BoxFuture;
use http::Uri;
use serde_json::{Value, json};

/// `<configuration>/<webhook>=https://host:port/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookUrl {
    pub(super) hook: String,
    url: String,
    host: String,
    port: u16,
    path: String,
}

/// Reads the value of --hook-url.
///
/// # Errors
/// A sentence for the user.
pub(super) fn hook_url(text: &str) -> Result<HookUrl, String> {
    const FORM: &str = "give CONFIGURATION/WEBHOOK=https://HOST:PORT";
    let (hook, url) = text
        .split_once('=')
        .ok_or_else(|| format!("there is no URL; {FORM}"))?;
    if !hook.contains('/') {
        return Err(format!("{hook:?} is not the name of a hook; {FORM}"));
    }
    let uri: Uri = url.parse().map_err(|_| format!("{url:?} is not a URL; {FORM}"))?;
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
    let host = host.ok_or_else(|| format!("{url:?} does not begin with https:// and a host; {FORM}"))?;
    Ok(HookUrl {
        hook: hook.to_owned(),
        url: url.to_owned(),
        host: host.trim_matches(['[', ']']).to_owned(),
        port: uri.port_u16().unwrap_or(443),
        path: uri.path().to_owned(),
    })
}

/// The Services with another address, by namespace and name, and their hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach(BTreeMap<(String, String), String>);

impl Reach {
    /// Sets the address of the webhook that a URL is for; a configuration without that webhook does not change. The path of a
    /// Service's reference is kept if the URL has none.
    ///
    /// # Errors
    /// A Service would have two addresses.
    pub(super) fn lead(&mut self, configuration: &mut Value, to: &HookUrl) -> Result<()> {
        let of = configuration["metadata"]["name"].as_str().unwrap_or_default();
        let Some(name) = to.hook.strip_prefix(of).and_then(|rest| rest.strip_prefix('/')) else {
            return Ok(());
        };
        let entries = configuration["webhooks"].as_array_mut();
        for entry in entries
            .into_iter()
            .flatten()
            .filter(|entry| entry["name"] == name)
        {
            let client = &mut entry["clientConfig"];
            if client["service"].is_null() {
                client["url"] = json!(to.url);
                continue;
            }
            let service = &mut client["service"];
            service["port"] = json!(to.port);
            if to.path != "/" {
                service["path"] = json!(to.path);
            }
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = (text(&service["namespace"]), text(&service["name"]));
            let before = self.0.insert(key, to.host.clone());
            if let Some(other) = before.filter(|other| *other != to.host) {
                bail!(
                    "--hook-url: the Service of {} is at {other} and at {}; name one of them",
                    to.hook,
                    to.host
                );
            }
        }
        Ok(())
    }

    /// True if a Service has another address.
    pub(super) fn knows(&self, namespace: &str, name: &str) -> bool {
        self.0.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    /// The resolver for the caller of webhooks.
    pub(super) fn services(&self) -> Arc<dyn Services> {
        Arc::new(self.clone())
    }
}

impl Services for Reach {
    fn service<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, String>> {
        let host = self.0.get(&(namespace.to_owned(), name.to_owned()));
        let service = host.map(|host| json!({"spec": {"type": "ExternalName", "externalName": host}}));
        Box::pin(std::future::ready(Ok(service)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_for_a_hook_and_over_tls() {
        let read = hook_url("shops/shops.example.com=https://[::1]:9443/x").unwrap();
        assert_eq!(
            (&*read.hook, &*read.host, read.port, &*read.path),
            ("shops/shops.example.com", "::1", 9443, "/x")
        );
        assert_eq!(hook_url("a/b=https://h").unwrap().port, 443);
        for wrong in [
            "a/b",
            "a=https://h",
            "a/b=http://h",
            "a/b=h",
            "a/b=https://",
            "a/b=",
        ] {
            let error = hook_url(wrong).unwrap_err();
            assert!(
                error.contains("; give CONFIGURATION/WEBHOOK="),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn a_url_replaces_a_url_and_leads_to_a_service() {
        let configuration = || {
            json!({"metadata": {"name": "shops"}, "webhooks": [
                {"name": "one", "clientConfig": {"url": "https://far", "caBundle": "x"}},
                {"name": "two", "clientConfig": {"service": {"namespace": "team", "name": "hook", "path": "/p"}}}]})
        };
        let (mut reach, mut led) = (Reach::default(), configuration());
        let to = |text: &str| hook_url(text).unwrap();
        reach.lead(&mut led, &to("other/one=https://near")).unwrap();
        assert_eq!(led, configuration());
        reach.lead(&mut led, &to("shops/one=https://near/x")).unwrap();
        reach
            .lead(&mut led, &to("shops/two=https://127.0.0.1:9443"))
            .unwrap();
        let one = &led["webhooks"][0]["clientConfig"];
        assert_eq!(*one, json!({"url": "https://near/x", "caBundle": "x"}));
        let two = json!({"namespace": "team", "name": "hook", "path": "/p", "port": 9443});
        assert_eq!(led["webhooks"][1]["clientConfig"]["service"], two);
        assert!(reach.knows("team", "hook") && !reach.knows("team", "other"));
        let error = reach
            .lead(&mut led, &to("shops/two=https://10.0.0.1"))
            .unwrap_err();
        assert!(
            error.to_string().contains("at 127.0.0.1 and at 10.0.0.1"),
            "{error}"
        );
    }
}
