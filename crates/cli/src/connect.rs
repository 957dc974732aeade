//! Creates clients from kubeconfigs, and explains errors of servers to the user.

use std::{ops::Deref, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Config, client::Body};
use tower::service_fn;

mod caller;
mod errors;
mod kubeconfig;
mod through;

pub use caller::{CallerArgs, set_caller};
pub(crate) use errors::missing_right;
use errors::{NoAnswer, naming, unreachable};
pub use errors::{explain, is_not_found};
pub use kubeconfig::{
    bootstrap_config, config, hub_config, karmada_config, listed_member_config, member_config,
};
pub use through::through;

/// The deadline of a request that is not a watch.
const DEADLINE: Duration = Duration::from_secs(10);

/// The deadline of a call that a member may respond to late: longer than the 70 s of the hub, whose response then names the cause.
const LATE: Duration = Duration::from_secs(80);

/// The deadline of a connection: shorter, so that the error names the server.
const CONNECT: Duration = Duration::from_secs(8);

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

impl Connection {
    /// A connection to a member with the credentials that the hub has for it.
    #[must_use]
    pub fn of_hub(config: Config, member: &str) -> Self {
        let mut connection = Self::from(config);
        connection.origin.member = Some(member.to_owned());
        connection
    }

    /// The context of its kubeconfig.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.origin.context.as_ref().map(|(context, _)| context.as_str())
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
    /// The member, if the credentials are those that the hub has for it.
    member: Option<String>,
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

/// The flags for the hub of an agent.
const AGENT_HUB: Flags = Flags {
    context: "--hub-context",
    file: "--hub-kubeconfig",
};

/// The flags for a hub that a cluster is registered with.
const BOOTSTRAP: Flags = Flags {
    context: "its current-context",
    file: "--bootstrap-kubeconfig",
};

/// The flags for a member.
const MEMBER: Flags = Flags {
    context: "--cluster-context",
    file: "--cluster-kubeconfig",
};

/// The flags for the API server of a Karmada.
const KARMADA: Flags = Flags {
    context: "--karmada-context",
    file: "--from-karmada",
};

/// The flags for one of several members.
const LISTED_MEMBER: Flags = Flags {
    context: "its current-context",
    file: "--member NAME=FILE",
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

    /// The remedy for a caller that is refused.
    fn remedy_of_rights(&self) -> String {
        match &self.member {
            Some(name) => format!(
                "; `entourage join {name} --cluster-kubeconfig FILE` renews the hub's account there and its rights, --allow \
                 GROUP/RESOURCE adds a kind"
            ),
            None => self.remedy(),
        }
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
        let member = through::member_of(request.uri().path()).map(str::to_owned);
        async move {
            match client.send(request).await {
                Ok(answer) => Ok(naming(answer, &origin, member.as_deref()).await),
                Err(error) => Err(unreachable(error, &origin)),
            }
        }
    });
    Ok(Client::new(service, namespace))
}

/// One call to a server, which fails if there is no response within ten seconds. Not for watches.
///
/// # Errors
/// The call's own; or that there was no response.
pub async fn within<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    limited(DEADLINE, call).await
}

/// One call to a member through the hub that may take long to respond: a command that begins, a log whose first line is searched for.
///
/// # Errors
/// The call's own; or that there was no response.
pub async fn within_late<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    limited(LATE, call).await
}

async fn limited<T>(limit: Duration, call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let limit = caller::timeout().unwrap_or(limit);
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(Box::new(NoAnswer(limit)))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_never_answers_ends() {
        let error = within::<()>(std::future::pending()).await.unwrap_err();
        assert_eq!(explain(error).to_string(), "no response within 10 s");
        let error = within_late::<()>(std::future::pending()).await.unwrap_err();
        assert_eq!(explain(error).to_string(), "no response within 80 s");
    }

    pub(super) fn kubeconfig(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    pub(super) const TWO: &str = r#"{"apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "hub", "context": {"cluster": "c", "user": "u"}},
            {"name": "broken", "context": {"cluster": "none", "user": "u"}}]}"#;

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
}
