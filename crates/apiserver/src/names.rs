//! The syntax of names, labels and the like. Each function returns the errors, in the server's words.
//!
//! The functions about objects' names take `prefix`: the name is a generateName, which may end with a dash.
//! Source: k8s.io/apimachinery `util/validation` and `api/validate/content`; texts are theirs, since clients match on them.

pub(crate) mod labels;
pub(crate) mod values;

pub(crate) use labels::{label_selector, label_value, labels, qualified_name};
pub(crate) use values::{
    cidr, config_map_key, env_name, http_header_name, in_range, ip, is_smaller, percent, port_name,
    port_number, ratcheted,
};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// The longest DNS label, in bytes.
pub(crate) const LABEL_LENGTH: usize = 63;

/// The longest DNS subdomain, in bytes.
pub(crate) const SUBDOMAIN_LENGTH: usize = 253;

/// A DNS-1123 subdomain, what most names are; `prefix`: the name is a generateName and may end with a dash.
#[must_use]
pub(crate) fn dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    let name = &unmasked(name, prefix);
    let mut problems = too_long(name, SUBDOMAIN_LENGTH);
    if !is_subdomain(name) {
        problems.push(shape(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    problems
}

/// A DNS-1123 label: namespaces, Services, container names.
#[must_use]
pub(crate) fn dns_label(name: &str, prefix: bool) -> Vec<String> {
    let name = &unmasked(name, prefix);
    let mut problems = too_long(name, LABEL_LENGTH);
    if is_label(name) {
        return problems;
    }
    problems.push(if is_subdomain(name) {
        "must not contain dots".to_owned()
    } else {
        shape(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            LABEL,
            &["my-name", "123-abc"],
        )
    });
    problems
}

/// A DNS-1035 label: like [`dns_label`], beginning with a letter.
#[must_use]
pub(crate) fn dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    let name = &unmasked(name, prefix);
    let mut problems = too_long(name, LABEL_LENGTH);
    if !(is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())) {
        problems.push(shape(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// `*.` and a subdomain: hosts of Ingress rules.
#[must_use]
pub(crate) fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut problems = too_long(name, SUBDOMAIN_LENGTH);
    if !name.strip_prefix("*.").is_some_and(is_subdomain) {
        problems.push(shape(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    problems
}

/// Any text that may be in a path: names of RBAC objects, and of every object beside the kind's own rule.
#[must_use]
pub(crate) fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|character| name.contains(character))
        .map(|character| format!("may not contain '{character}'"))
        .collect()
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, of any length.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bounded(text, inner, |byte| inner(byte) || byte == b'-')
}

/// Labels with dots between them, of any length.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// True if `text` is not empty, begins and ends with an `edge` and has only `inner` between.
fn bounded(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => edge(*first) && edge(*last) && bytes.iter().copied().all(inner),
        _ => false,
    }
}

/// A generateName with its last dash made a letter, since more will follow.
fn unmasked(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    match name.strip_suffix('-') {
        // The server replaces the last two bytes by one letter.
        Some(rest) if prefix && !rest.is_empty() => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            format!("{kept}a").into()
        }
        _ => name.into(),
    }
}

fn too_long(text: &str, longest: usize) -> Vec<String> {
    if text.len() > longest {
        vec![format!("must be no more than {longest} characters")]
    } else {
        Vec::new()
    }
}

/// The words for a text that does not match a pattern.
pub(crate) fn shape(what: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{what} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|one| format!("'{one}', ")).collect();
    format!(
        "{what} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_the_server_does() {
        for good in ["a", "a.b", "1-2.x", &"a".repeat(253)] {
            assert!(dns_subdomain(good, false).is_empty(), "{good}");
        }
        for bad in [
            "",
            "A",
            "a_b",
            "-a",
            "a-",
            "a.",
            ".",
            "a..b",
            "ä",
            &"a".repeat(254),
        ] {
            assert_eq!(dns_subdomain(bad, false).len(), 1, "{bad}");
        }
        assert_eq!(dns_label("a.b", false), ["must not contain dots"]);
        assert!(dns1035_label("1a", false)[0].contains("'my-name',  or 'abc-123', regex used"));
        assert_eq!(
            path_segment("a/b%c", false),
            ["may not contain '/'", "may not contain '%'"]
        );
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert!(path_segment("..", true).is_empty());
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        assert!(dns_subdomain("box-", true).is_empty());
        assert_eq!(dns_subdomain("box-", false).len(), 1);
        assert_eq!(dns_subdomain("-", true).len(), 1);
        assert!(
            dns_subdomain("ä-", true).is_empty(),
            "the letter before the dash goes with it"
        );
    }
}
