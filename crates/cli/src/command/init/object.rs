//! Server-side apply of one object in two steps: what it would change, and the change.
//!
//! The hub itself says both: a dry run that changes nothing means that nothing is sent, and a conflict of field managers means that
//! somebody else set a field to another value.

use anyhow::{Context as _, Result, bail};
use kube::{
    api::{DynamicObject, Patch, PatchParams},
    core::Status,
};
use serde_json::Value;

use crate::{
    apply::{CRD, FIELD_MANAGER, KINDS, Kind, NAMESPACE, Target},
    connect::{explain, within},
    crds::lost,
};

/// The maximum number of lost fields that a message names.
const NAMED: usize = 3;

/// Metadata that a server maintains: it differs between a dry run and the live object without a change.
const MAINTAINED: &[&str] = &["managedFields", "resourceVersion", "generation"];

/// The step that makes an object what it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The hub does not have it.
    Create,
    /// The hub has it as it has to be, or it is a namespace that somebody else made.
    Keep,
    /// It differs, and is managed by entourage or taken over.
    Change {
        /// True if other managers lose fields: on request, or because they are this project's own under another operation.
        force: bool,
    },
    /// It differs, and is somebody else's: the reason.
    Foreign(String),
    /// It is a definition with content that the one in this binary lacks: the reason.
    Newer(String),
}

/// The objects that may be replaced on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Objects and fields of others.
    pub take_over: bool,
    /// Definitions of a newer version.
    pub downgrade: bool,
}

/// An object, and its step.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The object.
    pub desired: Value,
    /// Its kind.
    pub kind: Kind,
    /// The step.
    pub step: Step,
}

impl Planned {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.desired["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.desired["metadata"]["namespace"].as_str().unwrap_or_default()
    }
}

/// The kind of an object, if this command knows it.
///
/// # Errors
/// It does not: a mistake in this binary.
pub fn kind_of(object: &Value) -> Result<Kind> {
    let mut known = KINDS.iter();
    let found = known.find(|kind| object["apiVersion"] == kind.api_version && object["kind"] == kind.kind);
    found
        .copied()
        .with_context(|| format!("{} {} is unknown", object["apiVersion"], object["kind"]))
}

/// Plans one object; nothing is written.
///
/// # Errors
/// The object that cannot be read, that is being deleted, or that the hub refuses.
pub async fn plan(hub: &Target<'_>, desired: Value, allowed: Allowed) -> Result<Planned> {
    let kind = kind_of(&desired)?;
    let mut planned = Planned {
        desired,
        kind,
        step: Step::Create,
    };
    let Some(live) = hub.get(kind, planned.namespace(), planned.name()).await? else {
        return Ok(planned);
    };
    if live.metadata.deletion_timestamp.is_some() {
        // It would take the rest with it: objects of a namespace, objects of a definition.
        bail!(
            "{}/{} of the {} is being deleted; nothing was written; try again when it is gone",
            kind.label(),
            planned.name(),
            hub.place
        );
    }
    if kind == CRD
        && !allowed.downgrade
        && let Some(why) = newer(&live, &planned.desired)
    {
        planned.step = Step::Newer(why);
        return Ok(planned);
    }
    if kind == NAMESPACE && !allowed.take_over && !is_managed(&live) {
        // It is shared with whoever made it: Karmada, a user, or controllers that needed a place for their Lease.
        planned.step = Step::Keep;
        return Ok(planned);
    }
    let preview = send(hub, &planned, &params(true, true)).await;
    let preview = preview.map_err(explain).with_context(|| refused(hub, &planned))?;
    planned.step = if is_same(&live, &preview) {
        Step::Keep
    } else if allowed.take_over {
        Step::Change { force: true }
    } else if !is_managed(&live) {
        Step::Foreign("exists and is not managed by entourage".to_owned())
    } else {
        match send(hub, &planned, &params(false, true)).await {
            Ok(_) => Step::Change { force: false },
            Err(kube::Error::Api(status)) if status.code == 409 => match foreign_managers(&status) {
                others if others.is_empty() => Step::Change { force: true },
                others => Step::Foreign(format!("has fields that {} set", others.join(", "))),
            },
            Err(error) => return Err(explain(error)).with_context(|| refused(hub, &planned)),
        }
    };
    Ok(planned)
}

/// Carries out one step, and reports it. Returns true if something was written, or would be in a dry run.
///
/// # Errors
/// The hub refuses the object.
pub async fn carry_out(hub: &mut Target<'_>, planned: &Planned) -> Result<bool> {
    let verb = match &planned.step {
        Step::Keep => "unchanged",
        Step::Create => "created",
        Step::Change { .. } => "configured",
        Step::Foreign(why) | Step::Newer(why) => bail!("{}/{} {why}", planned.kind.label(), planned.name()),
    };
    let writes = planned.step != Step::Keep;
    if writes && !hub.dry_run {
        // Without force an object or a field that somebody wrote meanwhile is a conflict.
        let force = planned.step == Step::Change { force: true };
        let written = send(hub, planned, &params(force, false)).await;
        written.map_err(explain).with_context(|| refused(hub, planned))?;
    }
    hub.say(planned.kind, planned.name(), verb)?;
    Ok(writes)
}

