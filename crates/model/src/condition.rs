//! Conditions: set on transition only, in a fixed order, with observedGeneration (KEP-1623).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The longest message that an API server accepts (CRD schema of `conditions`).
const LONGEST_MESSAGE: usize = 32_768;

/// Sets a condition. The transition time changes with the status alone; observedGeneration is the generation that was
/// processed, also if nothing else changes: `kubectl wait` waits for it. Returns true if the status changed.
pub fn set(all: &mut Vec<Condition>, mut wanted: Condition) -> bool {
    if wanted.message.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE)
            .rev()
            .find(|at| wanted.message.is_char_boundary(*at))
            .unwrap_or(0);
        wanted.message.truncate(end);
    }
    match all.iter_mut().find(|each| each.type_ == wanted.type_) {
        None => {
            all.push(wanted);
            all.sort_by(|one, other| one.type_.cmp(&other.type_));
            true
        }
        Some(held) => {
            let same = held.status == wanted.status
                && held.reason == wanted.reason
                && held.message == wanted.message;
            if same {
                held.observed_generation = wanted.observed_generation;
                return false;
            }
            let turned = held.status != wanted.status;
            if !turned {
                wanted.last_transition_time.clone_from(&held.last_transition_time);
            }
            *held = wanted;
            turned
        }
    }
}

/// Removes a condition.
pub fn remove(all: &mut Vec<Condition>, type_: &str) {
    all.retain(|each| each.type_ != type_);
}

/// The status of a condition: `True`, `False` or `Unknown`, or `None` if there is no such condition.
#[must_use]
pub fn status<'a>(all: &'a [Condition], type_: &str) -> Option<&'a str> {
    all.iter()
        .find(|each| each.type_ == type_)
        .map(|each| each.status.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: &str, message: &str, generation: i64, second: i64) -> Condition {
        Condition {
            type_: "Ready".into(),
            status: status.into(),
            reason: "Because".into(),
            message: message.into(),
            observed_generation: Some(generation),
            last_transition_time: crate::object::Time(second * 1000).to_k8s(),
        }
    }

    #[test]
    fn a_new_generation_alone_is_reported_and_is_no_transition() {
        let mut all = vec![ready("True", "", 1, 1)];
        assert!(!set(&mut all, ready("True", "", 2, 2)));
        assert_eq!(all, [ready("True", "", 2, 1)]);
    }

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let mut all = vec![ready("True", "", 1, 1)];
        assert!(!set(&mut all, ready("True", "other", 2, 2)));
        assert_eq!(all, [ready("True", "other", 2, 1)]);
        assert!(set(&mut all, ready("False", "other", 3, 3)));
        assert_eq!(all, [ready("False", "other", 3, 3)]);
    }

    #[test]
    fn a_message_is_cut_to_what_an_api_server_takes() {
        let mut all = Vec::new();
        set(&mut all, ready("True", &"ä".repeat(20_000), 1, 1));
        assert!(all[0].message.len() <= LONGEST_MESSAGE);
    }
}
