//! Creates clients from kubeconfigs, and explains errors of servers to the user.

use std::{error::Error as _, ops::Deref, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError},
};
use serde_json::{Value, json};
use tower::service_fn;

/// The deadline of a request that is not a watch.
const DEADLINE: Duration = Duration::from_secs(10);

/// The deadline of a connection: shorter, so that the error names the server.
const CONNECT: Duration = Duration::from_secs(8);

/// The longest error response that is read, in bytes.
const LARGEST_ERROR: usize = 64 << 10;

/// A client configuration, and its origin: errors name both.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The configuration of the client.
    pub config: Config,
    origin: Origin,
}

impl Deref for Connection {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

/// A configuration without a kubeconfig.
impl From<Config> for Connection {
    fn from(config: Config) -> Self {
        let origin = Origin {
            url: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            ..Origin::default()
        };
        Self { config, origin }
    }
}

/// The server of a client, in the words of the command line.
#[derive(Clone, Debug, Default)]
struct Origin {
    url: String,
    /// The context and its file.
    context: Option<(String, String)>,
    /// The flags for another context and another file.
    flags: Flags,
}

/// The flags for a context and a file.
#[derive(Clone, Copy, Debug)]
struct Flags {
    context: &'static str,
    file: &'static str,
}

/// The flags for the hub, which is the only server of most commands.
const HUB: Flags = Flags {
    context: "--context",
    file: "--kubeconfig",
};

/// The flags for a member.
const MEMBER: Flags = Flags {
    context: "--cluster-context",
    file: "--cluster-kubeconfig",
};

impl Default for Flags {
    fn default() -> Self {
        HUB
    }
}

impl Origin {
    /// `https://10.0.0.1:6443 (context "hub" of ~/.kube/config)`.
    fn named(&self) -> String {
        match &self.context {
            Some((context, file)) => format!("{} (context \"{context}\" of {file})", self.url),
            None => self.url.clone(),
        }
    }

