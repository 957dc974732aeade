//! The right that a refusal names.

/// The maximum length of the name of an API, in bytes.
const LONGEST_NAME: usize = 253;

/// The right that the message of a refusal names: `patch deployments.apps/status`.
pub(super) fn right(message: &str) -> Option<String> {
    let words = message.split_once(" cannot ")?.1;
    let (verb, rest) = words.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, _) = rest.split_once('"')?;
    // Names of APIs, and no content of an object.
    let is_name = |text: &str| {
        let is_part = |each: char| each.is_ascii_alphanumeric() || "-./".contains(each);
        text.len() <= LONGEST_NAME && text.chars().all(is_part)
    };
    if ![verb, resource, group].into_iter().all(is_name) {
        return None;
    }
    let (plural, below) = resource.split_at(resource.find('/').unwrap_or(resource.len()));
    let dot = if group.is_empty() { "" } else { "." };
    Some(format!("{verb} {plural}{dot}{group}{below}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::error::{Answer, Failure};

    #[test]
    fn the_right_is_read_from_the_words_of_a_refusal_for_want_of_it_and_of_no_other() {
        let user = "User \"system:serviceaccount:karmada-system:entourage-controllers\" cannot";
        for (code, message, wanted) in [
            (
                403,
                format!(
                    "deployments.apps \"a\" is forbidden: {user} patch resource \"deployments/status\" in API group \"apps\" in the namespace \"b\""
                ),
                Some("patch deployments.apps/status"),
            ),
            (
                403,
                format!(
                    "nodes is forbidden: {user} list resource \"nodes\" in API group \"\" at the cluster scope"
                ),
                Some("list nodes"),
            ),
            (
                409,
                format!("{user} list resource \"nodes\" in API group \"\""),
                None,
            ),
            (
                403,
                "unable to create new content in namespace a because it is being terminated".into(),
                None,
            ),
            (
                403,
                "the value cannot be a canary resource \"c a\" in API group \"\"".into(),
                None,
            ),
        ] {
            let body = json!({"kind": "Status", "code": code, "reason": "Forbidden", "message": message});
            let failure = Failure::Answer(Box::new(Answer::read(code, None, body.to_string().as_bytes())));
            assert_eq!(failure.denied_right().as_deref(), wanted, "{message}");
        }
    }
}
