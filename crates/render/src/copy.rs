//! Rendering of a copy from its template, pure. The rendered object has no `Debug` and is wiped when dropped.

use std::collections::BTreeSet;

use entourage_api::keys::{self, annotation, label};
use serde_json::{Map, Value, json};

use entourage_interpreter::{
    self as interpreter, Interpretation,
    operations::Operation,
    question::{Inquiry, InterpretError, Question},
    template_meta,
};
pub use entourage_model::rendered::{Rendered, wipe};
use entourage_model::{
    marks::{RELEASED_ANNOTATIONS, RELEASED_LABELS},
    member_namespace as namespaces,
    object::{Gvk, Meta, ResourceId, StrMap},
    rendered::REPORT,
};

use crate::{
    overrides::{self, BadOverride},
    ownership::{
        self, Claim,
        metadata::{self, with_preserved},
    },
    render_spec::RenderSpec,
};

/// The reason why a template is not rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Service-account tokens are credentials of the hub: they are either useless or a risk on a member.
    #[error(
        "it is a service-account token Secret, which is never propagated; create a token on the member instead"
    )]
    Token,
    /// A rule of an override policy cannot be applied.
    #[error(transparent)]
    Override(#[from] BadOverride),
    /// The template is being deleted.
    #[error("the template is being deleted")]
    Deleting,
    /// The interpreter of the kind has no response.
    #[error(transparent)]
    NoResponse(#[from] InterpretError),
}

/// The owner of an object on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is managed by this hub, see [`ownership`], or it is the very object that was recorded here and carries no other hub's
    /// id: another writer changed or removed its ownership metadata.
    Ours,
    /// It is not managed, and the policy has Overwrite, or this hub released it from this binding because it holds data.
    Adoptable,
    /// It is not managed, and the policy has Abort.
    Foreign,
}

/// Returns the owner of an object in a target cluster of a copy (architecture 2.3; conflictResolution: karmada reference 1.5).
#[must_use]
pub fn standing(render_spec: &RenderSpec, cluster: &str, live: &Value) -> Standing {
    let live = Meta::of(live);
    let is_recorded = render_spec
        .written_uid
        .as_ref()
        .is_some_and(|uid| *uid == live.uid);
    let claim = Claim::of(&live, &render_spec.hub, cluster, &render_spec.binding);
    // A copy is delivered only if the stored binding accounts for the cluster.
    if claim.is_managed(is_recorded, true) || (is_recorded && !is_of_another_hub(&live, &render_spec.hub)) {
        Standing::Ours
    } else if render_spec.overwrite
        || (!is_of_another_hub(&live, &render_spec.hub)
            && ownership::was_released_from(&live, &render_spec.hub, cluster, &render_spec.binding))
    {
        Standing::Adoptable
    } else {
        Standing::Foreign
    }
}

/// The result of one step of rendering.
pub enum Step {
    /// The copy is ready.
    Done(Rendered),
    /// A webhook must be called; with its response [added](entourage_interpreter::layers::HookResponses::and) rendering begins
    /// anew.
    Ask(Inquiry),
}

/// As [`step`], for interpretations without webhooks, or with all responses of webhooks.
///
/// # Errors
/// As those of [`step`], and [`Refusal::NoResponse`] for a webhook that was not called.
pub fn render(
    render_spec: &RenderSpec,
    id: &ResourceId,
    cluster: &str,
    template: &Value,
    live: Option<&Value>,
) -> Result<Rendered, Refusal> {
    match step(render_spec, id, cluster, template, live)? {
        Step::Done(rendered) => Ok(rendered),
        Step::Ask(inquiry) => {
            let operation = inquiry.question().operation();
            Err(render_spec.interpretation.not_called(operation).into())
        }
    }
}

