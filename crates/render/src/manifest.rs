//! Rendering of an object from the manifest of a Work, as the agent of a cluster in Pull mode applies it; pure.
//!
//! The hub has rendered the manifest: overrides, replicas and most ownership metadata are in it. What is added here is what only
//! the member's side knows: what the kind retains of the live object, the labels and annotations of other writers, and the
//! ownership metadata that a Work made by hand lacks. A manifest that has all of it is applied as it is, so that an agent that
//! takes over from Karmada's writes nothing.

use entourage_api::keys::{self, annotation, label};
use serde_json::Value;

use entourage_interpreter::{self as interpreter, Interpretation};
use entourage_model::object::{Meta, NamespacedName, ResourceId, Str, StrMap, WHOLE_OBJECTS};

use crate::copy::{self, Refusal, Rendered, Standing, Step};

/// The Work that an object is applied for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkOwner {
    /// The namespace and name of the Work.
    pub work: NamespacedName,
    /// The cluster.
    pub cluster: Str,
}

impl WorkOwner {
    /// True if the metadata of an object on the member names exactly this Work, and the hub of the manifest ([`hub_of`]), if that has
    /// one: a Karmada has a Work of the same name. Proof of ownership, without which nothing is deleted.
    #[must_use]
    pub fn owns(&self, live: &Meta, hub: &str) -> bool {
        live.label(label::MANAGED) == Some(keys::TRUE)
            && live.label(label::HUB).unwrap_or_default() == hub
            && live.annotation(annotation::WORK_NAMESPACE) == Some(&*self.work.namespace)
            && live.annotation(annotation::WORK_NAME) == Some(&*self.work.name)
    }

    /// True if the metadata of an object names another Work, maybe of another cluster.
    fn is_other_than(&self, live: &Meta) -> bool {
        let differs = |key: &str, own: &str| live.annotation(key).is_some_and(|held| held != own);
        differs(annotation::WORK_NAMESPACE, &self.work.namespace)
            || differs(annotation::WORK_NAME, &self.work.name)
    }
}

/// True if the manifest takes over an object that already exists on the member.
#[must_use]
pub fn overwrites(manifest: &Value) -> bool {
    manifest["metadata"]["annotations"][annotation::CONFLICT_RESOLUTION] == keys::CONFLICT_OVERWRITE
}

/// The hub that a manifest names; empty for none.
#[must_use]
pub fn hub_of(manifest: &Value) -> &str {
    manifest["metadata"]["labels"][label::HUB]
        .as_str()
        .unwrap_or_default()
}

/// Returns the owner of an object on the member. `applied`: the uid of the object as this process last applied it.
#[must_use]
pub fn standing(owner: &WorkOwner, manifest: &Value, live: &Value, applied: Option<&str>) -> Standing {
    let meta = Meta::of(live);
    let hub = hub_of(manifest);
    // Its metadata may have been removed since; what names another owner by now has been taken over.
    let is_applied =
        applied == Some(&*meta.uid) && !copy::is_of_another_hub(&meta, hub) && !owner.is_other_than(&meta);
    if owner.owns(&meta, hub) || is_applied {
        Standing::Ours
    } else if overwrites(manifest) {
        Standing::Adoptable
    } else {
        Standing::Foreign
    }
}

/// Renders the object of a manifest, as far as possible without calling a webhook. With `live` as [`copy::step`].
///
/// # Errors
/// [`Refusal`] if the manifest must not be applied, or its kind's interpreter fails.
///
/// Cost: O(size of the object).
pub fn step(
    owner: &WorkOwner,
    interpretation: &Interpretation,
    id: &ResourceId,
    manifest: &Value,
    live: Option<&Value>,
) -> Result<Step, Refusal> {
    if interpreter::not_propagatable(manifest) {
        return Err(Refusal::Token);
    }
    let (mut labels, mut annotations) = marks(owner, manifest);
    let mut object = manifest.clone();
    interpreter::common_prune(&mut object);
    if let Some(native) = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind) {
        native.prune(&mut object);
    }
    if let Some(live) = live {
        object = match copy::retained(interpretation, &id.gvk, object, live)? {
            Step::Done(retained) => retained.into_object(),
            ask @ Step::Ask(_) => return Ok(ask),
        };
        for (wanted, field, managed) in [
            (&mut labels, "labels", annotation::MANAGED_LABELS),
            (&mut annotations, "annotations", annotation::MANAGED_ANNOTATIONS),
        ] {
            copy::keep_foreign(wanted, &live["metadata"][field], live, managed, &[]);
        }
        annotations.remove(annotation::RELEASED_FROM);
    }
    object["metadata"] = copy::metadata_of(id, &labels, &annotations, live);
    Ok(Step::Done(Rendered(object)))
}

