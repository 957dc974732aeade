//! Autoscaling on members: which autoscaler scales a workload there, and how many replicas each member has made of it. See
//! [`crate::autoscaling`].

use std::collections::BTreeMap;

use entourage_api::{
    keys::{self, annotation, label},
    policy::{Placement, ReplicaSchedulingType},
    work::{CopyRecord, ResourceBinding, ResourceBindingSpec, TargetCluster},
};

use crate::{
    cache::{Binding, CopyState, Label, ResourceState},
    fleet::{
        Fleet,
        claims::claimed_by,
        current::{is_current, is_record_outdated},
        render_specs::{content_version, render_spec_of},
    },
    interpreter::{self, operations::Operation},
    object::{Gvk, Meta, ResourceId, Str, Time},
    observation::{Copy, Template},
    plan::SyncRequirement,
    stored_binding::is_reschedule_asked,
};

/// The kind of autoscalers.
pub(crate) fn autoscaler() -> Gvk {
    Gvk::new("autoscaling/v2", "HorizontalPodAutoscaler")
}

/// The autoscalers because of which the label of a template was set; none if it was not set by this control plane.
pub(crate) fn marked_by(id: &ResourceId, meta: &Meta) -> Vec<ResourceId> {
    let names = meta.annotation(annotation::SCALED_BY).unwrap_or_default();
    let names = names.split(',').filter(|name| !name.is_empty());
    names
        .map(|name| ResourceId::new(autoscaler(), &id.namespace, name))
        .collect()
}

/// True if templates of this kind are workloads that autoscalers scale.
pub(crate) fn is_scaled_kind(gvk: &Gvk) -> bool {
    interpreter::native(&gvk.group, &gvk.version, &gvk.kind).is_some_and(interpreter::NativeKind::is_scaled)
}

/// The autoscalers, by name, that name a workload and are propagated: a policy claims them, or once did and left their copies.
/// Cost: O(autoscalers of the workload × candidate policies).
pub(crate) fn scalers<'a>(fleet: &'a Fleet, target: &ResourceId) -> impl Iterator<Item = &'a ResourceId> {
    let all = fleet.graph.scaling.scalers(target);
    all.filter(move |id| {
        fleet
            .resource(id)
            .is_some_and(|held| is_propagated(fleet, id, held))
    })
}

