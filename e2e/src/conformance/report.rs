//! The known differences, and the page that lists them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Outcome, RECORDINGS, Recording, Scenario};

/// The reason of a difference that has not been explained.
const UNEXPLAINED: &str = "not examined";

/// A line of the list of known differences: `scenario step reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Name of the scenario.
    pub scenario: String,
    /// Ordinal of the step, such as `07`.
    pub step: String,
    /// The reason of the difference.
    pub reason: String,
}

/// Reads the list: one difference a line, `#` begins a comment.
#[must_use]
pub fn known(text: &str) -> Vec<Known> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default().trim().to_owned();
            Known {
                scenario: word(),
                step: word(),
                reason: word(),
            }
        })
        .collect()
}

/// True if a scenario differs in exactly what is known to.
#[must_use]
pub fn is_as_known(known: &[Known], (scenario, outcome): &(&Scenario, Outcome)) -> bool {
    let known = known.iter().filter(|known| known.scenario == scenario.name);
    let known: BTreeSet<&str> = known.map(|known| known.step.as_str()).collect();
    let found: BTreeSet<&str> = outcome.differences.keys().map(|step| number(step)).collect();
    known == found
}

/// Compares what differs with what is known to: what is new, and what is known and no longer differs.
#[must_use]
pub fn against(known: &[Known], played: &[(&Scenario, Outcome)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (scenario, outcome) in played {
        for (step, why) in &outcome.differences {
            if !known
                .iter()
                .any(|known| known.scenario == scenario.name && number(step) == known.step)
            {
                complaints.push(format!("{} {step}: {why}", scenario.name));
            }
        }
        for known in known.iter().filter(|known| known.scenario == scenario.name) {
            if !outcome.differences.keys().any(|step| number(step) == known.step) {
                complaints.push(format!(
                    "{} {}: is identical now; take it off the list of known differences",
                    scenario.name, known.step
                ));
            }
        }
    }
    for known in known {
        if !played.iter().any(|(scenario, _)| scenario.name == known.scenario) {
            complaints.push(format!(
                "{} {}: there is no such scenario",
                known.scenario, known.step
            ));
        }
    }
    complaints
}

fn number(step: &str) -> &str {
    step.split('-').next().unwrap_or_default()
}

/// Identical steps and all steps.
#[must_use]
pub fn totals<'a, 'b: 'a>(played: impl IntoIterator<Item = &'a (&'b Scenario, Outcome)>) -> (usize, usize) {
    played.into_iter().fold((0, 0), |(same, all), (_, outcome)| {
        (
            same + outcome.steps - outcome.differences.len(),
            all + outcome.steps,
        )
    })
}

/// The list as it is now: the reasons that are known stay, what is identical goes, what is new has no reason yet.
#[must_use]
pub fn differences(text: &str, played: &[(&Scenario, Outcome)]) -> String {
    let known = known(text);
    let mut list: String = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    for (scenario, outcome) in played {
        for step in outcome.differences.keys().map(|step| number(step)) {
            let same = known
                .iter()
                .find(|known| known.scenario == scenario.name && known.step == step);
            let reason = same.map_or(UNEXPLAINED, |known| &known.reason);
            list.push_str(&format!("{} {step} {reason}\n", scenario.name));
        }
    }
    list
}

/// The scenarios of one recording.
#[must_use]
pub fn of<'a, 'b>(
    recording: &Recording,
    played: &'a [(&'b Scenario, Outcome)],
) -> Vec<&'a (&'b Scenario, Outcome)> {
    played
        .iter()
        .filter(|(scenario, _)| scenario.recording == recording.dir)
        .collect()
}

/// Complains of a recording of which fewer exchanges are identical than there once were.
#[must_use]
pub fn below(played: &[(&Scenario, Outcome)]) -> Vec<String> {
    let complaint = |recording: &Recording| {
        let (same, all) = totals(of(recording, played));
        let (per_mille, wanted) = (per_mille(same, all), recording.at_least_per_mille);
        (per_mille < wanted).then(|| {
            format!(
                "{}: {same} of {all} exchanges are identical, {per_mille} ‰, fewer than {wanted} ‰",
                recording.dir
            )
        })
    };
    RECORDINGS.iter().filter_map(complaint).collect()
}

fn per_mille(same: usize, all: usize) -> usize {
    same * 1000 / all.max(1)
}

