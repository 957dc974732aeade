//! The status item of one target cluster.

use entourage_api::work::{AggregatedStatusItem, ResourceHealth};

use super::places::Place;
use crate::{
    interpreter::{Health, operations::Operation, question::InterpretError},
    messages,
    object::{ResourceId, Time},
};

/// The status item of a cluster; the last report of a member that does not respond is kept.
pub(super) fn item(
    id: &ResourceId,
    place: &Place<'_>,
    held: Option<&AggregatedStatusItem>,
) -> AggregatedStatusItem {
    let live = place.state.live.as_ref();
    let stored = held;
    // After a start the stored item is the only earlier result of a hook or script that fails now.
    let lacks = |operation| live.and_then(|live| live.lacks(operation));
    let earlier = |operation| held.filter(|_| lacks(operation).is_some());
    let held = held.filter(|_| !place.answers && live.is_none());
    let applied = place.applied();
    let message = place.report().map(|(_, message)| message).unwrap_or_default();
    let health = match live.and_then(|live| live.health) {
        Some(Health::Healthy) => ResourceHealth::Healthy,
        Some(Health::Unhealthy) => ResourceHealth::Unhealthy,
        Some(Health::Unknown) => {
            let is_passing = lacks(Operation::Health).is_some_and(InterpretError::is_passing);
            earlier(Operation::Health)
                .filter(|_| is_passing)
                .and_then(|earlier| earlier.health)
                .unwrap_or(ResourceHealth::Unknown)
        }
        None if place.stands() && live.is_some_and(|live| !live.interpretation.is_copied_whole(&id.gvk)) => {
            ResourceHealth::Healthy
        }
        None => held
            .and_then(|held| held.health)
            .unwrap_or(ResourceHealth::Unknown),
    };
    AggregatedStatusItem {
        cluster_name: place.cluster.to_string(),
        status: live.map_or_else(
            || held.and_then(|held| held.status.clone()),
            |live| {
                let earlier = earlier(Operation::Reflect).and_then(|earlier| earlier.status.as_ref());
                live.status.as_ref().or(earlier).cloned()
            },
        ),
        applied,
        applied_message: match stored {
            Some(stored) => messages::steady(&stored.applied_message, message),
            None => message,
        },
        health: Some(health),
        copy: place.state.record.clone(),
        unhealthy_since: place.state.unhealthy_since.map(Time::to_k8s),
        // A stored entry without a reason is of an earlier version, or the definition on the hub lacks the field: that alone is
        // no reason for a write.
        applied_reason: stored
            .and_then(|stored| stored.applied_reason)
            .and(place.reason()),
    }
}
