//! Sets of indexes as Jobs write them: `0-2,5`.

use std::collections::BTreeSet;

pub(super) type Indexes = BTreeSet<i64>;

/// The most indexes that are read: a Job has no more.
const MOST: i64 = 100_000;

/// Reads a set; what is no number is left out.
pub(super) fn parse(text: &str) -> Indexes {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: i64 = first.trim().parse().ok()?;
        let last: i64 = last.trim().parse().ok()?;
        Some(first..=last.min(first + MOST))
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Writes a set.
pub(super) fn written(indexes: &Indexes) -> String {
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let part = |(first, last): &(i64, i64)| match last - first {
        0 => first.to_string(),
        // Two are a list.
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        for text in ["", "0", "0,1", "0-2", "0-2,5,7,8", "3,5-9"] {
            assert_eq!(written(&parse(text)), text);
        }
        assert_eq!(parse("x,2"), Indexes::from([2]));
    }
}
