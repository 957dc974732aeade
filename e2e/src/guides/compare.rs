//! Compares what a page shows with what a command prints.

/// Stands for any text in a line, and for any lines on a line of its own.
const ANY: &str = "…";

/// True if the lines are what is shown. Cost: the product of the two, in the worst case.
pub(super) fn is_shown(shown: &[String], printed: &str) -> bool {
    let shown: Vec<String> = lines(shown.iter().map(String::as_str));
    let printed: Vec<String> = lines(printed.lines());
    let is_any = |line: &String| line == ANY;
    is_match(&shown, &printed, &is_any, &|shown, printed| {
        let parts: Vec<char> = shown.chars().collect();
        let text: Vec<char> = printed.chars().collect();
        is_match(&parts, &text, &|part| ANY.contains(*part), &|a, b| a == b)
    })
}

/// Without runs of white space, and without empty lines at the end.
fn lines<'a>(of: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = of
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// True if the pattern, in which some items stand for any number of others, is what is there.
fn is_match<T>(
    pattern: &[T],
    found: &[T],
    is_any: &impl Fn(&T) -> bool,
    is_same: &impl Fn(&T, &T) -> bool,
) -> bool {
    // `fits[n]`: what was read of the pattern so far matches the first n that were found.
    let mut fits = vec![false; found.len() + 1];
    fits[0] = true;
    for part in pattern {
        let mut next = vec![false; found.len() + 1];
        if is_any(part) {
            let first = fits.iter().position(|fit| *fit).unwrap_or(fits.len());
            next[first.min(found.len() + 1)..].fill(true);
        } else {
            for (n, each) in found.iter().enumerate() {
                next[n + 1] = fits[n] && is_same(part, each);
            }
        }
        fits = next;
    }
    fits[found.len()]
}

#[cfg(test)]
mod tests {
    use super::is_shown;

    #[test]
    fn what_varies_is_left_open_and_all_else_counts() {
        for (shown, printed, same) in [
            ("a   b", "a b\n", true),
            ("a b", "a c\n", false),
            ("a … c", "a b b c\n", true),
            ("a …", "b a x\n", false),
            ("a\n…\nd", "a\nb\nc\nd\n", true),
            ("a\n…\nd", "a\nd\n\n", true),
            ("a\n…", "b\n", false),
            ("…", "", true),
            ("a", "a\nb\n", false),
            ("a\nb", "a\n", false),
            ("", "", true),
            ("…s True", "4s  True", true),
        ] {
            let lines: Vec<String> = shown.lines().map(str::to_owned).collect();
            assert_eq!(is_shown(&lines, printed), same, "{shown:?} {printed:?}");
        }
    }
}