/// As [`step`], without webhooks.
///
/// # Errors
/// As those of [`step`], and [`Refusal::NoResponse`] for a webhook that was not called.
pub fn render(
    owner: &WorkOwner,
    interpretation: &Interpretation,
    id: &ResourceId,
    manifest: &Value,
    live: Option<&Value>,
) -> Result<Rendered, Refusal> {
    match step(owner, interpretation, id, manifest, live)? {
        Step::Done(rendered) => Ok(rendered),
        Step::Ask(inquiry) => {
            let operation = inquiry.question().operation();
            Err(interpretation.not_called(operation).into())
        }
    }
}

/// The live object without ownership metadata; `None` if it is not that of this Work. `hub`: the hub of its manifest.
#[must_use]
pub fn release(owner: &WorkOwner, hub: &str, live: &Value) -> Option<Value> {
    if !owner.owns(&Meta::of(live), hub) {
        return None;
    }
    copy::without_marks(live)
}

/// The labels and annotations of the manifest, and the ownership metadata that it lacks.
fn marks(owner: &WorkOwner, manifest: &Value) -> (StrMap, StrMap) {
    let Meta {
        mut labels,
        mut annotations,
        ..
    } = Meta::of(manifest);
    // The record of a namespace that is deleted with that of the hub: an agent deletes none.
    annotations.retain(|key, _| !WHOLE_OBJECTS.contains(&&**key) && &**key != annotation::CREATED_BY);
    let is_recorded =
        |map: &StrMap, key: &str, value: &str| map.get(key).is_some_and(|held| **held == *value);
    let (namespace, name) = (&owner.work.namespace, &owner.work.name);
    let is_complete = is_recorded(&labels, label::MANAGED, keys::TRUE)
        && is_recorded(&annotations, annotation::WORK_NAMESPACE, namespace)
        && is_recorded(&annotations, annotation::WORK_NAME, name)
        && annotations.contains_key(annotation::MANAGED_LABELS)
        && annotations.contains_key(annotation::MANAGED_ANNOTATIONS);
    if !is_complete {
        labels.insert(label::MANAGED.into(), keys::TRUE.into());
        annotations.insert(annotation::WORK_NAMESPACE.into(), namespace.clone());
        annotations.insert(annotation::WORK_NAME.into(), name.clone());
        annotations.insert(annotation::MANAGED_LABELS.into(), "".into());
        annotations.insert(annotation::MANAGED_ANNOTATIONS.into(), "".into());
        let keys = |map: &StrMap| map.keys().map(|key| &**key).collect::<Vec<_>>().join(",");
        let (of_labels, of_annotations) = (keys(&labels), keys(&annotations));
        annotations.insert(annotation::MANAGED_LABELS.into(), of_labels.into());
        annotations.insert(annotation::MANAGED_ANNOTATIONS.into(), of_annotations.into());
    }
    (labels, annotations)
}

#[cfg(test)]
mod tests {
    use entourage_model::object::Gvk;
    use serde_json::json;

    use super::*;
    use crate::copy::difference;

    fn owner() -> WorkOwner {
        WorkOwner {
            work: NamespacedName::new("karmada-es-m1", "a-work"),
            cluster: "m1".into(),
        }
    }