/// The page `docs/conformance.md`.
#[must_use]
pub fn page(known: &[Known], played: &[(&Scenario, Outcome)]) -> String {
    let mut page = "# Conformance of the embedded API server\n\n\
         Generated by `UPDATE_GOLDEN=1 cargo test -p entourage-e2e --test e2e conformance`; the same test fails when this page is stale.\n\n\
         Scenarios recorded from a kube-apiserver 1.36.2 are played against an embedded cluster:\n\n".to_owned();
    for recording in &RECORDINGS {
        let played = of(recording, played);
        let scenarios = played.len();
        let (same, all) = totals(played);
        let per_mille = per_mille(same, all);
        page.push_str(&format!(
            "- {}, {scenarios} scenarios: **{same} of {all} exchanges are identical ({}.{} %)**\n",
            recording.title,
            per_mille / 10,
            per_mille % 10
        ));
    }
    page.push_str(&format!(
        "\nValues that differ from run to run (uids, times, resourceVersions, tokens) are compared by shape, identity and order. \
         Status, recorded headers and warnings are always compared; of the body, what the recording keeps: {}.\n",
        kept(played),
    ));
    for recording in &RECORDINGS {
        page.push_str(&format!("\n## {}\n\n", recording.title));
        page.push_str(&scenarios(&of(recording, played)));
    }
    page.push_str("\n## What differs, and why\n\n| scenario | steps | reason |\n|---|---|---|\n");
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for known in known {
        let steps = reasons.entry((&known.scenario, &known.reason)).or_default();
        steps.push(&known.step);
    }
    for ((scenario, reason), steps) in &reasons {
        page.push_str(&format!("| {scenario} | {} | {reason} |\n", steps.join(", ")));
    }
    page
}

/// The table of scenarios, by area.
fn scenarios(played: &[&(&Scenario, Outcome)]) -> String {
    let mut table = "| scenario | about | identical |\n|---|---|---|\n".to_owned();
    let mut areas: BTreeMap<&str, Vec<&(&Scenario, Outcome)>> = BTreeMap::new();
    for one in played {
        areas.entry(&one.0.area).or_default().push(one);
    }
    for (area, scenarios) in &areas {
        table.push_str(&format!("| **{area}** | | |\n"));
        for (scenario, outcome) in scenarios {
            let differ = outcome.differences.len();
            let how = if differ == 0 {
                format!("all {}", outcome.steps)
            } else {
                format!("{} of {}", outcome.steps - differ, outcome.steps)
            };
            table.push_str(&format!("| {} | {} | {how} |\n", scenario.name, scenario.title));
        }
    }
    table
}

/// The number of bodies by the way they are kept.
fn kept(played: &[(&Scenario, Outcome)]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for how in played.iter().flat_map(|(scenario, _)| scenario.kept()) {
        *counts.entry(how).or_default() += 1;
    }
    let reported: Vec<String> = KEPT
        .iter()
        .map(|(how, words)| format!("{} {words}", counts.remove(how).unwrap_or_default()))
        .collect();
    let others = counts
        .into_iter()
        .map(|(how, count)| format!("{count} in another way ({how})"));
    reported.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// The ways in which the recording keeps a body.
const KEPT: [(&str, &str); 5] = [
    ("whole", "times all of it"),
    ("names", "times the names of a list's items"),
    ("namespaced-names", "times those with their namespaces"),
    ("subset", "times a part, which must be there"),
    ("shape", "times a summary, which is not compared"),
];

#[cfg(test)]
mod tests {
    use super::{Known, differences, known};
    use crate::conformance::{Outcome, Scenario};

    #[test]
    fn the_list_is_one_difference_a_line() {
        let list = known("# why\n\ntable 03 ages are reported in another form\n");
        let wanted = Known {
            scenario: "table".to_owned(),
            step: "03".to_owned(),
            reason: "ages are reported in another form".to_owned(),
        };
        assert_eq!(list, [wanted]);
    }

    #[test]
    fn the_list_keeps_reasons_and_drops_what_is_identical() {
        let scenario: Scenario = serde_json::from_str(
            r#"{"scenario": "table", "area": "lists", "title": "Tables", "exchanges": []}"#,
        )
        .unwrap();
        let outcome = Outcome {
            steps: 3,
            differences: [("03-ages", "why"), ("07-rows", "why")]
                .map(|(step, why)| (step.to_owned(), why.to_owned()))
                .into(),
        };
        let text = "# why\ntable 03 ages are rounded\ntable 05 is identical by now\n";
        assert_eq!(
            differences(text, &[(&scenario, outcome)]),
            "# why\ntable 03 ages are rounded\ntable 07 not examined\n"
        );
    }
}
