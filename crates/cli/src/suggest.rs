//! The nearest of the names that exist, for errors about one that does not.

/// `; did you mean "member1"?` for a name that is close to one of the names that exist; else nothing.
#[must_use]
pub fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, names) {
        Some(name) => format!("; did you mean {name:?}?"),
        None => String::new(),
    }
}

/// The nearest name: with the fewest letters to change, at most a third of them, or one that begins with the word.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    let scored = names.into_iter().filter_map(|name| {
        let lower = name.to_lowercase();
        let far = distance(&word, &lower);
        if far <= allowed {
            Some((far, name))
        } else if word.len() > 2 && lower.starts_with(&word) {
            Some((allowed + 1, name))
        } else {
            None
        }
    });
    scored.min().map(|(_, name)| name)
}

/// The number of letters to insert, remove, replace, or swap with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            let is_swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if is_swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_no_far_one() {
        let names = ["member1", "member2", "edge-berlin", "deployments", "m1"];
        for (word, wanted) in [
            ("mebmer1", Some("member1")),
            ("member3", Some("member1")),
            ("Member2", Some("member2")),
            ("edge", Some("edge-berlin")),
            ("deplyoment", Some("deployments")),
            ("m2", Some("m1")),
            ("pods", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), wanted, "{word}");
        }
        assert_eq!(hint("mebmer1", names), "; did you mean \"member1\"?");
        assert_eq!(hint("x9", names), "");
    }
}