fn refused(hub: &Target<'_>, planned: &Planned) -> String {
    format!(
        "cannot apply {}/{} on the {}",
        planned.kind.label(),
        planned.name(),
        hub.place
    )
}

fn params(force: bool, dry_run: bool) -> PatchParams {
    PatchParams {
        force,
        dry_run,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

async fn send(hub: &Target<'_>, planned: &Planned, params: &PatchParams) -> kube::Result<DynamicObject> {
    let api = hub.api(planned.kind, planned.namespace());
    within(api.patch(planned.name(), params, &Patch::Apply(&planned.desired))).await
}

/// True if two states of an object differ in nothing but what a server maintains.
fn is_same(live: &DynamicObject, preview: &DynamicObject) -> bool {
    let content = |object: &DynamicObject| {
        let mut object = serde_json::to_value(object).unwrap_or_default();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| !MAINTAINED.contains(&key.as_str()));
        }
        object
    };
    content(live) == content(preview)
}

/// The content that a definition would lose, in words; `None` if it loses nothing.
fn newer(live: &DynamicObject, desired: &Value) -> Option<String> {
    let lost = lost(&live.data["spec"], &desired["spec"]);
    let named = lost.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>();
    let more = if lost.len() > NAMED { " and more" } else { "" };
    (!lost.is_empty()).then(|| format!("has what this version lacks: {}{more}", named.join(", ")))
}

/// True if this project's commands or manifests made an object, whoever applied them.
fn is_managed(live: &DynamicObject) -> bool {
    let labels = live.metadata.labels.iter().flatten();
    let mut managers = live.metadata.managed_fields.iter().flatten();
    labels
        .into_iter()
        .any(|(key, value)| key == "app.kubernetes.io/part-of" && value == "entourage")
        || managers.any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER))
}

/// The other field managers that a conflict names, sorted. Our own name is one of them where a command replaced the object before.
fn foreign_managers(conflict: &Status) -> Vec<String> {
    let causes = conflict.details.iter().flat_map(|details| &details.causes);
    let named = causes.filter_map(|cause| cause.message.split('"').nth(1));
    let mut others: Vec<String> = named
        .filter(|manager| *manager != FIELD_MANAGER)
        .map(|manager| format!("{manager:?}"))
        .collect();
    others.sort();
    others.dedup();
    others
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_a_server_maintains_is_no_difference() {
        let of = |version: &str, rules: Value| {
            object(
                json!({"apiVersion": "v1", "kind": "X", "rules": rules, "status": {"seen": version},
                "metadata": {"name": "a", "resourceVersion": version, "generation": 1}}),
            )
        };
        assert!(is_same(&of("1", json!([])), &of("2", json!([]))));
        assert!(!is_same(&of("1", json!([])), &of("1", json!(["x"]))));
    }

    #[test]
    fn a_definition_that_would_lose_fields_is_newer() {
        let with = |fields: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a"},
                "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": fields}}}]}})
        };
        let ours = with(json!({"a": {}}));
        assert_eq!(newer(&object(ours.clone()), &ours), None);
        assert_eq!(newer(&object(with(json!({}))), &ours), None);
        let live = object(with(json!({"a": {}, "b": {}, "c": {}, "d": {}, "e": {}})));
        let why = newer(&live, &ours);
        assert_eq!(
            why.as_deref(),
            Some("has what this version lacks: v1.b, v1.c, v1.d and more")
        );
    }

    #[test]
    fn ours_is_what_has_our_label_or_our_manager() {
        for (metadata, ours) in [
            (json!({"name": "a"}), false),
            (
                json!({"name": "a", "labels": {"app.kubernetes.io/part-of": "karmada"}}),
                false,
            ),
            (
                json!({"name": "a", "labels": {"app.kubernetes.io/part-of": "entourage"}}),
                true,
            ),
            (
                json!({"name": "a", "managedFields": [{"manager": "kubectl"}]}),
                false,
            ),
            (
                json!({"name": "a", "managedFields": [{"manager": "kubectl"}, {"manager": "entourage"}]}),
                true,
            ),
        ] {
            let live = object(json!({"apiVersion": "v1", "kind": "X", "metadata": metadata}));
            assert_eq!(is_managed(&live), ours, "{metadata}");
        }
    }

    #[test]
    fn a_conflict_names_other_managers() {
        let conflict = |managers: &[&str]| -> Status {
            let causes = managers.iter().map(|manager| {
                json!({"reason": "FieldManagerConflict", "field": ".rules",
                    "message": format!("conflict with \"{manager}\" using rbac.authorization.k8s.io/v1")})
            });
            let causes: Vec<_> = causes.collect();
            serde_json::from_value(json!({"code": 409, "details": {"causes": causes}})).unwrap()
        };
        assert!(foreign_managers(&conflict(&["entourage"])).is_empty());
        assert_eq!(
            foreign_managers(&conflict(&["kubectl", "entourage", "helm", "kubectl"])),
            ["\"helm\"", "\"kubectl\""]
        );
    }
}
