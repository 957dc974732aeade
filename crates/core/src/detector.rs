//! The detector: the policy that claims a template, and the metadata and status of a policy itself.
//!
//! A claim is sticky: it is the label and annotations on the template, and it stays while its policy exists and selects the
//! template (karmada reference 1.1).

mod effect;

use entourage_api::{
    keys::{annotation, condition, event, reason},
    names,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

pub use crate::matching;
use crate::{
    cache::{Policy, ResourceState},
    condition as conditions,
    fleet::{
        Fleet, activation,
        claims::{best, claimed_by, is_claim_over, lacks_claim, missing_overrides, preemptor},
    },
    graph::selected_kinds,
    object::{Gvk, Meta, NamespacedName, ResourceId, Time},
    plan::{Change, Event, HubObject, Plan, Regarding, SyncRequirement, Verb},
    rights, scope, storage_protection,
};

const UNKNOWN: &str = "policies are not synced: the policy may still exist";

/// Plans the claim of a template. Cost: O(candidate policies).
#[must_use]
pub fn plan_template(fleet: &Fleet, id: &ResourceId, now: Time) -> Plan {
    let Some(resource) = fleet.resource(id) else {
        return Plan::nothing();
    };
    let Some(template) = &resource.template else {
        return Plan::nothing();
    };
    if !fleet.is_kind_listed(&id.gvk) {
        return Plan::wait_for(SyncRequirement::Kind(id.gvk.clone()), "the hub is not synced yet");
    }
    let meta = &template.meta;
    if meta.deleting.is_some() || meta.label(entourage_api::keys::label::CLAIMED_BY).is_some() {
        // It is not changed, except for the claim of a policy that is being deleted: else the policy could wait for it for ever.
        return match is_claim_over(fleet, scope::claim_of(meta)) {
            Some(true) => patch(id, meta, scope::claim_patch(meta, None), "its policy ends".into()),
            Some(false) => storage_protection::plan(id, meta, now).unwrap_or_default(),
            None => Plan::wait_for(SyncRequirement::Base, UNKNOWN),
        };
    }
    let holder = claimed_by(fleet, id, meta);
    let target = (id, resource, meta);
    if let Some((holder, policy)) = holder {
        return match preemptor(fleet, id, meta, (holder, policy)) {
            Some((name, policy)) => preempt(target, (name, policy), holder),
            None => Plan::nothing(),
        };
    }
    let carries_claim = scope::has_claim_metadata(meta);
    if carries_claim && !fleet.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, UNKNOWN);
    }
    match best(fleet, id, meta) {
        Some((name, policy)) => first_claim(target, (name, policy)),
        None if carries_claim => patch(
            id,
            meta,
            scope::claim_patch(meta, None),
            "its policy is gone or no longer selects it".into(),
        ),
        None => Plan::nothing(),
    }
}

/// The claim of a template that no policy holds. An event reports it, unless only parts of the same claim were missing.
fn first_claim(
    target: (&ResourceId, &ResourceState, &Meta),
    (name, policy): (&NamespacedName, &Policy),
) -> Plan {
    let (id, _, meta) = target;
    let mut plan = claim(target, (name, policy), format!("{name} selects it"));
    let kind = scope::policy(name);
    let had_it =
        meta.label(kind.id_label).is_some() && meta.label(kind.id_label) == policy.meta.label(kind.id_label);
    if !plan.changes.is_empty() && !had_it {
        let message = format!("Propagated by {} {name}.", kind.kind);
        plan.changes
            .push(on_template((id, meta), event::APPLY_POLICY_SUCCEED, message));
    }
    plan
}

