//! Words that the project does not use, each with the one to use instead: identifiers in code, phrases in messages and pages.
//!
//! A row is added in the change that removes the last use of its word; then the word cannot come back.

/// An identifier that is refused, and the better one.
type Word = (&'static str, &'static str);

/// Identifiers, as they are written. Tests count, too.
const IDENTIFIERS: &[Word] = &[
    ("Brain", "ControlLoop"),
    ("Brake", "DeletionLimiter"),
    ("Brakes", "DeletionPauses"),
    ("Buried", "evicted"),
    ("Desk", "HookClient"),
    ("Doubt", "Warning"),
    ("Doubts", "warnings"),
    ("Entity", "ResourceState"),
    ("Errand", "ApplyTask"),
    ("Fight", "DriftBackoff"),
    ("Fought", "Contended"),
    ("Guard", "Preconditions"),
    ("Hands", "Executor"),
    ("Heard", "HookResponses"),
    ("How", "RemovalMode"),
    ("Kindless", "NoSuchKind"),
    ("Miss", "ScheduleError"),
    ("Named", "NamespacedName"),
    ("NeverTravels", "NotPropagatable"),
    ("Overriding", "OverrideIndex"),
    ("PassedOver", "SkippedByFailurePolicy"),
    ("Proof", "SyncRequirement"),
    ("Recipe", "RenderSpec"),
    ("Rehearsal", "Simulation"),
    ("Rehearsed", "Simulated"),
    ("Selecting", "PolicyIndex"),
    ("Spot", "TargetState"),
    ("Story", "ScheduleTrace"),
    ("Survey", "NamespaceContents"),
    ("TEACHING", "INTERPRETER_WATCHES"),
    ("Taught", "InterpreterSnapshot"),
    ("Teaching", "Interpreter"),
    ("Told", "Answer, Reported"),
    ("Traceless", "NeverWritten"),
    ("Twin", "ClusterCounterpart"),
    ("Unanswered", "InterpretError"),
    ("Unheard", "HookRetries"),
    ("Unrest", "DriftBackoff"),
    ("Verdict", "a decision, a response"),
    ("WISHES", "FAILOVER_SETTINGS"),
    ("What", "a noun"),
    ("Where", "WatchScope"),
    ("Which", "ObjectRef"),
    ("Why", "FilterReason"),
    ("Wish", "a request, an expectation"),
    ("abroad", "cross_namespace_referrers"),
    ("brake", "limit_deletions"),
    ("brakes", "deletion_pauses"),
    ("buried", "forgotten"),
    ("bury", "evict"),
    ("by_verdict", "by_target_status"),
    ("entities", "resources"),
    ("entity", "resource"),
    ("errand", "apply_task"),
    ("fight", "drift_backoff"),
    ("foretell", "forecast"),
    ("fought", "contended"),
    ("heard", "observed"),
    ("is_heard", "is_observed"),
    ("is_said", "is_reported"),
    ("is_silent", "is_unresponsive"),
    ("is_spoiled", "has_override_error"),
    ("is_taught", "are_interpreters_listed"),
    ("judge", "evaluate, validate"),
    ("judge_all", "evaluate_all"),
    ("judge_dependent", "evaluate_dependent_places"),
    ("judge_one", "evaluate_place"),
    ("kindless", "no_such_kind"),
    ("left_behind", "stale_dependencies"),
    ("lets_go", "releases"),
    ("mend", "reconnect"),
    ("never_travels", "not_propagatable"),
    ("passed_over", "skipped_by_failure_policy"),
    ("recipe", "render_spec"),
    ("recipe_of", "render_spec_of"),
    ("rehearsal", "simulation"),
    ("rehearse", "simulate"),
    ("said", "reported"),
    ("silence", "no_response"),
    ("silent", "unresponsive"),
    ("taught", "interpretation"),
    ("taught_anew", "interpreter_changed"),
    ("taught_to", "interpretation_of"),
    ("teach", "customize"),
    ("teaching", "interpreter"),
    ("told", "reported"),
    ("tombstone", "min_resource_version"),
    ("traceless", "never_written"),
    ("travel", "propagate"),
    ("twin", "scope"),
    ("unbury", "get_or_create"),
    ("unrest", "drift_backoff"),
    ("unsaid", "unavailable"),
    ("verdict", "a decision, a response"),
];

