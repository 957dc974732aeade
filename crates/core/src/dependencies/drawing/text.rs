//! The drawing as a tree of lines.

use std::collections::BTreeSet;

use super::{Drawing, places};
use crate::object::ResourceId;

/// A tree for each object without referrers; an object with several referrers is drawn below each of them. A cycle is not
/// followed twice.
#[must_use]
pub fn draw(drawing: &Drawing) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut drawn = BTreeSet::new();
    let needed: BTreeSet<&ResourceId> = drawing.edges.values().flat_map(|all| all.keys()).collect();
    let roots = drawing.nodes.keys().filter(|id| !needed.contains(id));
    for root in roots {
        tree(drawing, root, &mut drawn, &mut rows);
    }
    // The remaining objects refer to each other in cycles.
    for id in drawing.nodes.keys() {
        if !drawn.contains(id) {
            tree(drawing, id, &mut drawn, &mut rows);
        }
    }
    let width = rows
        .iter()
        .map(|(left, _)| left.chars().count())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for (left, right) in &rows {
        let pad = width - left.chars().count();
        let line = format!("{left}{:pad$}  {right}", "");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn tree<'a>(
    drawing: &'a Drawing,
    root: &'a ResourceId,
    drawn: &mut BTreeSet<&'a ResourceId>,
    rows: &mut Vec<(String, String)>,
) {
    let mut path = vec![root];
    drawn.insert(root);
    rows.push((plain(root), state(drawing, root, false)));
    below(drawing, "", &mut path, drawn, rows);
}

fn below<'a>(
    drawing: &'a Drawing,
    indent: &str,
    path: &mut Vec<&'a ResourceId>,
    drawn: &mut BTreeSet<&'a ResourceId>,
    rows: &mut Vec<(String, String)>,
) {
    let Some(needed) = path.last().and_then(|id| drawing.edges.get(*id)) else {
        return;
    };
    for (number, (id, optional)) in needed.iter().enumerate() {
        let is_last = number + 1 == needed.len();
        let (branch, deeper) = if is_last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let circle = path.contains(&id);
        let mut right = state(drawing, id, *optional);
        if circle {
            right = format!(
                "refers back, see above{}{right}",
                if right.is_empty() { "" } else { "; " }
            );
        }
        rows.push((format!("{indent}{branch}{}", plain(id)), right));
        drawn.insert(id);
        if !circle {
            path.push(id);
            below(drawing, &format!("{indent}{deeper}"), path, drawn, rows);
            path.pop();
        }
    }
}

/// The clusters of an object, or that it is missing.
fn state(drawing: &Drawing, id: &ResourceId, optional: bool) -> String {
    let Some(node) = drawing.nodes.get(id) else {
        return String::new();
    };
    let mut words = Vec::new();
    if optional {
        words.push("optional".to_owned());
    }
    if !node.exists {
        words.push("missing".to_owned());
    }
    let places = places(node);
    if !places.is_empty() {
        words.push(places);
    } else if node.exists {
        words.push("goes nowhere".to_owned());
    }
    words.join("; ")
}

/// A name on one line.
fn plain(id: &ResourceId) -> String {
    id.to_string()
        .chars()
        .map(|letter| if letter.is_control() { '\u{fffd}' } else { letter })
        .collect()
}