    fn manifest(annotations: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns",
            "labels": {"app": "x"}, "annotations": annotations}, "data": {"k": "v"}})
    }

    fn rendered(manifest: &Value, live: Option<&Value>) -> Rendered {
        let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "a");
        match step(&owner(), &Interpretation::default(), &id, manifest, live) {
            Ok(Step::Done(rendered)) => rendered,
            _ => panic!("it is rendered"),
        }
    }

    #[test]
    fn a_manifest_made_by_hand_gets_the_ownership_metadata() {
        let made = rendered(&manifest(&json!({})), None);
        let meta = Meta::of(made.object());
        assert!(owner().owns(&meta, ""));
        assert_eq!(
            meta.annotation(annotation::MANAGED_LABELS),
            Some("app,karmada.io/managed")
        );
        assert_eq!(made.object()["data"], json!({"k": "v"}));
    }

    #[test]
    fn a_complete_manifest_is_applied_as_it_is() {
        let mut complete = manifest(&json!({
            annotation::WORK_NAMESPACE: "karmada-es-m1", annotation::WORK_NAME: "a-work",
            annotation::MANAGED_LABELS: "app", annotation::MANAGED_ANNOTATIONS: "none",
        }));
        complete["metadata"]["labels"][label::MANAGED] = json!("true");
        let made = rendered(&complete, None);
        assert_eq!(made.object()["metadata"], complete["metadata"]);
    }

    #[test]
    fn what_others_set_stays_and_what_the_manifest_no_longer_has_goes() {
        let mut live = rendered(&manifest(&json!({"old": "1"})), None).object().clone();
        live["metadata"]["annotations"]["others"] = json!("2");
        live["metadata"]["uid"] = json!("u");
        live["metadata"]["resourceVersion"] = json!("7");
        let made = rendered(&manifest(&json!({})), Some(&live));
        let annotations = &made.object()["metadata"]["annotations"];
        assert_eq!(
            (&annotations["others"], &annotations["old"]),
            (&json!("2"), &Value::Null)
        );
        assert_eq!(made.object()["metadata"]["resourceVersion"], "7");
        assert_eq!(difference(&made, &live).as_deref(), Some("metadata.annotations"));
    }

    #[test]
    fn whose_an_object_is() {
        let mut ours = rendered(&manifest(&json!({})), None).object().clone();
        ours["metadata"]["uid"] = json!("u");
        let plain = json!({"metadata": {"name": "a", "uid": "u"}});
        let mut other_work = ours.clone();
        other_work["metadata"]["annotations"][annotation::WORK_NAME] = json!("b-work");
        let mut other_cluster = ours.clone();
        other_cluster["metadata"]["annotations"][annotation::WORK_NAMESPACE] = json!("karmada-es-m2");
        let mut other_hub = ours.clone();
        other_hub["metadata"]["labels"][label::HUB] = json!("h");
        let overwrite = json!({ annotation::CONFLICT_RESOLUTION: keys::CONFLICT_OVERWRITE });
        use Standing::{Foreign, Ours};
        for (sentence, live, applied, expected, at_removal) in [
            ("it names this Work", &ours, None, Ours, "released"),
            ("nothing is known of it", &plain, None, Foreign, "kept"),
            ("its metadata was removed since", &plain, Some("u"), Ours, "kept"),
            ("another has the name now", &plain, Some("v"), Foreign, "kept"),
            ("it names another Work", &other_work, None, Foreign, "kept"),
            ("another Work has it now", &other_work, Some("u"), Foreign, "kept"),
            ("another cluster's", &other_cluster, Some("u"), Foreign, "kept"),
            ("it was copied here", &other_cluster, None, Foreign, "kept"),
            ("another hub has it", &other_hub, Some("u"), Foreign, "kept"),
        ] {
            let abort = standing(&owner(), &manifest(&json!({})), live, applied);
            assert_eq!(abort, expected, "{sentence}");
            let taken = standing(&owner(), &manifest(&overwrite), live, applied);
            assert_ne!(taken, Foreign, "{sentence}");
            let released = release(&owner(), "", live).is_some();
            let removal = if released { "released" } else { "kept" };
            assert_eq!(removal, at_removal, "{sentence}");
        }
        // For the hub that its manifest names it is ours.
        assert!(release(&owner(), "h", &other_hub).is_some());
    }

    #[test]
    fn a_copy_of_a_karmada_is_no_hubs() {
        let copy = rendered(&manifest(&json!({})), None).object().clone();
        let mut of_hub = manifest(&json!({}));
        of_hub["metadata"]["labels"][label::HUB] = json!("h");
        assert_eq!(standing(&owner(), &of_hub, &copy, None), Standing::Foreign);
        assert!(release(&owner(), "h", &copy).is_none());
        let mut adopted = copy;
        adopted["metadata"]["labels"][label::HUB] = json!("h");
        assert_eq!(standing(&owner(), &of_hub, &adopted, None), Standing::Ours);
    }

    #[test]
    fn a_namespace_has_no_record_of_its_creator() {
        let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
        let metadata = json!({"name": "shop", "annotations": {annotation::CREATED_BY: "hub/m1"}});
        let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        let Ok(Step::Done(made)) = step(&owner(), &Interpretation::default(), &id, &manifest, None) else {
            panic!("it is rendered");
        };
        let record = &made.object()["metadata"]["annotations"][annotation::CREATED_BY];
        assert_eq!(*record, Value::Null);
    }
}