/// Phrases in lower case, found as whole words whatever their case.
const PHRASES: &[Word] = &[
    ("already stands on", "already exists on"),
    ("begun anew", "restarted"),
    ("breaks off", "is cut off"),
    ("chosen afresh", "rescheduled"),
    ("connecting anew", "reconnecting"),
    ("did not answer for", "failed: <error of the API server>"),
    ("divided anew", "divided again"),
    ("ever more rarely", "with back-off"),
    ("exclude each other", "are mutually exclusive"),
    ("goes along", "is propagated with"),
    ("goes on being", "stays"),
    ("holds its copy", "Applied on 3/3 clusters"),
    ("how it fares", "its status"),
    ("is no json", "is not JSON, is not a JSON pointer"),
    ("is not ours", "is not managed by this hub"),
    ("is where it is", "is present on every target cluster"),
    ("it is ours", "it is managed by this hub"),
    ("judge what is written", "run the admission webhook"),
    ("left behind", "orphaned"),
    ("let go", "released"),
    ("made anew", "created again"),
    ("means this machine", "is a loopback address"),
    ("merely moved away", "was evicted"),
    ("namespaces hold it", "Present in 1/1 namespaces"),
    ("no valid json", "invalid JSON"),
    ("no valid yaml", "invalid YAML"),
    ("nobody is asked", "none is called"),
    ("nobody needs it there", "no longer scheduled to member1"),
    ("nothing travels", "No propagated resources found"),
    ("other policies hold", "another policy has claimed it"),
    ("our marks", "ownership metadata"),
    ("passed over", "skipped by failurePolicy"),
    ("propagates what it selects", "Matched 4 resources"),
    ("put right", "written again"),
    ("refers to anything", "No propagated resources found"),
    ("scheduled anew", "scheduled again"),
    ("stands already", "already exists"),
    ("there are no clusters of", "cluster \"nope\" not found"),
    ("tried again", "retrying in 4s"),
    ("unjudged", "not validated"),
    ("went along", "was propagated with"),
    ("what stands there", "the object on the member"),
    ("whoever has no answer", "a failing interpreter"),
    ("without it the current one", "(default: current context)"),
];

/// Sources whose strings are those that earlier releases stored, to be read.
pub(crate) const STORED: &[&str] = &["crates/core/src/messages.rs"];

/// The files whose words count: Rust sources, but for this table and the embedded server, which speaks as a kube-apiserver
/// does; and pages, but for decisions, which are history, and the map, whose words are those of the sources.
pub(crate) fn applies(path: &str) -> bool {
    if path.ends_with(".rs") {
        return path != "hack/src/words.rs" && !path.starts_with("crates/apiserver/");
    }
    let is_page = path.starts_with("docs/") && path.ends_with(".md");
    path == "README.md" || is_page && !path.starts_with("docs/decisions/") && path != "docs/map.md"
}

/// The refused identifiers in code without comments and strings: where, and what to say of each.
pub(crate) fn identifiers(code: &str) -> Vec<(usize, String)> {
    found(code, IDENTIFIERS)
}

/// The same for phrases in a text.
pub(crate) fn phrases(text: &str) -> Vec<(usize, String)> {
    // It is as long as the text, so that positions stay.
    let one_line = text.to_ascii_lowercase().replace('\n', " ");
    found(&one_line, PHRASES)
}

fn found(text: &str, words: &[Word]) -> Vec<(usize, String)> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (word, better) in words {
        for (at, _) in text.match_indices(word) {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            if !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name) {
                found.push((at, format!("{word:?}: use {better:?}")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_once_in_order_beside_a_better_one() {
        for table in [IDENTIFIERS, PHRASES] {
            assert!(
                table.is_sorted_by(|one, other| one.0 < other.0),
                "sorted, each word once"
            );
            for (word, better) in table {
                assert!(!better.is_empty() && !better.contains(word), "{word}");
            }
        }
        for (phrase, _) in PHRASES {
            assert_eq!(*phrase, phrase.to_ascii_lowercase());
        }
    }

    #[test]
    fn whole_words_are_found_where_they_are() {
        let words =
            |found: Vec<(usize, String)>| -> Vec<usize> { found.into_iter().map(|(at, _)| at).collect() };
        assert_eq!(
            words(identifiers("let x = Doubt; DoubtX; a_Doubt; Doubt::new()")),
            [8, 32]
        );
        assert_eq!(words(phrases("It is\nnot OURS, and is not ours_too.")), [3]);
        assert_eq!(words(phrases("this not ours")), [0_usize; 0]);
    }

    #[test]
    fn the_files_whose_words_count() {
        for (path, counts) in [
            ("crates/core/src/a.rs", true),
            ("crates/core/tests/a.rs", true),
            ("crates/apiserver/src/a.rs", false),
            ("hack/src/words.rs", false),
            ("docs/guides/a.md", true),
            ("docs/decisions/0001-a.md", false),
            ("docs/map.md", false),
            ("README.md", true),
            ("CHANGELOG.md", false),
        ] {
            assert_eq!(applies(path), counts, "{path}");
        }
    }
}
