//! Manifests that are not files: documents of URLs, and what a kustomization builds.

use std::{io::ErrorKind, path::Path, process::Command};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use http::{Request, StatusCode, Uri, header, uri::Scheme};
use http_body_util::{BodyExt as _, Limited};
use kube::{Config, client::Body};

use super::{Manifest, parse};
use crate::{
    connect::{explain, within_late},
    plain::plain,
};

/// The largest document that is fetched, in bytes.
const LARGEST: usize = 16 << 20;

/// The number of redirects that are followed.
const REDIRECTS: usize = 5;

/// The commands that build a kustomization.
const BUILDERS: [&[&str]; 2] = [&["kubectl", "kustomize"], &["kustomize", "build"]];

/// The URL that a path of the command line is.
pub(super) fn url(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    (text.starts_with("https://") || text.starts_with("http://")).then_some(text)
}

/// A URL without its query and its user, which may be secret.
pub(super) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    plain(&format!("{scheme}://{host}{path}"))
}

/// The document of a URL. It is waited for.
///
/// # Errors
/// The URL cannot be read, and the cause.
pub(super) fn fetch(url: &str) -> Result<String> {
    // A thread of its own: the caller may be on one of the runtime's.
    let fetched = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(follow(url))
        });
        thread.join()
    });
    let fetched = fetched.unwrap_or_else(|_| Err(anyhow!("the request broke off")));
    fetched.with_context(|| format!("cannot read {}", shown(url)))
}

async fn follow(url: &str) -> Result<String> {
    let mut uri: Uri = url.parse().context("it is not a URL")?;
    for _ in 0..=REDIRECTS {
        let (status, location, text) = get(&uri).await?;
        if !status.is_redirection() {
            ensure!(status == StatusCode::OK, "the server responded with {status}");
            return String::from_utf8(text).map_err(|_| anyhow!("it is not text"));
        }
        let location = location.context("the server redirects without an address")?;
        let next = next(&uri, &location)?;
        let is_weaker = uri.scheme() == Some(&Scheme::HTTPS) && next.scheme() != Some(&Scheme::HTTPS);
        ensure!(
            !is_weaker,
            "it redirects from https to http: name that address yourself"
        );
        uri = next;
    }
    bail!("it redirects more than {REDIRECTS} times")
}

/// The status, the address of a redirect, and the document.
async fn get(uri: &Uri) -> Result<(StatusCode, Option<String>, Vec<u8>)> {
    let authority = uri.authority().context("it has no host")?;
    ensure!(
        !authority.as_str().contains('@'),
        "credentials in a URL are not used: fetch it yourself and give the file"
    );
    let server: Uri = format!("{}://{authority}", uri.scheme_str().unwrap_or("https")).parse()?;
    let mut config = Config::new(server);
    config.proxy_url = proxy(uri, |name| std::env::var(name).ok());
    let client = entourage_controllers::plain_clients()("", config).map_err(explain)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path).body(Body::empty())?;
    let answer = within_late(client.send(request)).await.map_err(explain)?;
    let (parts, body) = answer.into_parts();
    let location = parts
        .headers
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok());
    let text = within_late(async {
        let whole = Limited::new(body, LARGEST).collect().await;
        whole.map_err(kube::Error::Service)
    });
    let text = text.await.map_err(explain)?.to_bytes();
    Ok((parts.status, location.map(str::to_owned), text.to_vec()))
}

/// The address that a redirect names, which may leave the server out.
fn next(from: &Uri, location: &str) -> Result<Uri> {
    let to: Uri = location.parse().context("the server redirects to no URL")?;
    if to.scheme().is_some() {
        return Ok(to);
    }
    ensure!(
        location.starts_with('/'),
        "the server redirects to a relative path"
    );
    let mut parts = to.into_parts();
    parts.scheme = from.scheme().cloned();
    parts.authority = from.authority().cloned();
    Ok(Uri::from_parts(parts)?)
}