fn on_template((id, meta): (&ResourceId, &Meta), reason: &'static str, message: String) -> Change {
    Change::Emit(Event {
        regarding: Regarding {
            api_version: id.gvk.api_version(),
            kind: id.gvk.kind.to_string(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: meta.uid.clone(),
        },
        warning: false,
        reason,
        message,
    })
}

fn preempt(
    target: (&ResourceId, &ResourceState, &Meta),
    (name, policy): (&NamespacedName, &Policy),
    holder: &NamespacedName,
) -> Plan {
    let (id, _, meta) = target;
    let (new, old) = (scope::policy(name).kind, scope::policy(holder).kind);
    let message = format!("{new} {name} took {id} over from {old} {holder}");
    let mut plan = claim(target, (name, policy), message.clone());
    plan.changes
        .push(on_template((id, meta), event::PREEMPT_POLICY_SUCCEED, message));
    plan
}

fn claim(
    (id, resource, meta): (&ResourceId, &ResourceState, &Meta),
    (name, policy): (&NamespacedName, &Policy),
    why: String,
) -> Plan {
    let Some(permanent_id) = policy.meta.label(scope::policy(name).id_label) else {
        return Plan::wait(format!("{name} has no permanent id yet"));
    };
    let mut claim = scope::claim_patch(meta, Some((name, permanent_id)));
    if let Some(content) = activation::waits(policy, id, resource, meta) {
        claim["annotations"][annotation::WAITS] = json!(content);
    }
    patch(id, meta, claim, why)
}

fn patch(id: &ResourceId, meta: &Meta, mut body: Map<String, Value>, why: String) -> Plan {
    body.insert("uid".into(), json!(&*meta.uid));
    body.insert("resourceVersion".into(), json!(&*meta.resource_version));
    let verb = Verb::Merge(json!({ "metadata": body }));
    Plan::one(
        Change::Hub {
            object: HubObject::Template(id.clone()),
            verb,
        },
        why,
    )
}

/// The time, in milliseconds, after a policy was first observed until it is reported to match nothing.
const FIRST_LOOK: i64 = 2_000;

/// Plans a policy's permanent id, finalizer and status, and the removal of them.
#[must_use]
pub fn plan_policy(fleet: &Fleet, name: &NamespacedName, now: Time) -> Plan {
    let Some(policy) = fleet.cache.policies.get(name) else {
        return Plan::nothing();
    };
    let meta = &policy.meta;
    let kind = scope::policy(name);
    let guarded = |mut metadata: Map<String, Value>, why: &str| {
        metadata.insert("uid".into(), json!(&*meta.uid));
        metadata.insert("resourceVersion".into(), json!(&*meta.resource_version));
        let verb = Verb::Merge(json!({ "metadata": metadata }));
        Plan::one(
            Change::Hub {
                object: HubObject::Policy(name.clone()),
                verb,
            },
            why,
        )
    };
    let mut metadata = Map::new();
    if meta.deleting.is_some() {
        if !meta.has_finalizer(kind.finalizer) {
            return Plan::nothing();
        }
        if let Some(proof) = selected(policy)
            .chain([SyncRequirement::Base])
            .find(|proof| !fleet.has(proof))
        {
            return Plan::wait_for(proof, "whether templates carry its claim is not known");
        }
        if fleet.graph.claimed.get(name).is_some_and(|ids| !ids.is_empty()) {
            return Plan::wait("templates still carry its claim");
        }
        let rest: Vec<&str> = meta
            .finalizers
            .iter()
            .map(|each| &**each)
            .filter(|each| *each != kind.finalizer)
            .collect();
        metadata.insert("finalizers".into(), json!(rest));
        return guarded(metadata, "no template carries its claim any more");
    }
    if meta.label(kind.id_label).is_none() {
        let permanent_id = names::permanent_id(&[&fleet.config.hub, &meta.uid, kind.kind]);
        metadata.insert("labels".into(), json!({kind.id_label: permanent_id}));
    }
    if !meta.has_finalizer(kind.finalizer) {
        let mut all: Vec<&str> = meta.finalizers.iter().map(|each| &**each).collect();
        all.push(kind.finalizer);
        metadata.insert("finalizers".into(), json!(all));
    }
    if metadata.is_empty() {
        report(fleet, name, policy, now)
    } else {
        guarded(metadata, "it is new")
    }
}

/// The sync requirements for the templates that a policy selects.
fn selected(policy: &Policy) -> impl Iterator<Item = SyncRequirement> {
    let selectors = policy.object.spec.resource_selectors.iter();
    selectors.map(|selector| SyncRequirement::Templates(Gvk::new(&selector.api_version, &selector.kind)))
}

/// The Matched condition: whether the policy propagates anything, and if not, the reason.
fn report(fleet: &Fleet, name: &NamespacedName, policy: &Policy, now: Time) -> Plan {
    let matched = fleet.graph.claimed.get(name).is_some_and(|ids| !ids.is_empty());
    let missing = missing_overrides(fleet, name, policy);
    let invalid = matching::check(&policy.object.spec, &name.namespace).err();
    let (good, reason, message) = match invalid {
        Some(why) => (
            false,
            reason::INVALID_SELECTOR,
            format!("{why}; the other selectors still apply"),
        ),
        None if let Some(why) = too_many(fleet, name, policy) => (false, reason::TOO_MANY_KINDS, why),
        None if let Some(why) = unlistable(fleet, policy) => (false, reason::INVALID_SELECTOR, why),
        None if let Some(why) = unclaimed(fleet, name) => (false, reason::CLAIM_REFUSED, why),
        None if !missing.is_empty() => (
            false,
            reason::DEPENDENT_OVERRIDE_MISSING,
            waits_for(name, &missing),
        ),
        None if matched => (
            true,
            reason::TEMPLATES_MATCHED,
            "Matched resources are propagated.".to_owned(),
        ),
        None => {
            if let Some(proof) = selected(policy).find(|proof| !fleet.has(proof)) {
                return Plan::wait_for(proof, "the selected kinds are not synced yet");
            }
            let until = policy.since.plus(FIRST_LOOK);
            if now < until {
                return Plan::wait_until(until, "its templates may be on their way");
            }
            (false, reason::NO_TEMPLATE, nothing_selected(fleet, name, policy))
        }
    };
    let mut status = policy.object.status.clone().unwrap_or_default();
    let before = status.clone();
    let turned = conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::MATCHED.into(),
            status: if good { "True" } else { "False" }.into(),
            reason: reason.into(),
            message: message.clone(),
            observed_generation: policy.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
    let without_effect = effect::fill(fleet, policy, &mut status.conditions, now);
    if status == before {
        return Plan::nothing();
    }
    // Whether a template was changed before or after an edit of a lazy policy is decided by their revisions: the bindings record
    // it before a write of this control plane changes the policy's revision.
    let until = policy.edited.1.plus(FIRST_LOOK);
    if activation::is_lazy(policy) && now < until {
        return Plan::wait_until(until, "it is lazy: what was touched is noted first");
    }
    let needed = [SyncRequirement::Base, SyncRequirement::Overrides];
    if let Some(proof) = needed.into_iter().find(|proof| !fleet.has(proof)) {
        return Plan::wait_for(proof, "what it propagates is not synced yet");
    }
    let body = json!({
        "metadata": { "uid": &*policy.meta.uid, "resourceVersion": &*policy.meta.resource_version },
        "status": serde_json::to_value(&status).unwrap_or_default(),
    });
    let object = HubObject::Policy(name.clone());
    let mut plan = Plan::one(
        Change::Hub {
            object,
            verb: Verb::MergeStatus(body),
        },
        "its status differs",
    );
    let warning = |reason, message| {
        Change::Emit(Event {
            regarding: Regarding {
                api_version: scope::POLICY_API.into(),
                kind: scope::policy(name).kind.into(),
                namespace: name.namespace.clone(),
                name: name.name.clone(),
                uid: policy.meta.uid.clone(),
            },
            warning: true,
            reason,
            message,
        })
    };
    if turned && !good {
        plan.changes.push(warning(event::APPLY_POLICY_FAILED, message));
    }
    let effect_event = without_effect.map(|message| warning(event::PARTS_WITHOUT_EFFECT, message));
    plan.changes.extend(effect_event);
    plan
}

fn waits_for(policy: &NamespacedName, missing: &[&str]) -> String {
    let kind = scope::override_policy(policy);
    format!(
        "it waits for {kind} {}: create it, or remove the name from spec.dependentOverrides; resources that are \
         already propagated are kept as they are",
        missing.join(", ")
    )
}

fn nothing_selected(fleet: &Fleet, name: &NamespacedName, policy: &Policy) -> String {
    let namespace = &name.namespace;
    if namespace.is_empty() {
        return "no resource matches, or another policy has claimed it: compare spec.resourceSelectors with kubectl \
            get -A \
                --show-labels"
            .into();
    }
    if fleet.config.is_reserved(namespace) {
        return format!(
            "namespace {namespace} is reserved for the system: nothing is propagated out of it; move the resources, \
             and this policy, to another namespace"
        );
    }
    let wide = policy
        .object
        .spec
        .resource_selectors
        .iter()
        .find(|selector| is_cluster_scoped(fleet, &Gvk::new(&selector.api_version, &selector.kind)));
    if let Some(selector) = wide {
        return format!(
            "{} {} is cluster-scoped, and a PropagationPolicy selects in its own namespace only: use a \
             ClusterPropagationPolicy",
            selector.api_version, selector.kind
        );
    }
    format!(
        "no resource in namespace {namespace} matches, or another policy has claimed it: compare \
         spec.resourceSelectors \
         with kubectl get -n {namespace} --show-labels"
    )
}

/// True if a kind is known to be cluster-scoped: a template of it was observed. Cost: O(log resources).
fn is_cluster_scoped(fleet: &Fleet, gvk: &Gvk) -> bool {
    let first = fleet
        .cache
        .resources
        .range(ResourceId::new(gvk.clone(), "", "")..)
        .next();
    first.is_some_and(|(id, resource)| {
        id.gvk == *gvk && id.namespace.is_empty() && resource.template.is_some()
    })
}

/// The message about kinds that are not watched because the policies of the namespace name too many, or `None`.
fn too_many(fleet: &Fleet, name: &NamespacedName, policy: &Policy) -> Option<String> {
    let kinds = selected_kinds(&policy.object);
    let refused = fleet.refused_kinds(&name.namespace, kinds.iter());
    let first = refused.first()?;
    Some(format!(
        "{} of its {} kinds are not propagated, {} {} for one: the policies of namespace {} name more than {} custom kinds; \
         name fewer, or run the controllers with a larger --kinds-per-namespace",
        refused.len(),
        kinds.len(),
        first.api_version(),
        first.kind,
        name.namespace,
        fleet.config.kinds_per_namespace
    ))
}

/// The reason why a template that the policy selects cannot be claimed, or `None`. Cost: O(templates whose claim is refused ×
/// candidate policies).
fn unclaimed(fleet: &Fleet, name: &NamespacedName) -> Option<String> {
    let (id, why) = fleet
        .cache
        .unclaimed
        .iter()
        .find(|(id, _)| lacks_claim(fleet, id) == Some(name))?;
    Some(format!(
        "the controllers may not patch {id} on the hub ({why}), so they cannot claim it: {}; the other matched \
         resources are propagated",
        rights::remedy(&id.gvk.group, &id.gvk.kind)
    ))
}

/// The reason why templates of a selected kind cannot be listed, or `None`.
fn unlistable(fleet: &Fleet, policy: &Policy) -> Option<String> {
    policy.object.spec.resource_selectors.iter().find_map(|selector| {
        let gvk = Gvk::new(&selector.api_version, &selector.kind);
        let why = fleet.cache.watches.unlistable(&fleet.templates(&gvk))?;
        Some(format!(
            "{} {} cannot be listed on the hub ({why}): install the kind, or, if the right is missing, {}",
            selector.api_version,
            selector.kind,
            rights::remedy(&gvk.group, &gvk.kind)
        ))
    })
}
