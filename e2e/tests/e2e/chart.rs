//! The chart on an API server: what it renders is stored as it is written, and a second installation changes nothing.
//!
//! `hack/chart.sh` keeps the rendered files up to date, and the rights in the chart the same as those in `config/`, which
//! `hub_rights` tests.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, kind, status_code},
    tests,
};
use serde_json::{Value, json};

tests![what_the_chart_renders_is_stored_as_it_is_written_and_a_second_time_changes_nothing];

/// A set of values, and what the chart renders of it.
const RENDERED: [(&str, &str); 4] = [
    ("host", include_str!("../../../charts/testdata/host.golden.yaml")),
    (
        "host-all",
        include_str!("../../../charts/testdata/host-all.golden.yaml"),
    ),
    (
        "member",
        include_str!("../../../charts/testdata/member.golden.yaml"),
    ),
    (
        "member-fixed",
        include_str!("../../../charts/testdata/member-fixed.golden.yaml"),
    ),
];

/// Kinds that an operator defines. The chart renders them on demand only.
const OF_OPERATORS: [&str; 2] = ["ServiceMonitor", "PrometheusRule"];

async fn what_the_chart_renders_is_stored_as_it_is_written_and_a_second_time_changes_nothing(
    scene: &mut Scene,
) -> Result<()> {
    for (case, text) in RENDERED {
        let mut stored = Vec::new();
        for object in documents(text)? {
            let (kind, name) = names(&object);
            if OF_OPERATORS.contains(&kind) || kind == "PodDisruptionBudget" && !scene.bed.has("policy_v1")? {
                continue;
            }
            let what = format!("{case}: {kind} {name}");
            let first = scene.apply(object.clone()).await.context(what.clone())?;
            for field in ["spec", "data", "rules"] {
                if let Some(lost) = lost(&object[field], &first[field]) {
                    anyhow::bail!("{what}: {field}{lost} is not stored");
                }
            }
            let second = patched(scene, &object).await.context(what.clone())?;
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            // A controller of the server may have written the status between the two.
            ensure!(
                version(&second) == version(&first) || second["status"] != first["status"],
                "{what} is written again"
            );
            stored.push((kind.to_owned(), name.to_owned()));
        }
        ensure!(stored.len() > 1, "{case}: {stored:?}");
        for (kind, name) in stored {
            match scene.delete(&kind, &name).await {
                Err(error) if status_code(&error) == 404 => {}
                result => result?,
            }
        }
    }
    Ok(())
}

/// Patches an object with itself, as Helm does.
async fn patched(scene: &Scene, object: &Value) -> Result<Value> {
    let (kind_name, name) = names(object);
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(scene.ns);
    let request = http::Request::patch(kind(kind_name).path(&scene.ns, Some(name)))
        .header(
            http::header::CONTENT_TYPE,
            "application/strategic-merge-patch+json",
        )
        .body(object.to_string().into_bytes())?;
    Ok(scene.hub.client.request(request).await?)
}

fn documents(text: &str) -> Result<Vec<Value>> {
    // As Helm reads it: `defaultMode: 0440` is octal.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents = text.split("---\n").filter(|text| !text.trim().is_empty());
    documents
        .map(|text| serde_saphyr::from_str_with_options(text, options.clone()).context("a rendered object"))
        .collect()
}

fn names(object: &Value) -> (&str, &str) {
    (
        object["kind"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default(),
    )
}

/// The path of the first value that was written and is not there, or is another.
fn lost(written: &Value, stored: &Value) -> Option<String> {
    match (written, stored) {
        (Value::Object(written), _) => written
            .iter()
            .find_map(|(key, value)| lost(value, &stored[key]).map(|rest| format!(".{key}{rest}"))),
        (Value::Array(written), Value::Array(stored)) if written.len() == stored.len() => written
            .iter()
            .zip(stored)
            .enumerate()
            .find_map(|(n, (value, stored))| lost(value, stored).map(|rest| format!("[{n}]{rest}"))),
        // Defaults of the server fill in what is written as nothing.
        (Value::Null, _) => None,
        _ => (written != stored).then(String::new),
    }
}
