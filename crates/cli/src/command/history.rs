//! `entourage history`: what is known of the changes of an object, in order of time.

use std::{io::Write, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_core::inspection::history::{Entry, timeline};
use kube::Client;
use serde_json::json;

use super::{
    answer::{self, Output},
    describe::Subject,
    pods::{self, binding_of},
    resource,
};
use crate::{
    args::HubArgs,
    connect::{self, explain, is_not_found, within},
    lists::api,
    plain::plain,
};

/// Flags of `entourage history`.
#[derive(Args, Clone, Debug)]
pub struct HistoryArgs {
    /// Kind, as for kubectl, and name of the object: deploy/web, cluster/member1
    #[arg(value_name = "KIND/NAME")]
    pub target: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// The known history of an object.
#[derive(Debug, Default)]
pub struct History {
    /// True if the hub has the object; its events may outlive it.
    pub exists: bool,
    /// The changes, oldest first.
    pub entries: Vec<Entry>,
    /// Records that cannot be read, with the cause.
    pub remarks: Vec<String>,
}

/// Runs the command; the history goes to `out`. The exit code is 0 if the hub has the object, 1 if it does not, 2 after an error.
///
/// # Errors
/// The output was closed.
pub async fn run(
    args: HistoryArgs,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let done = match seen(&args).await {
        Ok(history) => answered(&args, &history, out, err),
        Err(error) => Err(error),
    };
    answer::ended(done, err)
}

/// Prints the history; true if the hub has the object.
///
/// # Errors
/// The output cannot be written.
pub fn answered(
    args: &HistoryArgs,
    history: &History,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool> {
    let text = shown(args, history)?;
    answer::print(&text, (args.output, &history.remarks), out, err)?;
    Ok(history.exists)
}

async fn seen(args: &HistoryArgs) -> Result<History> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
    of_hub(args, &connect::client(config)?, &namespace).await
}

/// Reads the history of an object of a hub.
///
/// # Errors
/// The hub cannot be read, or serves no such kind.
pub async fn of_hub(args: &HistoryArgs, hub: &Client, namespace: &str) -> Result<History> {
    let (Some(kind), name) = pods::named(&args.target)? else {
        bail!(
            "{:?} names no kind: give KIND/NAME, such as deploy/web",
            args.target
        );
    };
    let (gvk, served) = resource::find(hub, kind, "the hub").await?;
    let namespace = if served.namespaced { namespace } else { "" };
    let exists = match within(api(hub, &served, namespace).get_metadata(name)).await {
        Ok(_) => true,
        Err(error) if is_not_found(&error) => false,
        Err(error) => {
            return Err(explain(error))
                .with_context(|| format!("cannot read {} {name} of the hub", gvk.kind));
        }
    };
    let subject = Subject {
        server: hub.clone(),
        place: "the hub",
        is_hub: true,
        gvk,
        served,
        namespace,
        name,
    };
    let object = if exists {
        subject.read().await?
    } else {
        json!({"apiVersion": subject.gvk.api_version(), "kind": &*subject.gvk.kind,
            "metadata": {"namespace": namespace, "name": name}})
    };
    let mut remarks = Vec::new();
    let binding = match binding_of(hub, (&subject.gvk, &subject.served), namespace, name).await {
        Ok(binding) => binding,
        Err(error) => {
            remarks.push(format!("its binding cannot be read: {error:#}"));
            None
        }
    };
    let mut events = Vec::new();
    for each in [Some(&object), binding.as_ref()].into_iter().flatten() {
        match subject.events(each).await {
            Ok(more) => events.extend(more),
            Err(why) => remarks.push(format!("events cannot be read: {why}")),
        }
    }
    remarks.dedup();
    Ok(History {
        exists,
        entries: timeline(&object, binding.as_ref(), &events),
        remarks,
    })
}

/// The output.
///
/// # Errors
/// It cannot be written.
pub fn shown(args: &HistoryArgs, history: &History) -> Result<String> {
    if args.output != Output::Text {
        let value = json!({"exists": history.exists, "entries": history.entries});
        return answer::data_of(args.output, &value, &history.remarks);
    }
    if history.entries.is_empty() {
        return Ok(format!("Nothing is known of {}.\n", plain(&args.target)));
    }
    let rows = history.entries.iter().map(|entry| {
        [
            entry.time.clone(),
            entry.source.word().to_owned(),
            entry.object.clone(),
            entry.what.clone(),
            entry.message.clone(),
        ]
    });
    let columns = ["TIME", "SOURCE", "OBJECT", "CHANGE", "MESSAGE"];
    Ok(answer::table(columns, rows.collect()))
}

#[cfg(test)]
mod tests {
    use entourage_core::inspection::history::Source;
    use serde_json::Value;

    use super::*;
    use crate::mock::scripted;

    /// A hub with a Secret, and with events about it and about one that is gone.
    fn server() -> Client {
        let event = |name: &str, reason: &str| {
            json!({"metadata": {"name": reason, "namespace": "shop"}, "reason": reason,
                "involvedObject": {"kind": "Secret", "name": name}, "lastTimestamp": "2026-01-01T00:01:00Z"})
        };
        let events = json!({"apiVersion": "v1", "kind": "EventList", "metadata": {},
            "items": [event("login", "Stored"), event("gone", "Removed")]});
        let kinds = json!({"groupVersion": "v1", "resources": [
            {"name": "secrets", "singularName": "", "kind": "Secret", "namespaced": true, "verbs": ["get"]}]});
        let login = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop",
            "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {"k": "Y2FuYXJ5"}});
        scripted(
            move |request| match request.split(['?', ' ']).nth(1).unwrap_or_default() {
                "/api/v1" => (200, kinds.to_string()),
                "/api/v1/namespaces/shop/secrets/login" => (200, login.to_string()),
                "/api/v1/namespaces/shop/events" => (200, events.to_string()),
                _ => (
                    404,
                    json!({"kind": "Status", "code": 404, "message": "not found"}).to_string(),
                ),
            },
        )
    }

    #[tokio::test]
    async fn a_secret_has_a_history_without_its_payload_and_events_outlive_an_object() {
        for (target, exists, wanted) in [
            ("secret/login", true, &["created", "Stored"][..]),
            ("secret/gone", false, &["Removed"][..]),
        ] {
            let args = HistoryArgs {
                target: target.to_owned(),
                ..args(Output::Json)
            };
            let history = of_hub(&args, &server(), "shop").await.unwrap();
            assert_eq!(history.exists, exists, "{target}");
            let changes: Vec<&str> = history.entries.iter().map(|entry| entry.what.as_str()).collect();
            assert_eq!(changes, wanted, "{target}");
            assert!(!shown(&args, &history).unwrap().contains("Y2FuYXJ5"));
            // This hub serves no bindings.
            assert_eq!(history.remarks.len(), 1, "{:?}", history.remarks);
        }
    }

    fn args(output: Output) -> HistoryArgs {
        HistoryArgs {
            target: "deploy/web".to_owned(),
            hub: HubArgs::default(),
            namespace: None,
            output,
        }
    }

    #[test]
    fn entries_are_lines_in_their_order_and_an_object_for_programs() {
        let entry = |time: &str, what: &str, message: &str| Entry {
            time: time.to_owned(),
            source: Source::Event,
            object: "Deployment web".to_owned(),
            what: what.to_owned(),
            message: message.to_owned(),
        };
        let history = History {
            exists: true,
            entries: vec![
                entry("2026-01-01T00:00:00Z", "Zeroth", "b\nc"),
                entry("2026-01-01T00:00:01Z", "First", ""),
            ],
            remarks: vec!["r".to_owned()],
        };
        let wanted = "TIME                   SOURCE   OBJECT           CHANGE   MESSAGE\n\
                      2026-01-01T00:00:00Z   event    Deployment web   Zeroth   b\\nc\n\
                      2026-01-01T00:00:01Z   event    Deployment web   First    -\n";
        assert_eq!(shown(&args(Output::Text), &history).unwrap(), wanted);
        let json: Value = serde_json::from_str(&shown(&args(Output::Json), &history).unwrap()).unwrap();
        let wanted = json!({"time": "2026-01-01T00:00:01Z", "source": "event", "object": "Deployment web", "what": "First",
            "message": ""});
        assert_eq!(json["entries"][1], wanted);
        assert_eq!(
            (&json["schema"], &json["exists"], &json["remarks"]),
            (&json!(1), &json!(true), &json!(["r"]))
        );
    }

    #[test]
    fn an_unknown_object_has_no_table() {
        let text = shown(&args(Output::Text), &History::default()).unwrap();
        assert_eq!(text, "Nothing is known of deploy/web.\n");
    }
}
