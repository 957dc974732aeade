//! The kind of problem that the message of a target cluster reports, for programs that read a stored status.
//!
//! [`told`] matches the same constants that the messages are made of, so that both change together.

use entourage_api::work::AggregatedStatusItem;

use crate::overrides::BadOverride;

/// Around the name of the cluster, where an object exists that is not managed by this hub; a test compares them with the
/// messages written.
const EXISTS: &str = " already exists on ";
const NOT_MANAGED: &str = " and is not managed by this hub";
/// Around the name of a member on which another writer changes the copy back; a test compares them with the messages written.
const ANOTHER: &str = "another writer on ";
const CONTENDS: &str = " keeps changing ";
/// Around the name of a member that did not respond to a write.
pub(crate) const NO_RESPONSE: &str = "no response from ";
const TO: &str = " to the ";
const SILENT: &str = " does not respond;";
const UNUSED: &str = " is not used: ";
const RESOURCES: &str = "resources on ";
const UNLISTABLE: &str = " cannot be listed ";

/// The text around the name of the member in messages of earlier versions: a stored status has them until it is written again.
const EARLIER: [(&str, &str, Told); 4] = [
    ("", " did not answer ", Told::Unknown),
    ("", " does not answer;", Told::Unknown),
    ("what ", " holds cannot be listed ", Told::Unknown),
    ("something on ", " keeps changing ", Told::Fought),
];
const EARLIER_SUSPENDED: &str =
    "delivery is suspended by spec.suspension; take it out of the policy to go on";
const EARLIER_FOREIGN: (&str, &str) = (" already stands on ", " and is not ours");

/// No problem: delivery is in progress.
pub(super) const PENDING: &str = "not delivered yet";
/// A user suspended it.
pub(super) const SUSPENDED: &str =
    "delivery is suspended by spec.suspension; remove it from the policy to resume";

/// There is no template to deliver: its deletion is in progress.
const NO_SOURCE: [&str; 2] = ["it does not exist on the hub", "the template is being deleted"];

/// The state of a target cluster, as its entry in a stored status reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The copy exists on the cluster and is up to date.
    Applied,
    /// Delivery is in progress, without a problem.
    Pending,
    /// A user suspended delivery.
    Suspended,
    /// An object exists on the cluster that is not managed by this hub.
    Foreign,
    /// A rule of an override policy cannot be applied.
    Override,
    /// Another writer on the member keeps changing the copy back.
    Fought,
    /// The member does not respond, or its objects cannot be listed.
    Unknown,
    /// The member refused the copy; also any text of another writer of the status.
    Refused,
}

/// Returns the state that an entry reports. Cost: O(length of the message).
#[must_use]
pub fn told(item: &AggregatedStatusItem) -> Told {
    let (cluster, message) = (&*item.cluster_name, &*item.applied_message);
    let begins = |before: &str, after: &str| {
        let rest = message.strip_prefix(before);
        let rest = rest.and_then(|rest| rest.strip_prefix(cluster));
        rest.is_some_and(|rest| rest.starts_with(after))
    };
    match message {
        _ if item.applied => Told::Applied,
        "" | PENDING => Told::Pending,
        SUSPENDED | EARLIER_SUSPENDED => Told::Suspended,
        _ if NO_SOURCE.contains(&message) => Told::Pending,
        _ if begins("", " refused ") => Told::Refused,
        _ if begins("", SILENT)
            || begins("", UNUSED)
            || begins(NO_RESPONSE, TO)
            || begins(RESOURCES, UNLISTABLE) =>
        {
            Told::Unknown
        }
        _ if begins(ANOTHER, CONTENDS) => Told::Fought,
        _ if BadOverride::is_told_by(message) => Told::Override,
        _ if message.contains(&format!("{EXISTS}{cluster}{NOT_MANAGED}")) => Told::Foreign,
        _ => told_earlier(cluster, message, begins),
    }
}

/// Returns the state that an entry reports in the words of an earlier version.
fn told_earlier(cluster: &str, message: &str, begins: impl Fn(&str, &str) -> bool) -> Told {
    let found = EARLIER.iter().find(|(before, after, _)| begins(before, after));
    let (exists, not_managed) = EARLIER_FOREIGN;
    match found {
        Some((_, _, told)) => *told,
        None if message.contains(&format!("{exists}{cluster}{not_managed}")) => Told::Foreign,
        None => Told::Refused,
    }
}

/// Returns the text for a failure that is already reported: the stored text `held` if the new one says the same. Servers and
/// transports put numbers into it that differ between attempts (ports, times, counts), and conditions are written on transition
/// only. Cost: O(length).
pub(crate) fn steady(held: &str, new: String) -> String {
    let letters = |text: &str| text.split(|each: char| each.is_ascii_digit()).collect::<String>();
    let is_same = held.len().abs_diff(new.len()) < 64 && letters(held) == letters(&new);
    if is_same { held.to_owned() } else { new }
}

/// The message for a member that does not respond.
pub(super) fn silent(cluster: &str) -> String {
    format!("{cluster}{SILENT} it is applied when it does (see the Ready condition of the Cluster)")
}