    /// The remedy for a server that cannot be used.
    fn remedy(&self) -> String {
        match &self.context {
            Some(_) => {
                let Flags { context, file } = self.flags;
                format!("; {context} names another context, {file} another file")
            }
            None => String::new(),
        }
    }
}

/// The configuration of the hub from a kubeconfig. Without a file: `$KUBECONFIG` or `~/.kube/config`.
///
/// # Errors
/// The invalid file or context, and the existing contexts.
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Connection> {
    read(kubeconfig, context, HUB).await
}

/// The configuration of a member, which has other flags.
///
/// # Errors
/// As [`config`].
pub async fn member_config(kubeconfig: &Path, context: Option<&str>) -> Result<Connection> {
    read(Some(kubeconfig), context, MEMBER).await
}

async fn read(kubeconfig: Option<&Path>, context: Option<&str>, flags: Flags) -> Result<Connection> {
    let (file, read) = match kubeconfig {
        Some(file) => (file.display().to_string(), Kubeconfig::read_from(file)),
        None => (usual_file(), Kubeconfig::read()),
    };
    let read = read.map_err(|error| unreadable(&file, &error, kubeconfig.is_some(), flags))?;
    let known: Vec<&str> = read.contexts.iter().map(|each| each.name.as_str()).collect();
    let known = known.join(", ");
    let context = match context
        .map(str::to_owned)
        .or_else(|| read.current_context.clone())
    {
        Some(named) if read.contexts.iter().any(|each| each.name == named) => named,
        Some(named) if known.is_empty() => {
            bail!(
                "the kubeconfig {file} has no context \"{named}\", and no other; {} names another file",
                flags.file
            )
        }
        Some(named) => bail!(
            "the kubeconfig {file} has no context \"{named}\"; {} takes one of: {known}",
            flags.context
        ),
        None if known.is_empty() => {
            bail!(
                "the kubeconfig {file} has no contexts; {} names another file",
                flags.file
            )
        }
        None => bail!(
            "the kubeconfig {file} has no current context; {} takes one of: {known}",
            flags.context
        ),
    };
    let options = KubeConfigOptions {
        context: Some(context.clone()),
        ..KubeConfigOptions::default()
    };
    let unusable = |why: String| {
        anyhow!(
            "the context \"{context}\" of the kubeconfig {file} is not usable: {why}; correct it, or name another one with {}",
            flags.context
        )
    };
    let its = read.contexts.iter().find(|each| each.name == context);
    let user = its.and_then(|each| each.context.as_ref()?.user.clone());
    if let Some(user) =
        user.filter(|user| !user.is_empty() && !read.auth_infos.iter().any(|each| each.name == *user))
    {
        return Err(unusable(format!("user \"{user}\" not found in it")));
    }
    let mut config = Config::from_custom_kubeconfig(read, &options)
        .await
        .map_err(|error| unusable(flaw(&error)))?;
    config.connect_timeout = Some(CONNECT);
    let mut connection = Connection::from(config);
    connection.origin.context = Some((context, file));
    connection.origin.flags = flags;
    Ok(connection)
}

/// The file that kubectl would read.
fn usual_file() -> String {
    let named = std::env::var("KUBECONFIG").ok().filter(|value| !value.is_empty());
    named.unwrap_or_else(|| "~/.kube/config".to_owned())
}

/// The reason why a kubeconfig cannot be read. For invalid YAML without the parser's message, which could quote a token.
fn unreadable(file: &str, error: &KubeconfigError, given: bool, flags: Flags) -> anyhow::Error {
    let why = match error {
        KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
        KubeconfigError::Parse(_) => "it is not a kubeconfig".to_owned(),
        KubeconfigError::FindPath => "the home directory is unknown".to_owned(),
        other => other.to_string(),
    };
    let remedy = if given {
        String::new()
    } else {
        format!("; name one with {}", flags.file)
    };
    anyhow!("cannot read the kubeconfig {file}: {why}{remedy}")
}

/// The error in a context, without the parsers' messages, which could quote a key.
fn flaw(error: &KubeconfigError) -> String {
    let of_file = |what: &str, cause: &LoadDataError| match cause {
        LoadDataError::ReadFile(cause, path) => format!("cannot read {what} {}: {cause}", path.display()),
        LoadDataError::DecodeBase64(_) => format!("{what} is not base64"),
        LoadDataError::NoBase64DataOrFile => format!("{what} is missing"),
    };
    match error {
        KubeconfigError::LoadClusterOfContext(name) => format!("cluster \"{name}\" not found in it"),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(cause) => format!("its server is not a URL ({cause})"),
        KubeconfigError::ParseProxyUrl(cause) => format!("its proxy-url is not a URL ({cause})"),
        KubeconfigError::LoadCertificateAuthority(cause) => of_file("its certificate-authority", cause),
        KubeconfigError::LoadClientCertificate(cause) => of_file("its client-certificate", cause),
        KubeconfigError::LoadClientKey(cause) => of_file("its client-key", cause),
        KubeconfigError::ParseCertificates(_) => "its certificate-authority is not PEM".to_owned(),
        other => other.to_string(),
    }
}

/// A client without retries of its own: a command reports at once the error and the server.
///
/// # Errors
/// The configuration's credentials or proxy cannot be used.
pub fn client(connection: impl Into<Connection>) -> Result<Client> {
    let Connection { config, origin } = connection.into();
    let namespace = config.default_namespace.clone();
    let inner = entourage_controllers::plain_clients()("", config)
        .map_err(explain)
        .context("cannot make a client from the kubeconfig")?;
    let origin = Arc::new(origin);
    let service = service_fn(move |request: Request<Body>| {
        let (client, origin) = (inner.clone(), origin.clone());
        async move {
            match client.send(request).await {
                Ok(answer) => Ok(naming(answer, &origin).await),
                Err(error) => Err(unreachable(error, &origin)),
            }
        }
    });
    Ok(Client::new(service, namespace))
}

/// Adds the server and the context to the error if there was no connection.
fn unreachable(error: kube::Error, origin: &Origin) -> kube::Error {
    match error {
        kube::Error::Service(cause) => kube::Error::Service(Box::new(Unreachable {
            server: origin.named(),
            cause: innermost(&*cause),
            remedy: origin.remedy(),
        })),
        other => other,
    }
}

/// A server that cannot be reached.
#[derive(Debug)]
struct Unreachable {
    server: String,
    cause: String,
    remedy: String,
}

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot connect to {}: {}{}",
            self.server, self.cause, self.remedy
        )
    }
}