/// Renders the copy of `template` for `cluster`, as far as possible without calling a webhook.
///
/// With `live`, the object on the member, the kind's retain rule is applied, labels and annotations of other writers are kept,
/// and the result carries the live object's resourceVersion, uid, finalizers and ownerReferences, ready for a PUT.
///
/// # Errors
/// [`Refusal`] if the template must not be propagated, or an override cannot be applied to it.
///
/// Cost: O(size of the object), again for each response of a webhook.
pub fn step(
    render_spec: &RenderSpec,
    id: &ResourceId,
    cluster: &str,
    template: &Value,
    live: Option<&Value>,
) -> Result<Step, Refusal> {
    if interpreter::not_propagatable(template) {
        return Err(Refusal::Token);
    }
    if !template["metadata"]["deletionTimestamp"].is_null() {
        return Err(Refusal::Deleting);
    }
    let marks = metadata::of(&template_meta(&id.gvk, template), render_spec, id, cluster);
    let native = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind);
    let interpretation = &render_spec.interpretation;
    let mut copy = template.clone();
    copy["apiVersion"] = json!(id.gvk.api_version());
    copy["kind"] = json!(&*id.gvk.kind);
    if render_spec.keeps_replicas && copy["metadata"]["labels"][label::RETAIN_REPLICAS].is_null() {
        copy["metadata"]["labels"][label::RETAIN_REPLICAS] = json!(keys::TRUE);
    }
    interpreter::common_prune(&mut copy);
    if is_to_ask(interpretation, Operation::Prune) {
        return Ok(Step::Ask(Inquiry::Prune(copy)));
    }
    let pruned = interpretation.object(Question::Prune(&copy));
    comes_next(interpretation, Operation::Prune, native.is_some())?;
    let is_pruned = pruned.is_some();
    if let Some(pruned) = pruned {
        copy = pruned?;
    }
    if let Some(native) = native {
        if !is_pruned {
            native.prune(&mut copy);
        }
        if let Some(count) = render_spec
            .replicas
            .filter(|_| !interpretation.has(Operation::Revise))
        {
            native.revise_replicas(&mut copy, i64::from(count));
        }
        if let Some(count) = render_spec.completions {
            interpreter::native::revise_completions(&mut copy, count);
        }
    }
    if let Some(count) = render_spec.replicas.map(i64::from) {
        if is_to_ask(interpretation, Operation::Revise) {
            return Ok(Step::Ask(Inquiry::Revise(copy, count)));
        }
        if let Some(revised) = interpretation.object(Question::Revise(&copy, count)) {
            copy = revised?;
        }
        comes_next(
            interpretation,
            Operation::Revise,
            native.is_some_and(|native| native.replicas(&copy).is_some()),
        )?;
    }
    if !render_spec.overrides.is_empty() {
        // Rules see the labels and annotations that are propagated.
        let meta = template_meta(&id.gvk, template);
        copy["metadata"] = json!({"name": &*id.name, "labels": with_preserved(&meta, render_spec), "annotations": meta.annotations});
        if !id.namespace.is_empty() {
            copy["metadata"]["namespace"] = json!(&*id.namespace);
        }
        overrides::apply(&render_spec.overrides, id, cluster, &mut copy)?;
    }
    let (mut labels, mut annotations) = (marks.labels, marks.annotations);
    if live.is_none() && id.gvk.is_namespace() {
        let creator = namespaces::creator(&render_spec.hub, cluster);
        annotations.insert(annotation::CREATED_BY.into(), creator.into());
    }
    if let Some(live) = live {
        // An override policy may give it fewer than its share.
        let desired = native.and_then(|native| native.replicas(&copy));
        let least = render_spec.at_least.map(i64::from);
        let least = least.map(|least| desired.map_or(least, |desired| least.min(desired)));
        copy = match retained(interpretation, &id.gvk, copy, live)? {
            Step::Done(retained) => retained.into_object(),
            ask @ Step::Ask(_) => return Ok(ask),
        };
        if let (Some(native), Some(least)) = (native, least)
            && native.replicas(&copy).is_some_and(|retained| retained < least)
        {
            native.revise_replicas(&mut copy, least);
        }
        // Metadata that this hub set on a namespace before a policy claimed it is ours like the metadata that it sets now.
        let (listed_labels, listed_annotations) = if id.gvk.is_namespace() {
            namespaces::listed(live, &render_spec.hub)
        } else {
            Default::default()
        };
        for (wanted, field, managed, listed) in [
            (&mut labels, "labels", annotation::MANAGED_LABELS, listed_labels),
            (
                &mut annotations,
                "annotations",
                annotation::MANAGED_ANNOTATIONS,
                listed_annotations,
            ),
        ] {
            keep_foreign(wanted, &live["metadata"][field], live, managed, &listed);
        }
        annotations.remove(annotation::RELEASED_FROM);
    }
    copy["metadata"] = metadata_of(id, &labels, &annotations, live);
    Ok(Step::Done(Rendered(copy)))
}