/// The message for a member whose identity is not the expected one, or that another Cluster also points to.
pub(super) fn unused(cluster: &str, why: &str) -> String {
    format!("{cluster}{UNUSED}{why}")
}

/// The message for a member that responds, and whose objects cannot be listed.
pub(super) fn unlistable(cluster: &str, why: &str) -> String {
    format!("{RESOURCES}{cluster}{UNLISTABLE}({why}); check the rights of the joined account")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        delivery::render::Refusal,
        drift::{DriftBackoff, Drifting},
        fleet::Fleet,
        object::{Gvk, ResourceId, Time},
        observation::{Delivered, Observation, Subject},
    };

    fn of(message: &str) -> Told {
        told(&AggregatedStatusItem {
            cluster_name: "m1".into(),
            applied_message: message.into(),
            ..AggregatedStatusItem::default()
        })
    }

    fn id() -> ResourceId {
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web")
    }

    /// The message recorded for this outcome of a delivery.
    fn recorded(outcome: Delivered) -> String {
        let mut fleet = Fleet::new(Config::new("hub"));
        let cluster: entourage_api::cluster::Cluster = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "m1"}, "spec": {"syncMode": "Push"},
        }))
        .unwrap();
        fleet.observe(Observation::Seen(Subject::Cluster(cluster.into())), Time(0));
        fleet.observe(Observation::Delivered("m1".into(), id(), outcome), Time(0));
        let resource = fleet.resource(&id()).unwrap();
        resource.copies["m1"].problem.clone().unwrap().message
    }

    #[test]
    fn every_outcome_of_a_delivery_is_told_from_its_message() {
        let bad = BadOverride {
            at: "OverridePolicy shop/o spec.overrideRules[0]".into(),
            cluster: "m1".into(),
            why: "m1 refused x".into(),
        };
        let table = [
            (Delivered::Foreign, Told::Foreign),
            (
                Delivered::Rejected("y already exists on m1 and is not managed by this hub".into()),
                Told::Refused,
            ),
            (Delivered::Unreachable("timeout".into()), Told::Unknown),
            (
                Delivered::Failed("Internal error occurred: failed calling webhook".into()),
                Told::Refused,
            ),
            (Delivered::BadOverride(bad.to_string()), Told::Override),
            (
                Delivered::NoSource("it does not exist on the hub".into()),
                Told::Pending,
            ),
            (Delivered::NoSource(Refusal::Deleting.to_string()), Told::Pending),
        ];
        for (outcome, wanted) in table {
            let message = recorded(outcome);
            assert_eq!(of(&message), wanted, "{message}");
        }
    }

    #[test]
    fn what_is_no_outcome_is_told_from_its_message() {
        let drift_backoff = (0..8).fold(None, |drift_backoff, _| {
            Some(DriftBackoff::corrected(
                drift_backoff,
                Drifting::Copy,
                "spec.replicas",
                Time(0),
            ))
        });
        let drift_backoff = drift_backoff
            .and_then(|drift_backoff| drift_backoff.message(&id(), "m1"))
            .unwrap();
        let table = [
            (drift_backoff.as_str(), Told::Fought),
            (&silent("m1"), Told::Unknown),
            (&unused("m1", "it is another one"), Told::Unknown),
            (&unlistable("m1", "403"), Told::Unknown),
            (SUSPENDED, Told::Suspended),
            (PENDING, Told::Pending),
            ("", Told::Pending),
            ("what another writer reports", Told::Refused),
        ];
        for (message, wanted) in table {
            assert_eq!(of(message), wanted, "{message}");
        }
    }

    #[test]
    fn what_an_earlier_version_stored_is_told_from_its_message() {
        let table = [
            (
                "Secret shop/login already stands on m1 and is not ours; delete it there, or set conflictResolution: \
                 Overwrite to take it over",
                Told::Foreign,
            ),
            (
                "m1 did not answer for Deployment shop/web: timeout; retrying",
                Told::Unknown,
            ),
            (
                "m1 did not answer when Deployment shop/web was to be removed: timeout",
                Told::Unknown,
            ),
            (
                "m1 does not answer; it is delivered when it does (see the Ready condition of the Cluster)",
                Told::Unknown,
            ),
            (
                "what m1 holds cannot be listed (403); check the rights of the joined account",
                Told::Unknown,
            ),
            (
                "something on m1 keeps changing spec.paused of Deployment shop/web, which is put right ever more rarely",
                Told::Fought,
            ),
            (
                "delivery is suspended by spec.suspension; take it out of the policy to go on",
                Told::Suspended,
            ),
            (
                "m1 could not apply Deployment shop/web: Internal error; retrying",
                Told::Refused,
            ),
            (
                "m1 refused x: y already stands on m1 and is not ours",
                Told::Refused,
            ),
        ];
        for (message, wanted) in table {
            assert_eq!(of(message), wanted, "{message}");
        }
    }

    #[test]
    fn words_that_differ_in_numbers_only_stay_as_they_were_told() {
        let held = "dial tcp 10.0.0.1:4431: connection refused";
        assert_eq!(
            steady(held, "dial tcp 10.0.0.2:987: connection refused".into()),
            held
        );
        let other = "dial tcp 10.0.0.1:4431: connection reset";
        assert_eq!(steady(held, other.into()), other);
    }
}
