//! The common parts of kinds whose status has counters: replicas, the sums of counters, and generations that show whether they
//! are up to date.

use entourage_api::keys::{self, annotation, label};
use serde_json::{Map, Value, json};

use crate::json::{at, int, set, text};

/// A counter in a status.
pub(super) struct Counter {
    /// Its field.
    pub(super) name: &'static str,
    /// True if the API serves it when it is zero.
    pub(super) always: bool,
}

/// A counter that is absent when zero.
pub(super) const fn counter(name: &'static str) -> Counter {
    Counter { name, always: false }
}

/// A counter that the API serves when zero, too.
pub(super) const fn always(name: &'static str) -> Counter {
    Counter { name, always: true }
}

/// `spec.replicas`, 1 when absent as an API server would fill in; `None` without a spec.
pub(super) fn replicas(object: &Value) -> Option<i64> {
    object["spec"].as_object()?;
    Some(int(object, &["spec", "replicas"]).unwrap_or(1))
}

/// Sets `spec.replicas`.
pub(super) fn revise_replicas(object: &mut Value, replicas: i64) {
    set(object, &["spec", "replicas"], json!(replicas));
}

/// True if the member's own replica count is retained: the template has the retain-replicas label, because an autoscaler on the
/// member decides. Source: Karmada reference 0.2, 3.1.
pub(crate) fn retains_replicas(desired: &Value) -> bool {
    text(desired, &["metadata", "labels", label::RETAIN_REPLICAS]) == keys::TRUE
}

/// Keeps the live replica count if [`retains_replicas`].
pub(super) fn retain_replicas(desired: &mut Value, live: &Value) {
    if retains_replicas(desired)
        && let Some(replicas) = int(live, &["spec", "replicas"])
    {
        revise_replicas(desired, replicas);
    }
}

/// True if the controller has observed the latest spec; false for an empty status.
pub(super) fn is_observed(live: &Value) -> bool {
    count(&live["status"], "observedGeneration") == count(&live["metadata"], "generation")
}

/// True if pods of an older spec are kept until a user deletes them, so that none has to be of the latest one.
pub(super) fn is_replaced_on_delete(live: &Value) -> bool {
    text(live, &["spec", "updateStrategy", "type"]) == "OnDelete"
}

/// A counter's value; absent and malformed count as zero, as do negative ones, which no API server accepts.
pub(super) fn count(status: &Value, name: &str) -> i64 {
    status[name].as_i64().unwrap_or_default().max(0)
}

/// The counters of a live copy alone. `None` if the object has no status yet.
pub(super) fn reflect_counts(live: &Value, counters: &[Counter]) -> Option<Value> {
    live["status"].as_object()?;
    let mut reflected = Map::new();
    for counter in counters {
        put_count(&mut reflected, counter, count(&live["status"], counter.name));
    }
    Some(Value::Object(reflected))
}

/// The counters of a live copy, with the generations that they are about: `generation` and `observedGeneration` of the copy,
/// `resourceTemplateGeneration` of the template it was made from. `None` if the object has no status yet. Source: Karmada
/// reference 1.6, observed example.
pub(super) fn reflect(live: &Value, counters: &[Counter]) -> Option<Value> {
    let mut reflected = reflect_counts(live, counters)?;
    let template = text(
        live,
        &["metadata", "annotations", annotation::TEMPLATE_GENERATION],
    );
    let generations = [
        ("observedGeneration", count(&live["status"], "observedGeneration")),
        ("generation", count(&live["metadata"], "generation")),
        ("resourceTemplateGeneration", template.parse().unwrap_or_default()),
    ];
    for (name, value) in generations {
        if value != 0 {
            set(&mut reflected, &[name], json!(value));
        }
    }
    Some(reflected)
}

/// The sums over all clusters in the template's status; `None` if that changes nothing. All other fields of the stored status
/// are kept.
pub(super) fn sums(
    template: &Value,
    items: &[(&str, Option<&Value>)],
    counters: &[Counter],
) -> Option<Value> {
    let (status, changed) = summed(template, items, counters);
    changed.then_some(Value::Object(status))
}

/// [`sums`] of a kind that observes generations.
///
/// `observedGeneration` becomes the template's generation only when every cluster's copy was made from that generation and its
/// controller has observed it, so that "observed" means observed everywhere; until then, and while there is no cluster, it is
/// kept. Source: Karmada reference 1.6.
pub(super) fn aggregate(
    template: &Value,
    items: &[(&str, Option<&Value>)],
    counters: &[Counter],
) -> Option<Value> {
    const OBSERVED: Counter = counter("observedGeneration");
    let (mut status, mut changed) = summed(template, items, counters);
    let generation = count(&template["metadata"], "generation");
    let is_current = |item: &Value| {
        count(item, OBSERVED.name) >= count(item, "generation")
            && count(item, "resourceTemplateGeneration") >= generation
    };
    if !items.is_empty() && items.iter().all(|(_, item)| item.is_some_and(is_current)) {
        changed |= generation != count(&template["status"], OBSERVED.name);
        put_count(&mut status, &OBSERVED, generation);
    }
    changed.then_some(Value::Object(status))
}

/// The stored status with the sums in it, and true if any differs from the stored one.
fn summed(
    template: &Value,
    items: &[(&str, Option<&Value>)],
    counters: &[Counter],
) -> (Map<String, Value>, bool) {
    let stored = at(template, &["status"]);
    let mut status = stored.as_object().cloned().unwrap_or_default();
    let mut changed = false;
    for counter in counters {
        let all = items.iter().filter_map(|(_, item)| *item);
        let sum = all
            .map(|item| count(item, counter.name))
            .fold(0, i64::saturating_add);
        changed |= sum != count(stored, counter.name);
        put_count(&mut status, counter, sum);
    }
    (status, changed)
}

fn put_count(status: &mut Map<String, Value>, counter: &Counter, value: i64) {
    if counter.always || value != 0 {
        status.insert(counter.name.to_owned(), json!(value));
    } else {
        status.remove(counter.name);
    }
}
