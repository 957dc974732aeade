//! The messages about target clusters in the status of a binding: for people, never read by a program. Programs read
//! [`entourage_api::work::NotAppliedReason`].

/// Delivery is in progress.
pub(super) const PENDING: &str = "not delivered yet";
/// A user suspended it.
pub(super) const SUSPENDED: &str =
    "delivery is suspended by spec.suspension; remove it from the policy to resume";

/// Returns the text for a failure that is already reported: the stored text `held` if the new one says the same. Servers and
/// transports put numbers into it that differ between attempts (ports, times, counts), and conditions are written on transition
/// only. Cost: O(length).
pub(crate) fn steady(held: &str, new: String) -> String {
    let letters = |text: &str| text.split(|each: char| each.is_ascii_digit()).collect::<String>();
    let is_same = held.len().abs_diff(new.len()) < 64 && letters(held) == letters(&new);
    if is_same { held.to_owned() } else { new }
}

/// The message for a member that does not respond.
pub(super) fn unresponsive(cluster: &str) -> String {
    format!("{cluster} does not respond; it is applied when it does (see the Ready condition of the Cluster)")
}

/// The message for a copy that the agent of its cluster has not applied yet.
pub(super) fn awaits_agent(cluster: &str) -> String {
    format!("the agent of {cluster} has not applied it yet")
}

/// The message for a copy that the agent of its cluster could not apply.
pub(super) fn not_applied(cluster: &str, why: &str) -> String {
    format!("the agent of {cluster} could not apply it: {why}")
}

/// The message for a member whose identity is not the expected one, or that another Cluster also points to.
pub(super) fn unused(cluster: &str, why: &str) -> String {
    format!("{cluster} is not used: {why}")
}

/// The message for a member that responds, and whose objects cannot be listed.
pub(super) fn unlistable(cluster: &str, why: &str) -> String {
    format!("resources on {cluster} cannot be listed ({why}); check the rights of the joined account")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_in_numbers_only_stay_as_they_were_reported() {
        let held = "dial tcp 10.0.0.1:4431: connection refused";
        assert_eq!(
            steady(held, "dial tcp 10.0.0.2:987: connection refused".into()),
            held
        );
        let other = "dial tcp 10.0.0.1:4431: connection reset";
        assert_eq!(steady(held, other.into()), other);
    }
}
