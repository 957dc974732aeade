//! Unified diffs, cut into the same pieces as the real server's: by longest matching blocks.

use std::{collections::BTreeMap, fmt::Write as _};

/// Lines around a change.
const CONTEXT: usize = 3;

/// Texts longer than this are not compared: the answer only explains a refusal.
const MOST_LINES: usize = 3000;

/// From this length on, lines that are in more than one of a hundred places do not begin a match.
const POPULAR_FROM: usize = 200;

/// A run of equal lines: where it begins in the old text and in the new one, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    old: usize,
    new: usize,
    len: usize,
}

/// The hunks of a unified diff, without file names. Empty for equal texts. Cost: lines² at worst, lines are limited.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > MOST_LINES || new.len() > MOST_LINES {
        return String::new();
    }
    let mut out = String::new();
    for hunk in hunks(&changes(&old, &new)) {
        write_hunk(&hunk, &old, &new, &mut out);
    }
    out
}

/// A replaced range: old lines, new lines.
type Change = ((usize, usize), (usize, usize));

fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut blocks = Vec::new();
    let index = index(new);
    let mut open = vec![((0, old.len()), (0, new.len()))];
    while let Some((a, b)) = open.pop() {
        let block = longest(old, new, &index, a, b);
        if block.len > 0 {
            blocks.push(block);
            open.push(((a.0, block.old), (b.0, block.new)));
            open.push(((block.old + block.len, a.1), (block.new + block.len, b.1)));
        }
    }
    blocks.sort_by_key(|block| (block.old, block.new));
    blocks.push(Block {
        old: old.len(),
        new: new.len(),
        len: 0,
    });
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    for block in blocks {
        if i < block.old || j < block.new {
            found.push(((i, block.old), (j, block.new)));
        }
        (i, j) = (block.old + block.len, block.new + block.len);
    }
    found
}

/// The positions of each line in the new text, except for lines that are frequent.
fn index<'a>(new: &[&'a str]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut index: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in new.iter().enumerate() {
        index.entry(line).or_default().push(at);
    }
    if new.len() >= POPULAR_FROM {
        let most = new.len() / 100 + 1;
        index.retain(|_, places| places.len() <= most);
    }
    index
}

fn longest(
    old: &[&str],
    new: &[&str],
    index: &BTreeMap<&str, Vec<usize>>,
    a: (usize, usize),
    b: (usize, usize),
) -> Block {
    let mut best = Block {
        old: a.0,
        new: b.0,
        len: 0,
    };
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for (i, line) in old.iter().enumerate().take(a.1).skip(a.0) {
        let mut next = BTreeMap::new();
        for &j in index.get(line).map_or(&[][..], Vec::as_slice) {
            if j < b.0 {
                continue;
            }
            if j >= b.1 {
                break;
            }
            let len = 1 + j
                .checked_sub(1)
                .and_then(|before| lengths.get(&before))
                .copied()
                .unwrap_or(0);
            next.insert(j, len);
            if len > best.len {
                best = Block {
                    old: i + 1 - len,
                    new: j + 1 - len,
                    len,
                };
            }
        }
        lengths = next;
    }
    while best.old > a.0 && best.new > b.0 && old[best.old - 1] == new[best.new - 1] {
        best = Block {
            old: best.old - 1,
            new: best.new - 1,
            len: best.len + 1,
        };
    }
    while best.old + best.len < a.1
        && best.new + best.len < b.1
        && old[best.old + best.len] == new[best.new + best.len]
    {
        best.len += 1;
    }
    best
}

/// Changes that are near each other stand in one hunk.
fn hunks(changes: &[Change]) -> Vec<Vec<Change>> {
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        match hunks.last_mut() {
            Some(hunk)
                if hunk
                    .last()
                    .is_some_and(|last| change.0.0 - last.0.1 <= 2 * CONTEXT) =>
            {
                hunk.push(*change);
            }
            _ => hunks.push(vec![*change]),
        }
    }
    hunks
}

fn write_hunk(hunk: &[Change], old: &[&str], new: &[&str], out: &mut String) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let before = CONTEXT.min(first.0.0).min(first.1.0);
    let after = CONTEXT.min(old.len() - last.0.1);
    let range = |from: usize, to: usize| match to - from {
        1 => format!("{}", from + 1),
        0 => format!("{from},0"),
        len => format!("{},{len}", from + 1),
    };
    let _ = writeln!(
        out,
        "@@ -{} +{} @@",
        range(first.0.0 - before, last.0.1 + after),
        range(first.1.0 - before, last.1.1 + after)
    );
    let mut at = first.0.0 - before;
    let mut put = |mark: char, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(out, "{mark}{line}");
        }
    };
    for (a, b) in hunk {
        put(' ', &old[at..a.0]);
        put('-', &old[a.0..a.1]);
        put('+', &new[b.0..b.1]);
        at = a.1;
    }
    put(' ', &old[at..last.0.1 + after]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{changes, unified};

    #[test]
    fn a_change_stands_between_three_lines_on_each_side() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        assert_eq!(
            unified(old, "a\nb\nc\nd\nX\nf\ng\nh"),
            "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+X\n f\n g\n h\n"
        );
        assert_eq!(unified(old, old), "");
    }

    proptest! {
        #[test]
        fn changes_applied_to_the_old_text_make_the_new_one(
            old in prop::collection::vec("[abc]", 0..40), new in prop::collection::vec("[abc]", 0..40),
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let mut made: Vec<&str> = Vec::new();
            let mut at = 0;
            for (a, b) in changes(&old, &new) {
                made.extend(&old[at..a.0]);
                made.extend(&new[b.0..b.1]);
                at = a.1;
            }
            made.extend(&old[at..]);
            prop_assert_eq!(made, new);
        }
    }
}