impl std::error::Error for Unreachable {}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Adds the server and the context to a response that refuses the caller; any other is not changed.
async fn naming(answer: Response<Body>, origin: &Origin) -> Response<Body> {
    let code = answer.status();
    if code != StatusCode::UNAUTHORIZED && code != StatusCode::FORBIDDEN {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let text = match Limited::new(body, LARGEST_ERROR).collect().await {
        Ok(text) => text.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let explained = serde_json::from_slice::<Value>(&text)
        .ok()
        .and_then(|mut status| {
            let message = status["message"].as_str()?;
            let (server, remedy) = (origin.named(), origin.remedy());
            let message = if code == StatusCode::UNAUTHORIZED {
                format!("the credentials are not accepted by {server}{remedy}")
            } else if message.contains("User \"") {
                // RBAC's own message; others that forbid, such as admission, do so for any caller.
                format!("{message} on {server}{remedy}")
            } else {
                return None;
            };
            status["message"] = json!(message);
            serde_json::to_vec(&status).ok()
        });
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(explained.map_or(text, Bytes::from)))
}

/// A call without a response.
#[derive(Debug)]
struct NoAnswer;

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no response within {} s", DEADLINE.as_secs())
    }
}

impl std::error::Error for NoAnswer {}

/// One call to a server, which fails if there is no response within ten seconds. Not for watches.
///
/// # Errors
/// The call's own; or that there was no response.
pub async fn within<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(Box::new(NoAnswer))),
    }
}

/// The id of a cluster, which distinguishes it from every other: the uid of its kube-system namespace.
///
/// # Errors
/// The cluster does not respond, or refuses; `which` names it in the message.
pub async fn cluster_id(client: &Client, which: &str) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = within(namespaces.get("kube-system"))
        .await
        .map_err(explain)
        .with_context(|| format!("cannot read the namespace kube-system of {which}"))?;
    namespace
        .metadata
        .uid
        .with_context(|| format!("the namespace kube-system of {which} has no uid"))
}

/// A short form of a server's error: the server's message, or the innermost cause of a failed connection. The output of an exec
/// plugin is left out: it may be a token.
#[must_use]
pub fn explain(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            anyhow!("{} ({})", status.reason, status.code)
        }
        kube::Error::Api(status) => anyhow!("{}", status.message),
        kube::Error::Auth(_) => {
            anyhow!("the kubeconfig's credentials cannot be obtained (token file or exec plugin)")
        }
        kube::Error::Service(error) if error.is::<NoAnswer>() || error.is::<Unreachable>() => {
            anyhow!("{error}")
        }
        kube::Error::Service(error) => anyhow!("cannot connect: {}", innermost(&*error)),
        kube::Error::RustlsTls(error) => anyhow!("its certificates cannot be used: {}", innermost(&error)),
        kube::Error::HyperError(error) => {
            let cause = error
                .source()
                .map_or_else(String::new, |source| format!(": {source}"));
            anyhow!("the connection broke: {error}{cause}")
        }
        other => other.into(),
    }
}