fn is_propagated(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> bool {
    let Some(template) = resource.standing().filter(|held| held.meta.deleting.is_none()) else {
        return false;
    };
    let has_binding = resource
        .binding
        .as_ref()
        .is_some_and(|binding| binding.meta.deleting.is_none() && binding.object.spec.placement.is_some());
    has_binding || claimed_by(fleet, id, &template.meta).is_some()
}

/// True if the label belongs on a template because autoscalers scale it on members, whether it is there or another writer of the hub
/// took it off: one of them is propagated, or one that the annotation names may still scale it there. Cost: O(log templates) if it is
/// neither named nor annotated; else that of [`scalers`] and of [`may_scale`].
pub(crate) fn is_scale_target(fleet: &Fleet, id: &ResourceId, template: &Template) -> bool {
    let meta = &template.meta;
    let is_free = meta.deleting.is_none() && meta.label(label::CLAIMED_BY).is_none();
    if !fleet.config.mark_scale_targets || !is_free || !is_scaled_kind(&id.gvk) {
        return false;
    }
    let may_scale_it = |marked: &ResourceId| may_scale(fleet, marked, id).is_some();
    scalers(fleet, id).next().is_some() || marked_by(id, meta).iter().any(may_scale_it)
}

/// True if the copies of a template keep the replicas that their members have: by its label, or by the one that it is about to get
/// back. What another writer of the hub does to the label lowers no replicas meanwhile, however long that takes. Cost: that of
/// [`is_scale_target`], without the label.
pub(crate) fn leaves_replicas(fleet: &Fleet, id: &ResourceId, template: &Template) -> bool {
    match template.meta.label(label::RETAIN_REPLICAS) {
        Some(value) => value == keys::TRUE,
        None => is_scale_target(fleet, id, template),
    }
}

/// True if it is not known yet whether a template without the label is to get it back: a copy of it has the label, or had it when it was
/// written, which the binding records before any member is listed; and the autoscalers are not synced. Cost: O(1) with the label, or
/// while no label is set; else O(copies).
pub(crate) fn is_label_unknown(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> bool {
    let is_unlabelled = |template: &Template| template.meta.label(label::RETAIN_REPLICAS).is_none();
    fleet.config.mark_scale_targets
        && is_scaled_kind(&id.gvk)
        && resource.template.as_ref().is_some_and(is_unlabelled)
        && !fleet.has(&SyncRequirement::Templates(autoscaler()))
        && resource.copies.values().any(|state| {
            state.live.as_ref().is_some_and(|live| live.replicas.is_some())
                || state.record.as_ref().is_some_and(|record| record.share.is_some())
        })
}

/// True if the replicas of a template follow those of its members: [`crate::config::Config::sync_replicas`], the label, and a
/// placement that divides them. A customization of the kind's replicas, or of what members keep, knows better.
pub(crate) fn is_followed(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
) -> bool {
    fleet.config.sync_replicas
        && template.replicas.is_some()
        && placement.replica_scheduling_type() == ReplicaSchedulingType::Divided
        && is_scaled_kind(&id.gvk)
        && leaves_replicas(fleet, id, template)
        && ![Operation::Replicas, Operation::Revise, Operation::Retain]
            .iter()
            .any(|operation| template.interpretation.has(*operation))
}

/// True if the shares of a stored binding follow its members: see [`is_followed`].
pub(crate) fn has_followed_shares(fleet: &Fleet, id: &ResourceId) -> bool {
    let followed = || {
        let resource = fleet.resource(id)?;
        let placement = resource.last_binding()?.object.spec.placement.as_ref()?;
        Some(is_followed(fleet, id, resource.template.as_ref()?, placement))
    };
    fleet.config.sync_replicas && followed() == Some(true)
}

/// The label and the annotation of a template.
pub(crate) fn label_of(meta: &Meta) -> Label {
    Label {
        value: meta.label(label::RETAIN_REPLICAS).map(Str::from),
        by: meta.annotation(annotation::SCALED_BY).map(Str::from),
    }
}

/// True if the copies of an autoscaler stay on members when its propagation ends: its policy or its binding asks for that, or it is
/// orphaned. Cost: O(selectors of its policy).
pub(crate) fn keeps_copies(fleet: &Fleet, id: &ResourceId) -> bool {
    let Some(resource) = fleet.resource(id) else {
        return false;
    };
    let policy = resource
        .standing()
        .and_then(|template| claimed_by(fleet, id, &template.meta));
    let asks =
        policy.is_some_and(|(_, policy)| policy.object.spec.preserve_resources_on_deletion == Some(true));
    asks || resource.is_orphaning()
        || resource.may_be_orphaned()
        || resource.last_binding().is_some_and(Binding::is_preserving)
}

/// A cluster where an autoscaler may still scale a workload: its copy may exist there, and does not provably scale something else.
/// Cost: O(its copies × labels and annotations).
pub(crate) fn may_scale<'a>(fleet: &'a Fleet, id: &ResourceId, target: &ResourceId) -> Option<&'a Str> {
    let resource = fleet.resource(id)?;
    let named = resource.standing().and_then(|held| held.scales.as_deref());
    let is_retargeted = named.is_some_and(|named| named != target);
    let scales_other = |cluster: &Str, state: &CopyState| {
        is_retargeted
            && fleet.answers(cluster)
            && fleet.copies_known(cluster, &id.gvk)
            && state.is_lasting()
            && is_current(fleet, id, cluster)
    };
    let mut copies = resource.copies.iter();
    let may_scale = |(cluster, state): &(&Str, &CopyState)| {
        let may_exist = !state.is_absent() || state.copied.is_some() || fleet.may_exist(id, cluster);
        may_exist && !scales_other(cluster, state)
    };
    copies.find(may_scale).map(|(cluster, _)| cluster)
}

