//! The list of differences that have a reason.

use anyhow::{Context as _, Result, ensure};

/// A line of the list: `lane release theme/label reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The lane that answers differently.
    pub lane: String,
    /// The minor release of kubectl, `1.20`, or `*`: each that has a golden with this command.
    pub client: String,
    /// The theme.
    pub theme: String,
    /// The label of the command.
    pub label: String,
    /// The reason of the difference.
    pub reason: String,
}

impl Difference {
    pub(super) fn is_of(&self, client: &str, theme: &str) -> bool {
        self.theme == theme && (self.client == "*" || self.client == client)
    }
}

/// Reads the list: one difference a line, `#` begins a comment.
///
/// # Errors
/// When a line is none, or has no reason.
pub fn differences(text: &str) -> Result<Vec<Difference>> {
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| read(line).with_context(|| line.to_owned()))
        .collect()
}

fn read(line: &str) -> Result<Difference> {
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default().trim().to_owned();
    let (lane, client, step, reason) = (word(), word(), word(), word());
    let (theme, label) = step.split_once('/').context("THEME/LABEL is missing")?;
    ensure!(!reason.is_empty(), "the reason is missing");
    Ok(Difference {
        lane,
        client,
        theme: theme.to_owned(),
        label: label.to_owned(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_one_difference_a_line_with_its_reason() {
        let list = differences("# why\n\nreal * get/wide no such column\n").unwrap();
        assert_eq!(list[0].label, "wide");
        assert_eq!(list[0].reason, "no such column");
        assert!(list[0].is_of("1.32", "get") && !list[0].is_of("1.32", "apply"));
        assert!(differences("real * get/wide\n").is_err());
        assert!(differences("real * get why\n").is_err());
    }
}