/// The object with what its kind retains of the live one.
pub(crate) fn retained(
    interpretation: &Interpretation,
    gvk: &Gvk,
    mut copy: Value,
    live: &Value,
) -> Result<Step, Refusal> {
    if is_to_ask(interpretation, Operation::Retain) {
        let (desired, live) = (copy, live.clone());
        return Ok(Step::Ask(Inquiry::Retain { desired, live }));
    }
    let native = interpreter::native(&gvk.group, &gvk.version, &gvk.kind);
    let retained = interpretation.object(Question::Retain { desired: &copy, live });
    if let Some(retained) = retained {
        copy = retained?;
    } else if let Some(native) = native {
        native.retain(&mut copy, live);
    }
    comes_next(interpretation, Operation::Retain, native.is_some())?;
    Ok(Step::Done(Rendered(copy)))
}

/// The metadata of an object to be sent, with what is kept of the live one.
pub(crate) fn metadata_of(
    id: &ResourceId,
    labels: &StrMap,
    annotations: &StrMap,
    live: Option<&Value>,
) -> Value {
    let mut meta = Map::new();
    meta.insert("name".into(), json!(&*id.name));
    if !id.namespace.is_empty() {
        meta.insert("namespace".into(), json!(&*id.namespace));
    }
    meta.insert("labels".into(), json!(labels));
    meta.insert("annotations".into(), json!(annotations));
    for field in ["resourceVersion", "uid", "finalizers", "ownerReferences"] {
        if let Some(value) = live.and_then(|live| live["metadata"].get(field)) {
            meta.insert(field.into(), value.clone());
        }
    }
    Value::Object(meta)
}

/// Succeeds if another interpreter follows a webhook that is skipped by its failurePolicy: otherwise the copy would be rendered
/// incompletely for as long as nothing changes.
fn comes_next(
    interpretation: &Interpretation,
    operation: Operation,
    is_known: bool,
) -> Result<(), InterpretError> {
    match interpretation.ignored(operation) {
        Some(unanswered) if !is_known => Err(unanswered),
        _ => Ok(()),
    }
}

/// True if a webhook has this operation, and was not called yet.
pub(crate) fn is_to_ask(interpretation: &Interpretation, operation: Operation) -> bool {
    interpretation.asks(operation) && !interpretation.was_called(operation)
}

/// The first relevant difference between the rendered copy and the live object: a path without values, and without keys of a
/// ConfigMap's or Secret's data. `None` if there is none.
#[must_use]
pub fn difference(rendered: &Rendered, live: &Value) -> Option<String> {
    let same_strings = |field: &str| {
        let of = |object: &Value| object["metadata"][field].as_object().cloned().unwrap_or_default();
        of(&rendered.0) == of(live)
    };
    for field in ["labels", "annotations"] {
        if !same_strings(field) {
            return Some(format!("metadata.{field}"));
        }
    }
    if live.get(REPORT).is_none() {
        return interpreter::difference(&rendered.0, live);
    }
    // What the agent of a member reports is read beside the object, and is no part of it.
    let mut live = live.clone();
    if let Some(all) = live.as_object_mut() {
        all.remove(REPORT);
    }
    let difference = interpreter::difference(&rendered.0, &live);
    wipe(&mut live);
    difference
}

/// The live object without our ownership metadata, ready for a PUT: the release of a copy (architecture 2.14). A claim that
/// holds data keeps a trace of its binding, by which it is managed again. `None` if it carries no ownership metadata, or that
/// of another hub than `hub` or of another cluster than the one it is in.
#[must_use]
pub fn release(live: &Value, hub: &str, cluster: &str) -> Option<Value> {
    let meta = Meta::of(live);
    if is_of_another_hub(&meta, hub) || !ownership::names_cluster(&meta, cluster) {
        return None;
    }
    let mut released = without_marks(live);
    if let Some(object) = &mut released
        && holds_data(live)
        && let Some(binding) = metadata::owner(&Meta::of(live))
    {
        object["metadata"]["annotations"][annotation::RELEASED_FROM] =
            json!(ownership::trace(hub, cluster, &binding));
    }
    released
}

