//! Calling a webhook: where it is, whom to trust, and one POST with a deadline and a bound on its answer.
//!
//! Errors are texts in the words of a kube-apiserver: what went wrong stands behind the URL that was called.

use std::{io, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::trust;
use crate::{
    admission::Context,
    object::{
        Object, field,
        tree::{at, below, count, list, object, text},
    },
};

/// The largest answer that is read, in bytes.
const LARGEST: usize = 3 << 20;

/// The address of a webhook.
struct Target {
    /// As errors name it, with the time that the webhook has.
    url: String,
    /// The address that is dialed.
    address: String,
    /// The server name that its certificate must be valid for.
    server: String,
    /// Path and query.
    path: String,
}

/// Posts a review and returns the answer, within the webhook's `timeoutSeconds`.
pub(super) async fn post(cluster: &dyn Context, webhook: &Object, body: &Value) -> Result<Value, String> {
    let config = below(webhook, "clientConfig");
    let seconds = count(webhook, "timeoutSeconds").clamp(1, 30);
    let trust = trusting(text(config, "caBundle"))
        .map_err(|error| format!("could not get REST client: unable to load root certificates: {error}"))?;
    let failed = |url: &str, error: String| format!("failed to call webhook: Post {url:?}: {error}");
    let target = target(cluster, config, seconds).map_err(|(url, error)| failed(&url, error))?;
    let limit = Duration::from_secs(seconds.unsigned_abs());
    let answer = tokio::time::timeout(limit, exchange(&target, trust, body)).await;
    match answer {
        Err(_) => Err(failed(&target.url, "context deadline exceeded".to_owned())),
        Ok(Err(Problem::Call(error))) => Err(failed(&target.url, error)),
        Ok(Err(Problem::Answer(error))) => Err(format!("failed to call webhook: {error}")),
        Ok(Ok(answer)) => Ok(answer),
    }
}

/// The failure of a call: no response, or an invalid one.
enum Problem {
    Call(String),
    Answer(String),
}

async fn exchange(target: &Target, trust: ClientConfig, body: &Value) -> Result<Value, Problem> {
    let stream = TcpStream::connect(&target.address)
        .await
        .map_err(|error| Problem::Call(dialed(&target.address, &error)))?;
    let _ = stream.set_nodelay(true);
    let server = ServerName::try_from(target.server.clone())
        .map_err(|_| Problem::Call(format!("{:?} is no name of a server", target.server)))?;
    let stream = TlsConnector::from(Arc::new(trust))
        .connect(server, stream)
        .await
        .map_err(|error| Problem::Call(shaken(&error)))?;
    let broken = |error: hyper::Error| Problem::Call(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let host = target.url.strip_prefix("https://").unwrap_or_default();
    let request = Request::post(&target.path)
        .header(header::HOST, host.split('/').next().unwrap_or_default())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| Problem::Call(error.to_string()))?;
    let asked = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let code = response.status().as_u16();
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        let body = body
            .map_err(|error| Problem::Answer(error.to_string()))?
            .to_bytes();
        answered(code, &body).map_err(Problem::Answer)
    };
    // If the connection ends, the request that waits for a response on it fails.
    let carried = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        answer = asked => answer,
        () = carried => Err(Problem::Call("EOF".to_owned())),
    }
}

/// The response in a body, or the error for its status code.
fn answered(code: u16, body: &[u8]) -> Result<Value, String> {
    if (200..=206).contains(&code) {
        return serde_json::from_slice(body)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"));
    }
    let reported = serde_json::from_slice::<Value>(body).unwrap_or_default();
    if reported["kind"] == "Status"
        && let Some(message) = reported["message"].as_str()
    {
        return Err(message.to_owned());
    }
    Err(match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        500.. => {
            let text: String = String::from_utf8_lossy(body).trim().chars().take(2048).collect();
            let text = if text.is_empty() {
                "unknown".to_owned()
            } else {
                text
            };
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        code => format!("the server responded with the status code {code} but did not return more details"),
    })
}

/// The reason why there is no connection.
fn dialed(address: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {address}: connect: connection refused"),
        _ if error.raw_os_error().is_none() => {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            format!("dial tcp: lookup {host}: no such host")
        }
        _ => format!("dial tcp {address}: {error}"),
    }
}

