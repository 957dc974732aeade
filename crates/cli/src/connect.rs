//! From a kubeconfig to a client; and what a server's error means to the person at the keyboard.

use std::{error::Error as _, path::Path, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// How long a command waits for a connection, and for an answer that is not a watch.
const DEADLINE: Duration = Duration::from_secs(10);

/// The configuration that a kubeconfig describes. Without a file: `$KUBECONFIG` or `~/.kube/config`.
///
/// # Errors
/// Says which file or context is wrong.
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config> {
    let options = KubeConfigOptions {
        context: context.map(Into::into),
        ..KubeConfigOptions::default()
    };
    let config = match kubeconfig {
        Some(file) => {
            let read = Kubeconfig::read_from(file)
                .with_context(|| format!("cannot read the kubeconfig {}", file.display()))?;
            let config = Config::from_custom_kubeconfig(read, &options).await;
            config.with_context(|| format!("the kubeconfig {} is not usable", file.display()))
        }
        None => Config::from_kubeconfig(&options)
            .await
            .context("no usable kubeconfig in $KUBECONFIG or ~/.kube/config; name one with --kubeconfig"),
    };
    let mut config = config?;
    config.connect_timeout = Some(DEADLINE);
    Ok(config)
}

/// A client without retries of its own: a command says at once what is wrong.
///
/// # Errors
/// When the configuration's credentials or proxy cannot be used.
pub fn client(config: Config) -> Result<Client> {
    entourage_controllers::plain_clients()("", config)
        .map_err(explain)
        .context("cannot make a client from the kubeconfig")
}

/// A call that does not answer.
#[derive(Debug)]
struct NoAnswer;

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no answer within {} s", DEADLINE.as_secs())
    }
}

impl std::error::Error for NoAnswer {}

/// One call to a server, which fails when there is no answer within ten seconds. Not for watches.
///
/// # Errors
/// The call's own; or that there was no answer.
pub async fn within<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(Box::new(NoAnswer))),
    }
}

/// The id of a cluster, which is what tells it from every other: the uid of its kube-system namespace.
///
/// # Errors
/// When the cluster does not answer, or refuses; `which` names it in the message.
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

/// An error of a server in as few words as say it: the server's message, or the innermost cause of a connection that
/// failed. What an exec plugin printed is left out: it may be a token.
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
        kube::Error::Service(error) if error.is::<NoAnswer>() => anyhow!("{error}"),
        kube::Error::Service(error) => {
            let mut innermost: &dyn std::error::Error = &*error;
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            anyhow!("cannot connect: {innermost}")
        }
        kube::Error::HyperError(error) => {
            let cause = error
                .source()
                .map_or_else(String::new, |source| format!(": {source}"));
            anyhow!("the connection broke: {error}{cause}")
        }
        other => other.into(),
    }
}

/// Whether a server answered 404.
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
        assert_eq!(explain(error).to_string(), "no answer within 10 s");
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

    #[tokio::test]
    async fn a_server_that_is_not_there_is_explained_by_the_innermost_cause() {
        crate::install_tls_provider();
        let client = client(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let error = format!("{:#}", cluster_id(&client, "the hub").await.unwrap_err());
        assert!(
            error.contains("kube-system of the hub") && error.contains("refused"),
            "{error}"
        );
    }
}
