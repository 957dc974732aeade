//! Whether the copies of a binding are healthy, in counts and in the words of their own status.

use entourage_api::work::{AggregatedStatusItem, ResourceHealth};

use super::places::Place;

/// `Ok`: all that are wanted are; `Err`: some are not, and why. `None` while that is not known of all, and of a kind that
/// tells nothing of its health. Cost: O(places).
pub(super) fn told(places: &[Place<'_>], items: &[AggregatedStatusItem]) -> Option<Result<String, String>> {
    let wanted = || places.iter().zip(items).filter(|(place, _)| place.wanted);
    let tells = |(place, _): (&Place<'_>, _)| {
        place
            .state
            .live
            .as_ref()
            .is_some_and(|live| live.health.is_some())
    };
    if !wanted().any(tells) {
        return None;
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
            let why = if why.is_empty() {
                "its status does not say why"
            } else {
                why
            };
            format!("{}: {why}", place.cluster)
        })
        .collect();
    if !why.is_empty() {
        return Some(Err(format!(
            "Healthy on {healthy}/{all} clusters. {}",
            why.join("; ")
        )));
    }
    (healthy == all).then(|| Ok(format!("Healthy on {healthy}/{all} clusters.")))
}