/// The share of a cluster in a workload whose replicas are followed, and its raise. Cost: O(1) if they are not; else O(labels and
/// annotations).
pub(crate) fn share_left_to_member(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
) -> Option<(i32, Option<i64>)> {
    if !has_followed_shares(fleet, id) {
        return None;
    }
    let render_spec = render_spec_of(fleet, id, cluster)?;
    Some((render_spec.replicas?, render_spec.raise))
}

/// A share that the scheduler raised, and the generation of the binding from which it did: no two raises of a binding have the same.
type Raise = (i32, i64);

/// The shares of a binding that is about to be written which the scheduler raised beyond what the members have, now or before: only
/// these are delivered. One that follows its member is none, also if the member has fewer by the time that it is delivered. Cost: O(1) if
/// shares are not followed; O(size of the stored ones + clusters) while they stay; else O(clusters × labels and annotations) more.
pub(crate) fn raised_shares(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    spec: &ResourceBindingSpec,
) -> BTreeMap<String, Raise> {
    let (Some(placement), Some(stored)) = (&spec.placement, &resource.binding) else {
        return BTreeMap::new();
    };
    if !is_followed(fleet, id, template, placement) {
        return BTreeMap::new();
    }
    let before = &stored.object.spec;
    let is_evicted = !before.graceful_eviction_tasks.is_empty();
    let is_changed = before.clusters != spec.clusters;
    // Where it was not scheduled to, a copy may have any number: one that was left, that others require, or that is taken over.
    let had = |cluster: &str| {
        let target = TargetCluster::find(&before.clusters, cluster);
        target.map_or(0, |target| share_on(fleet, id, resource, target, is_evicted))
    };
    let earlier = stored_raises(&stored.object);
    let raise = |target: &TargetCluster| {
        if is_changed && target.replicas > had(&target.name) {
            return Some((target.replicas, stored.meta.generation.unwrap_or_default()));
        }
        let earlier = earlier.get(&target.name).copied();
        earlier.filter(|(share, _)| *share == target.replicas)
    };
    let raised = spec.clusters.iter();
    raised
        .filter_map(|target| Some((target.name.clone(), raise(target)?)))
        .collect()
}

/// The shares that a stored binding records as raised. Cost: O(size of the record).
fn stored_raises(binding: &ResourceBinding) -> BTreeMap<String, Raise> {
    let annotations = binding.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::RAISED_SHARES));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The raise of a stored share; `None` if it was not raised. Cost: O(size of the record).
pub(crate) fn raise_of(binding: &ResourceBinding, target: &TargetCluster) -> Option<i64> {
    let (share, raise) = *stored_raises(binding).get(&target.name)?;
    (share == target.replicas).then_some(raise)
}

/// The record of a copy after it was written, or found equal: its share, the raise of that, and the share that raised its replicas:
/// that of this write, or of an earlier one. `share`: the present one, with its raise; it was written `as_planned`, or is still to be.
///
/// A member that has exactly the share once its raise was delivered has it from that, or from an earlier attempt whose answer was lost. Of
/// a member in Pull mode only its agent knows: there each larger share counts.
pub(crate) fn delivered_share(
    before: Option<&CopyRecord>,
    copy: &Copy,
    share: Option<(i32, Option<i64>)>,
    as_planned: bool,
) -> (Option<i32>, Option<i64>, Option<i32>) {
    let Some((share, raise)) = share else {
        return (None, None, None);
    };
    let before = before.filter(|before| *before.uid == *copy.meta.uid);
    let earlier = before.map_or((None, None, None), |before| {
        (before.share, before.raise, before.raised_to)
    });
    if !as_planned {
        return earlier;
    }
    let is_delivered = |before: &CopyRecord| before.share == Some(share) && before.raise == raise;
    let is_raised = |before: &CopyRecord| match copy.by_agent {
        Some(_) => before.share.is_some_and(|before| share > before),
        None => copy.replicas.map(i64::from) == Some(i64::from(share)),
    };
    let before = before.filter(|before| raise.is_some() && !is_delivered(before));
    let raised = before.filter(|before| is_raised(before)).map(|_| share);
    (Some(share), raise, raised.or(earlier.2))
}

