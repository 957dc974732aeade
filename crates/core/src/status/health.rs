//! Whether the copies of a binding are healthy, in counts and in the words of their own status.

use entourage_api::work::{AggregatedStatusItem, ResourceHealth};

use super::places::Place;

/// What is told of it.
pub(super) enum Told {
    /// Nothing is known of some, or the kind tells nothing of its health.
    Nothing,
    /// No member that holds a copy answers, and each holds it as it was when its health was told: that stays.
    AsBefore,
    /// All that are wanted are healthy.
    Healthy(String),
    /// Some are not, and why.
    Unhealthy(String),
}

/// Cost: O(places).
pub(super) fn told(places: &[Place<'_>], items: &[AggregatedStatusItem]) -> Told {
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
        // Of a copy that is to be another one, or of a place that had none, nobody has seen how it fares (I9).
        let is_as_told = |(place, item): (&Place<'_>, &AggregatedStatusItem)| {
            place.applied() && item.health != Some(ResourceHealth::Unknown)
        };
        return if wanted().all(is_as_told) {
            Told::AsBefore
        } else {
            Told::Nothing
        };
    }
    if !wanted().any(tells) {
        return Told::Nothing;
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
        return Told::Unhealthy(format!("Healthy on {healthy}/{all} clusters. {why}"));
    }
    if healthy == all {
        Told::Healthy(format!("Healthy on {healthy}/{all} clusters."))
    } else {
        Told::Nothing
    }
}
