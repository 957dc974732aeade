//! The configuration of a client from a kubeconfig.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError},
};

use super::{AGENT_HUB, BOOTSTRAP, CONNECT, Connection, Flags, HUB, KARMADA, LISTED_MEMBER, MEMBER, caller};

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

/// The configuration of one of several members: the current context of its file.
///
/// # Errors
/// As [`config`].
pub async fn listed_member_config(kubeconfig: &Path) -> Result<Connection> {
    read(Some(kubeconfig), None, LISTED_MEMBER).await
}

/// The configuration of the API server of a Karmada, which has other flags.
///
/// # Errors
/// As [`config`].
pub async fn karmada_config(kubeconfig: &Path, context: Option<&str>) -> Result<Connection> {
    read(Some(kubeconfig), context, KARMADA).await
}

/// The configuration of the hub of an agent, which has other flags.
///
/// # Errors
/// As [`config`].
pub async fn hub_config(kubeconfig: &Path, context: Option<&str>) -> Result<Connection> {
    read(Some(kubeconfig), context, AGENT_HUB).await
}

/// The configuration of a hub that a cluster is registered with: the current context of the file.
///
/// # Errors
/// As [`config`].
pub async fn bootstrap_config(kubeconfig: &Path) -> Result<Connection> {
    read(Some(kubeconfig), None, BOOTSTRAP).await
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
    if flags.file == HUB.file {
        caller::become_other(&mut config.auth_info);
    }
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

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{TWO, kubeconfig},
        *,
    };

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

    fn broken(what: &str, by: &str) -> String {
        let text = TWO.replacen(what, by, 1);
        assert_ne!(text, TWO);
        text
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_reported_with_the_file_and_the_flag() {
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
}
