//! Names of what a test makes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A name of at most 40 characters for what a test makes: two tests whose names begin alike have different ones.
pub(super) fn short(name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let begin: String = name.replace('_', "-").chars().take(34).collect();
    format!(
        "{}-{:05x}",
        begin.trim_end_matches('-'),
        hasher.finish() & 0xf_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_whose_names_begin_alike_have_namespaces_of_their_own() {
        let one = "errors_before_and_after_the_effect_change_nothing";
        let other = format!("{one}_for_distributions");
        assert_ne!(short(one), short(&other));
        assert_eq!(short(one), short(one));
        assert!(short(&other).len() <= 40);
    }
}
