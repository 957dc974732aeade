//! Metrics of members of which some have none.

use serde_json::json;

use super::*;
use crate::mock::scripted;

fn args(what: Measured, clusters: &[&str]) -> TopArgs {
    TopArgs {
        what,
        hub: HubArgs::default(),
        members: MemberArgs {
            cluster: clusters.iter().map(|each| (*each).to_owned()).collect(),
        },
        select: SelectArgs::default(),
        sort_by: None,
        output: OutputArgs::default(),
    }
}

/// m1 has metrics, m2 has no metrics server, that of m3 does not run, m4 is no member.
fn hub() -> Client {
    scripted(|asked| {
        let failure = |code: u16, message: &str| {
            (
                code,
                json!({"kind": "Status", "code": code, "message": message}).to_string(),
            )
        };
        let path = asked.strip_prefix("GET /apis/cluster.karmada.io/v1alpha1/clusters/");
        let (cluster, path) = path
            .and_then(|path| path.split_once("/proxy"))
            .unwrap_or_default();
        match (cluster, path.trim_end_matches('?')) {
            ("m1", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods") => {
                let usage = json!({"cpu": "5m", "memory": "7Mi"});
                let pod = json!({"metadata": {"namespace": "shop", "name": "web"}, "containers": [{"usage": usage}]});
                (200, json!({"items": [pod]}).to_string())
            }
            ("m2", _) => failure(404, "the server could not find the requested resource"),
            ("m3", _) => failure(503, "the server is currently unable to handle the request"),
            ("m4", _) => failure(404, "clusters.cluster.karmada.io \"m4\" not found"),
            _ => failure(404, asked),
        }
    })
}

#[tokio::test]
async fn a_member_without_metrics_is_told_with_the_remedy_and_the_others_are_shown() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = args(Measured::Pods, &["m1", "m2", "m3", "m4"]);
    let done = top(&args, &hub(), "shop", (&mut out, &mut err)).await;
    assert_eq!(done.unwrap_err().to_string(), "no metrics of 3/4 clusters");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "CLUSTER   NAME   CPU(cores)   MEMORY(bytes)\nm1        web    5m           7Mi\n"
    );
    assert_eq!(
        String::from_utf8(err).unwrap(),
        "note: m2: metrics.k8s.io is not served there: install metrics-server on that cluster\n\
         note: m3: cannot read metrics.k8s.io: the server is currently unable to handle the request\n\
         note: m4: cannot read metrics.k8s.io: clusters.cluster.karmada.io \"m4\" not found\n"
    );
}

#[tokio::test]
async fn nothing_to_show_is_no_error_while_all_have_metrics() {
    let hub = scripted(|_| (200, json!({"items": []}).to_string()));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = args(Measured::Nodes, &["m1"]);
    top(&args, &hub, "", (&mut out, &mut err)).await.unwrap();
    assert!(out.is_empty());
    assert_eq!(String::from_utf8(err).unwrap(), "no nodes found\n");
}

#[tokio::test]
async fn the_members_select_by_labels_and_the_rows_are_selected_by_their_fields() {
    let hub = scripted(|asked| {
        let pod = |name: &str| json!({"metadata": {"namespace": "shop", "name": name}, "containers": []});
        let items = match asked.ends_with("/pods?&labelSelector=app%3Dweb") {
            true => vec![pod("web-1"), pod("web-2")],
            false => vec![pod("db"), pod("web-1"), pod("web-2")],
        };
        (200, json!({ "items": items }).to_string())
    });
    let names = async |selector: Option<&str>, fields: Option<&str>| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut args = args(Measured::Pods, &["m1"]);
        args.select.rows.selector = selector.map(str::to_owned);
        args.select.rows.field_selector = fields.map(|fields| crate::args::field_selector(fields).unwrap());
        args.output.output = Some(crate::output::Output::Name);
        let done = top(&args, &hub, "shop", (&mut out, &mut err)).await;
        done.map(|()| String::from_utf8(out).unwrap())
            .map_err(|error| error.to_string())
    };
    for (selector, fields, wanted) in [
        (None, None, "m1/db\nm1/web-1\nm1/web-2\n"),
        (Some("app=web"), None, "m1/web-1\nm1/web-2\n"),
        (Some("app=web"), Some("name!=web-1"), "m1/web-2\n"),
        (None, Some("namespace=other"), ""),
    ] {
        assert_eq!(
            names(selector, fields).await.as_deref(),
            Ok(wanted),
            "{selector:?} {fields:?}"
        );
    }
    let error = names(None, Some("nmae=db")).await.unwrap_err();
    assert!(error.contains("did you mean \"name\"?"), "{error}");
}