/// The reason why there is no TLS.
fn shaken(error: &io::Error) -> String {
    let reason = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(reason)) = reason else {
        return error.to_string();
    };
    let why = match reason {
        unvouched if trust::is_unvouched(unvouched) => "certificate signed by unknown authority".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        other => format!("{other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// The authorities that a `caBundle` trusts. Without one there are none: an embedded server uses no system roots.
fn trusting(bundle: &str) -> Result<ClientConfig, String> {
    let pem = STANDARD.decode(bundle).map_err(|error| error.to_string())?;
    let trusted = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = if trusted.is_empty() {
        config.with_root_certificates(RootCertStore::empty())
    } else {
        config
            .dangerous()
            .with_custom_certificate_verifier(trust::verifier(trusted, provider)?)
    };
    Ok(config.with_no_client_auth())
}

/// The address in a client configuration; else its URL and the reason why it has none.
fn target(cluster: &dyn Context, config: &Object, seconds: i64) -> Result<Target, (String, String)> {
    let Some(service) = object(config, "service") else {
        return of_url(text(config, "url"), seconds);
    };
    let (name, namespace) = (text(service, "name"), text(service, "namespace"));
    let path = format!("/{}", text(service, "path").trim_start_matches('/'));
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let server = format!("{name}.{namespace}.svc");
    let path = format!("{path}?timeout={seconds}s");
    let url = format!("https://{server}:{port}{path}");
    match resolved(cluster, namespace, name, port) {
        Ok(address) => Ok(Target {
            url,
            address,
            server,
            path,
        }),
        Err(error) => Err((url, error)),
    }
}

fn of_url(url: &str, seconds: i64) -> Result<Target, (String, String)> {
    let shown = format!("{url}?timeout={seconds}s");
    let uri: Uri = match url.parse() {
        Ok(uri) => uri,
        Err(error) => return Err((shown, format!("{error}"))),
    };
    let Some(host) = uri.host() else {
        return Err((shown, "no Host in request URL".to_owned()));
    };
    let port = uri.port_u16().unwrap_or(443);
    let path = match uri.path() {
        "" => "/",
        path => path,
    };
    Ok(Target {
        path: format!("{path}?timeout={seconds}s"),
        address: format!("{host}:{port}"),
        server: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        url: shown,
    })
}

/// The address behind a port of a Service: its external name, or the first ready address of its endpoints. An embedded
/// cluster has no network of its own, so cluster addresses lead nowhere.
fn resolved(cluster: &dyn Context, namespace: &str, name: &str, port: i64) -> Result<String, String> {
    let key = format!("{namespace}/{name}");
    let Some(service) = cluster.get("services", &key) else {
        return Err(format!("service {name:?} not found"));
    };
    let spec = at(&service, &["spec"]);
    if text(spec, "type") == "ExternalName" {
        return Ok(format!("{}:{port}", text(spec, "externalName")));
    }
    let declared = list(spec, "ports")
        .iter()
        .filter_map(Value::as_object)
        .find(|declared| count(declared, "port") == port);
    let Some(declared) = declared else {
        return Err(format!("no service port {port} found for service {name:?}"));
    };
    let of_endpoints = cluster
        .get("endpoints", &key)
        .and_then(|endpoints| first(list(&endpoints, "subsets"), "addresses", text(declared, "name")));
    let found = of_endpoints.or_else(|| {
        let slices = cluster.list("discovery.k8s.io/endpointslices", &format!("{namespace}/"));
        slices.into_iter().find_map(|slice| {
            let of = at(&slice, &["metadata", "labels"]);
            let is_its = text(of, "kubernetes.io/service-name") == name;
            let slice = [Value::Object(slice)];
            is_its.then(|| first(&slice, "endpoints", text(declared, "name")))?
        })
    });
    found.ok_or_else(|| format!("no endpoints available for service {:?}", field(&service, "name")))
}

/// The first address of subsets of Endpoints, or of EndpointSlices, that are ready and have the port.
fn first(subsets: &[Value], addresses: &str, port: &str) -> Option<String> {
    subsets.iter().filter_map(Value::as_object).find_map(|subset| {
        let of = list(subset, "ports").iter().filter_map(Value::as_object);
        let port = of
            .filter(|known| text(known, "name") == port)
            .map(|known| count(known, "port"))
            .next()?;
        let ready =
            |one: &&Object| at(one, &["conditions"]).get("ready").and_then(Value::as_bool) != Some(false);
        let mut of = list(subset, addresses)
            .iter()
            .filter_map(Value::as_object)
            .filter(ready);
        let one = of.find_map(|one| match text(one, "ip") {
            "" => list(one, "addresses")
                .first()
                .and_then(Value::as_str)
                .map(str::to_owned),
            ip => Some(ip.to_owned()),
        })?;
        Some(if one.contains(':') {
            format!("[{one}]:{port}")
        } else {
            format!("{one}:{port}")
        })
    })
}