/// The proxy of the environment, for hosts that `NO_PROXY` does not name.
fn proxy(uri: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<Uri> {
    let value = |name: &str| {
        let value = variable(name).or_else(|| variable(&name.to_lowercase()));
        value.filter(|value| !value.is_empty())
    };
    let host = uri.host()?;
    let exceptions = value("NO_PROXY").unwrap_or_default();
    let is_exception = exceptions.split(',').map(str::trim).any(|each| {
        let domain = each.trim_start_matches('.');
        each == "*" || !domain.is_empty() && (host == domain || host.ends_with(&format!(".{domain}")))
    });
    let name = if uri.scheme() == Some(&Scheme::HTTPS) {
        "HTTPS_PROXY"
    } else {
        "HTTP_PROXY"
    };
    if is_exception {
        None
    } else {
        value(name)?.parse().ok()
    }
}

/// The objects that the kustomization of a directory builds.
///
/// # Errors
/// Neither kubectl nor kustomize is on the PATH, or the kustomization cannot be built.
pub fn built(directory: &Path) -> Result<Vec<Manifest>> {
    ensure!(
        directory.is_dir(),
        "-k {}: not a directory; -f reads files and URLs",
        directory.display()
    );
    for words in BUILDERS {
        let name = words.join(" ");
        let done = Command::new(words[0]).args(&words[1..]).arg(directory).output();
        let done = match done {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            done => done.with_context(|| format!("cannot run {name}"))?,
        };
        let error = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.success(),
            "`{name} {}` failed: {}",
            directory.display(),
            plain(error.trim())
        );
        let text = String::from_utf8(done.stdout)
            .map_err(|_| anyhow!("`{name} {}` printed no text", directory.display()))?;
        let manifests = parse(&text, &format!("kustomization {}", directory.display()))?;
        ensure!(
            !manifests.is_empty(),
            "the kustomization {} builds no object",
            directory.display()
        );
        return Ok(manifests);
    }
    bail!("-k needs kubectl or kustomize on the PATH: install one, or give what it builds with -f")
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        path::PathBuf,
    };

    use super::*;
    use crate::manifests::read;

    const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    /// A server with these responses, one after the other. Returns its address.
    fn server(responses: Vec<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for response in responses {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).unwrap();
                stream.write_all(response.as_bytes()).unwrap();
            }
        });
        address
    }

    fn response(status: &str, header: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 {status}\r\n{header}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    #[test]
    fn a_url_is_read_like_a_file_also_after_a_redirect() {
        crate::install_tls_provider();
        let address = server(vec![
            response("302 Found", "location: /b.yaml\r\n", ""),
            response("200 OK", "", OBJECT),
        ]);
        let found = read(&[PathBuf::from(format!("{address}/a.yaml?token=canary"))]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].origin(), format!("{address}/a.yaml"));
    }

    #[test]
    fn a_url_that_cannot_be_read_is_named_without_its_query() {
        crate::install_tls_provider();
        let missing = server(vec![response("404 Not Found", "", "")]);
        for (url, cause) in [
            (format!("{missing}/a?token=canary"), "404 Not Found"),
            ("http://127.0.0.1:1/a?token=canary".to_owned(), "refused"),
            (
                "http://user:canary@127.0.0.1:1/a".to_owned(),
                "credentials in a URL",
            ),
        ] {
            let error = format!("{:#}", fetch(&url).unwrap_err());
            assert!(
                error.contains("cannot read http://") && error.contains(cause),
                "{error}"
            );
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn a_redirect_keeps_the_server_unless_it_names_another() {
        let from: Uri = "https://a:8443/x".parse().unwrap();
        assert_eq!(next(&from, "/y?z=1").unwrap().to_string(), "https://a:8443/y?z=1");
        assert_eq!(next(&from, "http://b/y").unwrap().to_string(), "http://b/y");
        assert!(next(&from, "y").is_err());
    }

    #[test]
    fn the_proxy_is_that_of_the_environment() {
        let variables = |name: &str| match name {
            "https_proxy" => Some("http://proxy:3128".to_owned()),
            "NO_PROXY" => Some("localhost, .corp.example".to_owned()),
            _ => None,
        };
        for (url, wanted) in [
            ("https://example.com/a", Some("http://proxy:3128/")),
            ("http://example.com/a", None),
            ("https://git.corp.example/a", None),
            ("https://corp.example.com/a", Some("http://proxy:3128/")),
        ] {
            let proxy = proxy(&url.parse().unwrap(), variables).map(|proxy| proxy.to_string());
            assert_eq!(proxy.as_deref(), wanted, "{url}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_no_kustomization() {
        let error = built(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("-k /nonexistent: not a directory"), "{error}");
    }
}