/// True if a server responded with 404.
#[must_use]
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named() {
        let error = config(Some(Path::new("/nonexistent/kubeconfig")), None)
            .await
            .unwrap_err();
        assert!(
            format!("{error:#}").contains("/nonexistent/kubeconfig"),
            "{error:#}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_never_answers_ends() {
        let error = within::<()>(std::future::pending()).await.unwrap_err();
        assert_eq!(explain(error).to_string(), "no response within 10 s");
    }

    #[test]
    fn what_an_exec_plugin_printed_is_not_shown() {
        let error = kube::Error::Auth(kube::client::AuthError::AuthExec("canary".into()));
        let error = format!("{:#}", explain(error));
        assert!(
            error.contains("credentials") && !error.contains("canary"),
            "{error}"
        );
    }

    fn kubeconfig(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    const TWO: &str = r#"{"apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "hub", "context": {"cluster": "c", "user": "u"}},
            {"name": "broken", "context": {"cluster": "none", "user": "u"}}]}"#;

    fn broken(what: &str, by: &str) -> String {
        let text = TWO.replacen(what, by, 1);
        assert_ne!(text, TWO);
        text
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_said_with_the_file_and_the_flag() {
        let cases: &[(&str, Option<&str>, &[&str])] = &[
            (
                TWO,
                Some("nope"),
                &["no context \"nope\"", "--context takes one of: hub, broken"],
            ),
            (
                TWO,
                None,
                &["no current context", "--context takes one of: hub, broken"],
            ),
            (TWO, Some("broken"), &["context \"broken\"", "none"]),
            ("{}", None, &["has no contexts", "--kubeconfig"]),
            ("{}", Some("nope"), &["no context \"nope\"", "--kubeconfig"]),
            ("token: [canary", None, &["is not a kubeconfig"]),
            (
                &broken(r#""name": "u""#, r#""name": "other""#),
                Some("hub"),
                &["user \"u\" not found in it", "--context"],
            ),
            (
                &broken("http://127.0.0.1:1", "no url"),
                Some("hub"),
                &["its server is not a URL", "--context"],
            ),
            (
                &broken(
                    r#""server""#,
                    r#""certificate-authority": "/nope/canon", "server""#,
                ),
                Some("hub"),
                &["cannot read its certificate-authority /nope/canon: No such file"],
            ),
            (
                &broken(r#""server""#, r#""certificate-authority-data": "!", "server""#),
                Some("hub"),
                &["its certificate-authority is not base64"],
            ),
        ];
        for (text, context, needed) in cases {
            let file = kubeconfig(text);
            let error = format!("{:#}", config(Some(file.path()), *context).await.unwrap_err());
            for each in *needed {
                assert!(error.contains(each), "{each}: {error}");
            }
            assert!(error.contains(&file.path().display().to_string()), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
        let file = kubeconfig(TWO);
        let error = format!(
            "{:#}",
            member_config(file.path(), Some("nope")).await.unwrap_err()
        );
        assert!(error.contains("--cluster-context takes one of"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_with_context_url_flag_and_cause() {
        crate::install_tls_provider();
        let file = kubeconfig(TWO);
        let connection = config(Some(file.path()), Some("hub")).await.unwrap();
        let client = client(connection).unwrap();
        let error = format!("{:#}", cluster_id(&client, "the hub").await.unwrap_err());
        for needed in [
            "kube-system of the hub",
            "http://127.0.0.1:1",
            "context \"hub\"",
            "refused",
            "--context",
            "--kubeconfig",
        ] {
            assert!(error.contains(needed), "{needed}: {error}");
        }
    }

    #[tokio::test]
    async fn who_is_refused_is_told_by_which_server_and_as_which_context() {
        let origin = Origin {
            url: "https://hub:6443".into(),
            context: Some(("hub".into(), "file".into())),
            flags: HUB,
        };
        let rbac = "namespaces \"kube-system\" is forbidden: User \"jane\" cannot get resource";
        let cases = [
            (
                403,
                rbac,
                vec![rbac, "https://hub:6443", "context \"hub\" of file", "--context"],
            ),
            (
                401,
                "Unauthorized",
                vec!["credentials", "https://hub:6443", "--context"],
            ),
        ];
        let answer = |code: u16, message: &str| {
            let body = json!({"kind": "Status", "code": code, "message": message}).to_string();
            Response::builder()
                .status(code)
                .body(Body::from(body.into_bytes()))
                .unwrap()
        };
        let message_of = async |code, message| {
            let named = naming(answer(code, message), &origin).await;
            let bytes = named.into_body().collect().await.unwrap().to_bytes();
            let status: Value = serde_json::from_slice(&bytes).unwrap();
            status["message"].as_str().unwrap().to_owned()
        };
        for (code, message, needed) in cases {
            let message = message_of(code, message).await;
            for each in needed {
                assert!(message.contains(each), "{each}: {message}");
            }
        }
        // A denial by admission does not depend on the caller.
        let denied = "admission webhook \"x\" denied the request: no";
        assert_eq!(message_of(403, denied).await, denied);
    }
}
