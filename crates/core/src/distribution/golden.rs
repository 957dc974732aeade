//! The golden cases in `testdata/distribution`: one file per case, `want` last. `UPDATE_GOLDEN=1` rewrites `want`.
//!
//! A case is a resource, and a live object if there is one; it expects the errors of the resource, or the copy, as changes of
//! the live object or of the resource, and the first difference that makes it be written. With `release: true` it expects the
//! changes that release the live object.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    render::{
        DistributionRenderSpec, Mark, Standing, difference, must_be_recreated, release, render, standing,
    },
    template::read,
};
use crate::golden;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The id of the hub, for a copy on a member.
    #[serde(default)]
    hub: Option<String>,
    #[serde(default)]
    resource: Value,
    #[serde(default)]
    live: Option<Value>,
    #[serde(default)]
    release: bool,
    /// Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

#[test]
fn every_case_comes_out_as_its_file_says() {
    golden::run("distribution", 40, |case: &Case| golden::wanted(&outcome(case)));
}

fn outcome(case: &Case) -> Value {
    let render_spec = DistributionRenderSpec {
        distribution: "dist".into(),
        uid: "uid-of-dist".into(),
        namespace: "ns-1".into(),
        mark: case.hub.as_deref().map_or(Mark::Owner, |hub| Mark::Member {
            hub: hub.into(),
            cluster: "m1".into(),
        }),
        take_over: false,
    };
    if case.release {
        let live = case.live.as_ref().unwrap();
        let released = release(&render_spec, live);
        return json!({"released": released.map(|released| golden::changes(live, &released))});
    }
    if let Err(problems) = read(&case.resource) {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            !problems.iter().any(|text| text.contains("canary")),
            "{problems:?}"
        );
        return json!({"problems": problems});
    }
    let copy = render(&render_spec, &case.resource, case.live.as_ref());
    let mut outcome = Map::new();
    if let Some(live) = &case.live {
        let standing = match standing(&render_spec, live) {
            Standing::Ours => "ours".to_owned(),
            Standing::Free => "free".to_owned(),
            Standing::Held(holder) => format!("held by {holder}"),
        };
        outcome.insert("standing".to_owned(), json!(standing));
        outcome.insert("difference".to_owned(), json!(difference(&copy, live)));
        outcome.insert("recreated".to_owned(), json!(must_be_recreated(&copy, live)));
    }
    let before = case.live.as_ref().unwrap_or(&case.resource);
    outcome.insert("copy".to_owned(), golden::changes(before, copy.object()));
    Value::Object(outcome)
}
