//! A unified diff of two texts.

/// The number of unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// The number of comparisons above which the changed middle is shown as one block.
const MOST: usize = 4_000_000;

/// One line of both, of the first or of the second text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The hunks of a unified diff, without the two header lines; empty if the texts are equal.
///
/// Cost: O(lines² of the differing part), bounded.
#[must_use]
pub fn unified(before: &str, after: &str) -> String {
    let (one, two): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines = compared(&one, &two);
    let mut text = String::new();
    let mut at = 0;
    while let Some(change) = lines[at..].iter().position(|line| !matches!(line, Line::Same(_))) {
        let begin = (at + change).saturating_sub(CONTEXT).max(at);
        let end = end_of_hunk(&lines, at + change);
        let before_lines =
            |part: &[Line<'_>]| part.iter().filter(|line| !matches!(line, Line::New(_))).count();
        let after_lines =
            |part: &[Line<'_>]| part.iter().filter(|line| !matches!(line, Line::Gone(_))).count();
        let hunk = &lines[begin..end];
        text.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(before_lines(&lines[..begin]), before_lines(hunk)),
            range(after_lines(&lines[..begin]), after_lines(hunk)),
        ));
        for line in hunk {
            let (mark, line) = match line {
                Line::Same(line) => (' ', line),
                Line::Gone(line) => ('-', line),
                Line::New(line) => ('+', line),
            };
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
        at = end;
    }
    text
}

/// `first,count` as diff writes it: an empty range is named by the line before it.
fn range(before: usize, count: usize) -> String {
    match count {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{count}", before + 1),
    }
}

/// The end of the hunk that has a change at `at`: changes with few lines between them share one.
fn end_of_hunk(lines: &[Line<'_>], at: usize) -> usize {
    let mut last = at;
    for (number, line) in lines.iter().enumerate().skip(at) {
        if !matches!(line, Line::Same(_)) {
            last = number;
        } else if number > last + 2 * CONTEXT {
            break;
        }
    }
    (last + 1 + CONTEXT).min(lines.len())
}

fn compared<'a>(one: &[&'a str], two: &[&'a str]) -> Vec<Line<'a>> {
    let head = one.iter().zip(two).take_while(|(a, b)| a == b).count();
    let rest = (&one[head..], &two[head..]);
    let tail = rest
        .0
        .iter()
        .rev()
        .zip(rest.1.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (a, b) = (&rest.0[..rest.0.len() - tail], &rest.1[..rest.1.len() - tail]);
    let mut lines: Vec<Line<'a>> = one[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(a, b));
    lines.extend(one[one.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// Compares by the longest common subsequence.
fn middle<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<Line<'a>> {
    if a.len().saturating_mul(b.len()) > MOST {
        let gone = a.iter().map(|line| Line::Gone(line));
        return gone.chain(b.iter().map(|line| Line::New(line))).collect();
    }
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(a.len() + b.len());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push(Line::Same(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            lines.push(Line::Gone(a[i]));
            i += 1;
        } else {
            lines.push(Line::New(b[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn a_changed_line_is_shown_with_its_surroundings() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        assert_eq!(
            unified(before, after),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
    }

    #[test]
    fn a_new_text_and_one_that_goes_are_whole() {
        assert_eq!(unified("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own() {
        let before: String = (0..30).map(|n| format!("{n}\n")).collect();
        let after = before.replace("2\n3\n", "2\nx\n3\n").replace("\n27\n", "\n");
        let diff = unified(&before, &after);
        assert_eq!(diff.matches("@@ ").count(), 2 * 2 - 2, "{diff}");
        assert!(diff.contains("+x") && diff.contains("-27"), "{diff}");
    }
}