/// True if a member has decided on the replicas that this share raised: they are others now, or, in Pull mode, at least as many.
pub(crate) fn is_raise_over(copy: &Copy, raised_to: i32) -> bool {
    let decided = |replicas: u32| match copy.by_agent {
        Some(_) => i64::from(replicas) >= i64::from(raised_to),
        None => i64::from(replicas) != i64::from(raised_to),
    };
    copy.replicas.is_some_and(decided)
}

/// The share of a cluster from now on: the replicas that its member reports, unless they follow from a share themselves.
///
/// - What an eviction gave to it and the return of the other cluster took from its share runs on until the member decides: were it a
///   decision of the member, each eviction that ends with a return would make the sum grow.
/// - An agent in Pull mode reports what it retains: fewer than a share that raised them, as long as that has not arrived there.
fn following(share: i32, reported: i32, raised_to: Option<i32>, by_agent: bool) -> i32 {
    match raised_to {
        Some(raised_to) if by_agent && reported < raised_to && share >= raised_to => share,
        Some(raised_to) if !by_agent && reported == raised_to && share < raised_to => share,
        _ => reported,
    }
}

/// The share of a cluster from now on, by its stored one: see [`following`]. While the workload is evicted from others, only one that
/// has arrived follows; one from before shares followed is none that is to arrive, if the copy is from it. Cost: that of [`replicas_on`].
pub(crate) fn share_on(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    target: &TargetCluster,
    is_evicted: bool,
) -> i32 {
    let cluster = Str::from(target.name.as_str());
    let state = resource.copies.get(&cluster);
    let record = state.and_then(|state| state.record.as_ref());
    let has_arrived = |record: &CopyRecord| record.share.is_none_or(|delivered| delivered == target.replicas);
    let reported = match !is_evicted || record.is_some_and(has_arrived) {
        true => replicas_on(fleet, id, resource, &cluster),
        false => None,
    };
    let by_agent = state
        .and_then(|state| state.live.as_ref())
        .is_some_and(|live| live.by_agent.is_some());
    let raised_to = record.and_then(|record| record.raised_to);
    reported.map_or(target.replicas, |reported| {
        following(target.replicas, reported, raised_to, by_agent)
    })
}

/// The replicas that a member has made of a workload, as it reports them now; `None` while that is not known, or while the share of
/// the stored binding is still to be delivered there: the report says nothing of it. Cost: O(labels and annotations).
pub(crate) fn replicas_on(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &Str,
) -> Option<i32> {
    let state = resource.copies.get(cluster)?;
    let live = state.live.as_ref()?;
    let is_known = fleet.answers(cluster)
        && fleet.copies_known(cluster, &id.gvk)
        && state.record.is_some()
        && !is_record_outdated(fleet, id, cluster);
    let replicas = live
        .replicas
        .filter(|_| is_known && live.is_carried_out() && live.meta.deleting.is_none())?;
    i32::try_from(replicas).ok()
}

/// The replicas of all clusters that a binding is scheduled to; `None` unless each of them reports its share, and none is being left.
/// A write of the template has every copy delivered, with its share as a minimum: a share that did not follow yet would undo what an
/// autoscaler lowered.
pub(crate) fn sum(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    spec: &ResourceBindingSpec,
) -> Option<i32> {
    if spec.clusters.is_empty() || !spec.graceful_eviction_tasks.is_empty() {
        return None;
    }
    let each = |target: &TargetCluster| {
        let reported = replicas_on(fleet, id, resource, &Str::from(target.name.as_str()));
        reported.filter(|reported| *reported == target.replicas)
    };
    total(spec.clusters.iter().map(each))
}

/// The sum of all reports; `None` if one is missing, or if no field holds the sum.
fn total(mut reports: impl Iterator<Item = Option<i32>>) -> Option<i32> {
    reports.try_fold(0_i32, |sum, report| sum.checked_add(report?))
}

