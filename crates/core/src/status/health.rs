//! The health of the copies of a binding: counts and the messages of their own status.

use entourage_api::work::{AggregatedStatusItem, ResourceHealth};

use super::places::Place;

/// The report.
pub(super) enum HealthReport {
    /// The health of some copies is unknown, or the kind has no health rule.
    Nothing,
    /// No member with a copy responds, and each copy is the one whose health was reported: the report is kept.
    AsBefore,
    /// All required copies are healthy.
    Healthy(String),
    /// Some are not, with the reason.
    Unhealthy(String),
}

/// Cost: O(places).
pub(super) fn report(places: &[Place<'_>], items: &[AggregatedStatusItem]) -> HealthReport {
    let wanted = || places.iter().zip(items).filter(|(place, _)| place.wanted);
    let tells = |(place, _): (&Place<'_>, _)| {
        place
            .state
            .live
            .as_ref()
            .is_some_and(|live| live.health.is_some())
    };
    let is_out_of_sight = |(place, _): (&Place<'_>, _)| !place.answers && place.state.live.is_none();
    if wanted().next().is_some() && wanted().all(is_out_of_sight) {
        // The health of a copy that is to be changed, or of a cluster that had none, was not observed (I9).
        let is_as_reported = |(place, item): (&Place<'_>, &AggregatedStatusItem)| {
            place.applied() && item.health != Some(ResourceHealth::Unknown)
        };
        return if wanted().all(is_as_reported) {
            HealthReport::AsBefore
        } else {
            HealthReport::Nothing
        };
    }
    if !wanted().any(tells) {
        return HealthReport::Nothing;
    }
    let is = |item: &AggregatedStatusItem, health| item.health == Some(health);
    let healthy = wanted()
        .filter(|(_, item)| is(item, ResourceHealth::Healthy))
        .count();
    let all = wanted().count();
    let why: Vec<String> = wanted()
        .filter(|(_, item)| is(item, ResourceHealth::Unhealthy))
        .map(|(place, _)| {
            let live = place.state.live.as_ref();
            let why = live
                .and_then(|live| live.why_unhealthy.as_deref())
                .unwrap_or_default();
            let why = match live {
                None => "it does not respond, and the copy was not healthy when it was last seen",
                Some(_) if why.is_empty() => "its status does not say why",
                Some(_) => why,
            };
            format!("{}: {why}", place.cluster)
        })
        .collect();
    if !why.is_empty() {
        let why = why.join("; ");
        return HealthReport::Unhealthy(format!("Healthy on {healthy}/{all} clusters. {why}"));
    }
    if healthy == all {
        HealthReport::Healthy(format!("Healthy on {healthy}/{all} clusters."))
    } else {
        HealthReport::Nothing
    }
}