/// The live object without any ownership metadata, ready for a PUT; `None` if it carries none.
pub(crate) fn without_marks(live: &Value) -> Option<Value> {
    let mut object = live.clone();
    let ours = |key: &str| RELEASED_LABELS.contains(&key) || RELEASED_ANNOTATIONS.contains(&key);
    let mut changed = false;
    for field in ["labels", "annotations"] {
        if let Some(map) = object["metadata"].get_mut(field).and_then(Value::as_object_mut) {
            let before = map.len();
            map.retain(|key, _| !ours(key));
            changed |= map.len() != before;
        }
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    changed.then_some(object)
}

/// As [`release`], but a namespace keeps the record of its creator.
#[must_use]
pub fn hand_over(live: &Value, hub: &str, cluster: &str) -> Option<Value> {
    let mut object = release(live, hub, cluster)?;
    let creator = &live["metadata"]["annotations"][annotation::CREATED_BY];
    if creator.is_string() {
        object["metadata"]["annotations"][annotation::CREATED_BY] = creator.clone();
    }
    Some(object)
}

fn holds_data(live: &Value) -> bool {
    let text = |field: &str| live[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    interpreter::native(group, version, kind).is_some_and(|native| native.holds_data(live))
}

/// True if an object on a member carries the id of another hub: that hub manages it now, whatever hub created it.
pub(crate) fn is_of_another_hub(live: &Meta, hub: &str) -> bool {
    live.label(label::HUB).is_some_and(|other| other != hub)
}

/// Adds the entries of the live object that were never set by us.
pub(crate) fn keep_foreign(
    wanted: &mut StrMap,
    standing: &Value,
    live: &Value,
    managed: &str,
    listed: &[String],
) {
    let set_by_us: BTreeSet<&str> = live["metadata"]["annotations"][managed]
        .as_str()
        .into_iter()
        .flat_map(|keys| keys.split(','))
        .chain(listed.iter().map(String::as_str))
        .collect();
    for (key, value) in standing.as_object().into_iter().flatten() {
        if let Some(value) = value.as_str()
            && !set_by_us.contains(key.as_str())
            && !wanted.contains_key(key.as_str())
        {
            wanted.insert(key.as_str().into(), value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entourage_model::object::NamespacedName;

    /// An object with the recorded uid, and this hub's id on it.
    fn live(hub: Option<&str>) -> Value {
        let mut live = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "copy", "labels": {},
            "annotations": {"work.karmada.io/namespace": "karmada-es-east"}}});
        if let Some(hub) = hub {
            live["metadata"]["labels"][label::HUB] = json!(hub);
        }
        live
    }

    #[test]
    fn what_another_hub_took_over_is_not_ours_although_we_wrote_it() {
        let mut render_spec = RenderSpec {
            hub: "a".into(),
            binding: NamespacedName::new("ns", "a-configmap"),
            permanent_id: "p".into(),
            replicas: None,
            at_least: None,
            raise: None,
            keeps_replicas: false,
            completions: None,
            interpretation: Default::default(),
            overrides: Default::default(),
            preserved: Default::default(),
            overwrite: false,
            written_uid: Some("copy".into()),
        };
        for (hub, expected) in [
            (Some("a"), Standing::Ours),
            (None, Standing::Ours),
            (Some("b"), Standing::Foreign),
        ] {
            assert_eq!(standing(&render_spec, "east", &live(hub)), expected, "{hub:?}");
        }
        render_spec.overwrite = true;
        assert_eq!(
            standing(&render_spec, "east", &live(Some("b"))),
            Standing::Adoptable
        );
    }

    #[test]
    fn a_released_copy_has_no_record_of_a_karmada() {
        let mut adopted = live(Some("a"));
        adopted["metadata"]["annotations"][annotation::ADOPTED_FROM] = json!("k/w/b");
        let released = release(&adopted, "a", "east").unwrap_or_default();
        assert_eq!(released["metadata"]["annotations"], json!({}));
    }

    #[test]
    fn the_marks_of_another_hub_stay() {
        assert!(release(&live(Some("a")), "a", "east").is_some());
        assert_eq!(release(&live(Some("b")), "a", "east"), None);
        assert_eq!(
            release(&live(Some("a")), "a", "west"),
            None,
            "it was copied from east"
        );
    }

    #[test]
    fn an_object_that_was_copied_from_another_cluster_is_not_managed() {
        let mut render_spec = RenderSpec {
            hub: "a".into(),
            binding: NamespacedName::new("ns", "a-configmap"),
            permanent_id: "p".into(),
            replicas: None,
            at_least: None,
            raise: None,
            keeps_replicas: false,
            completions: None,
            interpretation: Default::default(),
            overrides: Default::default(),
            preserved: Default::default(),
            overwrite: false,
            written_uid: None,
        };
        let mut copied = live(Some("a"));
        copied["metadata"]["annotations"][annotation::RESOURCE_BINDING_NAMESPACE] = json!("ns");
        copied["metadata"]["annotations"][annotation::RESOURCE_BINDING_NAME] = json!("a-configmap");
        assert_eq!(standing(&render_spec, "east", &copied), Standing::Ours);
        assert_eq!(standing(&render_spec, "west", &copied), Standing::Foreign);
        render_spec.overwrite = true;
        assert_eq!(standing(&render_spec, "west", &copied), Standing::Adoptable);
    }

    #[test]
    fn a_copy_has_the_label_that_its_template_is_about_to_get_back() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
        for (held, keeps, want, replicas) in [
            (None, false, None, 2),
            (None, true, Some("true"), 7),
            (Some("true"), false, Some("true"), 7),
            (Some("false"), true, Some("false"), 2),
        ] {
            let render_spec = RenderSpec {
                hub: "a".into(),
                binding: NamespacedName::new("ns", "a-deployment"),
                permanent_id: "p".into(),
                replicas: Some(2),
                at_least: None,
                raise: None,
                keeps_replicas: keeps,
                completions: None,
                interpretation: Default::default(),
                overrides: Default::default(),
                preserved: Default::default(),
                overwrite: false,
                written_uid: None,
            };
            let object = |meta: Value, replicas: i32| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}});
            let mut meta = json!({"name": "a", "namespace": "ns", "uid": "t"});
            if let Some(held) = held {
                meta["labels"] = json!({label::RETAIN_REPLICAS: held});
            }
            let template = object(meta, 2);
            let copy = object(json!({"name": "a", "namespace": "ns", "uid": "copy"}), 7);
            let rendered = render(&render_spec, &id, "east", &template, Some(&copy)).unwrap();
            let rendered = rendered.into_object();
            let found = rendered["metadata"]["labels"][label::RETAIN_REPLICAS].as_str();
            assert_eq!(found, want, "{held:?} {keeps}");
            assert_eq!(rendered["spec"]["replicas"], replicas, "{held:?} {keeps}");
        }
    }

    #[test]
    fn a_share_is_a_minimum_of_what_the_member_keeps() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
        for (live, at_least, want) in [(3, None, 3), (3, Some(8), 8), (9, Some(8), 9), (0, Some(1), 1)] {
            let render_spec = RenderSpec {
                hub: "a".into(),
                binding: NamespacedName::new("ns", "a-deployment"),
                permanent_id: "p".into(),
                replicas: Some(8),
                at_least,
                raise: None,
                keeps_replicas: false,
                completions: None,
                interpretation: Default::default(),
                overrides: Default::default(),
                preserved: Default::default(),
                overwrite: false,
                written_uid: None,
            };
            let object = |meta: Value, replicas: i32| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}});
            let labels = json!({label::RETAIN_REPLICAS: "true"});
            let template = object(
                json!({"name": "a", "namespace": "ns", "uid": "t", "labels": labels}),
                11,
            );
            let copy = object(json!({"name": "a", "namespace": "ns", "uid": "copy"}), live);
            let rendered = render(&render_spec, &id, "east", &template, Some(&copy)).unwrap();
            assert_eq!(
                rendered.into_object()["spec"]["replicas"],
                want,
                "{live} {at_least:?}"
            );
        }
    }
}