/// The template and the stored binding of a workload whose replicas are followed, as the scheduler is to see them: each cluster
/// has what it reports, or what it was given as long as it does not report, and the template requests their sum. So no number
/// that an autoscaler sets moves replicas, or takes a cluster away: a workload that sleeps everywhere is not divided again. `None` if
/// they are not followed, or not scheduled yet, and if a user gave a sleeping workload another number: that one is divided.
///
/// `now`: nothing is followed until the binding reports that a choice that was asked for was made. Each plan until then divides anew,
/// and members that keep more than their share would make the sum grow with each of them. `None` where nothing is divided.
///
/// Cost: O(1) if they are not followed; else O(size of both + clusters × labels and annotations).
pub(crate) fn as_scaled(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    placement: &Placement,
    held: &ResourceBinding,
    now: Option<Time>,
) -> Option<(Template, ResourceBinding)> {
    if held.spec.clusters.is_empty() || !is_followed(fleet, id, template, placement) {
        return None;
    }
    let mut scaled = held.clone();
    if !now.is_some_and(|now| is_reschedule_asked(held, now)) {
        let is_evicted = !held.spec.graceful_eviction_tasks.is_empty();
        for target in &mut scaled.spec.clusters {
            target.replicas = share_on(fleet, id, resource, target, is_evicted);
        }
    }
    let sum = sum_of_shares(&scaled.spec);
    if sum == 0 && is_asked_anew(resource, template) {
        return None;
    }
    let mut template = template.clone();
    template.replicas = Some(sum);
    scaled.spec.replicas = sum;
    Some((template, scaled))
}

/// The sum of the shares of a binding.
pub(crate) fn sum_of_shares(spec: &ResourceBindingSpec) -> i32 {
    let shares = spec.clusters.iter().map(|target| target.replicas);
    shares.fold(0, i32::saturating_add)
}

/// True if the content of a template is that of an earlier version, of which this is true, but for what this process wrote to it
/// because of autoscalers. Cost: O(labels and annotations).
pub(crate) fn is_own_write(resource: &ResourceState, template: &Meta, was: impl Fn(&Meta) -> bool) -> bool {
    let Some(writes) = resource.scaling_writes.as_deref() else {
        return false;
    };
    writes.steps().split_last().is_some_and(|(last, earlier)| {
        content_version(last) == content_version(template) && earlier.iter().any(was)
    })
}

/// True if the template requests another number than when its binding was stored, and this control plane did not write it. The
/// template gets the sum of the shares that are stored: so that sum is no number of a user, also after a crash in between.
fn is_asked_anew(resource: &ResourceState, template: &Template) -> bool {
    let Some(stored) = resource.last_binding().map(|binding| &binding.object.spec) else {
        return template.replicas.is_some();
    };
    let writes = resource.scaling_writes.as_deref();
    let written = writes.and_then(|writes| writes.replicas.as_ref());
    template.replicas != Some(stored.replicas)
        && template.replicas != Some(sum_of_shares(stored))
        && !written.is_some_and(|written| written.is_of(&template.replicas))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pulled::Applied;

    proptest! {
        /// A report that is missing never makes the sum smaller: there is none then.
        #[test]
        fn the_sum_is_that_of_all_reports_or_none(
            reports in prop::collection::vec(prop::option::weighted(0.9, 0..10_000_i32), 1..8),
        ) {
            let sum = total(reports.iter().copied());
            let known: Vec<i32> = reports.iter().flatten().copied().collect();
            prop_assert_eq!(sum, (known.len() == reports.len()).then(|| known.iter().sum()));
        }
    }

    #[test]
    fn a_share_follows_what_its_member_decides_and_not_what_a_share_made() {
        for (share, reported, raised_to, by_agent, want, case) in [
            (3, 7, None, false, 7, "an autoscaler scaled up"),
            (7, 0, None, false, 0, "an autoscaler scaled down"),
            (8, 8, Some(8), false, 8, "an eviction gave it"),
            (8, 5, Some(8), false, 5, "the member decided since"),
            (4, 8, Some(8), false, 4, "the other cluster returned"),
            (4, 9, Some(8), false, 9, "and then the member decided"),
            (8, 3, Some(8), true, 8, "the agent retains what is there"),
            (8, 9, Some(8), true, 9, "it has arrived there"),
            (
                3,
                3,
                Some(8),
                true,
                3,
                "the other cluster returned before it arrived",
            ),
            (3, 2, None, true, 2, "an autoscaler behind an agent"),
        ] {
            assert_eq!(following(share, reported, raised_to, by_agent), want, "{case}");
        }
    }

    #[test]
    fn a_raise_is_over_when_the_member_decides() {
        for (replicas, by_agent, want) in [
            (Some(8), false, false),
            (Some(5), false, true),
            (Some(9), false, true),
            (None, false, false),
            (Some(3), true, false),
            (Some(8), true, true),
            (None, true, false),
        ] {
            let copy = Copy {
                replicas,
                by_agent: by_agent.then_some(Applied::Done),
                ..Copy::default()
            };
            assert_eq!(is_raise_over(&copy, 8), want, "{replicas:?} {by_agent}");
        }
    }

    #[test]
    fn the_share_of_a_delivery_is_recorded_with_what_it_raised() {
        let copy = |replicas: u32| Copy {
            replicas: Some(replicas),
            ..Copy::default()
        };
        let record = |share, raise, raised_to| CopyRecord {
            share,
            raise,
            raised_to,
            ..CopyRecord::default()
        };
        let first = record(Some(3), None, None);
        let raised = record(Some(8), Some(4), Some(8));
        let eight = Some((8, Some(4)));
        for (before, has, share, as_planned, want, case) in [
            (None, 3, Some((3, None)), true, (Some(3), None, None), "created"),
            (
                None,
                3,
                Some((3, Some(4))),
                true,
                (Some(3), Some(4), None),
                "moved to a new copy",
            ),
            (
                Some(&first),
                8,
                eight,
                true,
                (Some(8), Some(4), Some(8)),
                "raised, by this attempt or an earlier one",
            ),
            (
                Some(&first),
                9,
                eight,
                true,
                (Some(8), Some(4), None),
                "the member had more",
            ),
            (
                Some(&raised),
                8,
                Some((4, None)),
                true,
                (Some(4), None, Some(8)),
                "the other cluster returned",
            ),
            (
                Some(&first),
                8,
                eight,
                false,
                (Some(3), None, None),
                "another source is due by now",
            ),
            (
                Some(&record(Some(8), Some(4), None)),
                8,
                eight,
                true,
                (Some(8), Some(4), None),
                "the member has decided on the same number since",
            ),
            (
                Some(&record(Some(8), Some(4), None)),
                8,
                Some((8, Some(7))),
                true,
                (Some(8), Some(7), Some(8)),
                "raised to the same number once more",
            ),
            (
                Some(&first),
                3,
                Some((3, None)),
                true,
                (Some(3), None, None),
                "a share that follows",
            ),
            (
                Some(&raised),
                8,
                None,
                true,
                (None, None, None),
                "not followed any longer",
            ),
        ] {
            assert_eq!(
                delivered_share(before, &copy(has), share, as_planned),
                want,
                "{case}"
            );
        }
    }

    #[test]
    fn a_sum_that_no_field_holds_is_none() {
        assert_eq!(total([Some(i32::MAX), Some(1)].into_iter()), None);
    }

    #[test]
    fn the_kinds_with_replicas_that_autoscalers_scale_are_these() {
        for (api_version, kind, scaled) in [
            ("apps/v1", "Deployment", true),
            ("apps/v1", "StatefulSet", true),
            ("apps/v1", "ReplicaSet", true),
            ("v1", "ReplicationController", true),
            ("apps/v1", "DaemonSet", false),
            ("batch/v1", "Job", false),
            ("autoscaling/v2", "HorizontalPodAutoscaler", false),
        ] {
            assert_eq!(is_scaled_kind(&Gvk::new(api_version, kind)), scaled, "{kind}");
        }
    }
}
