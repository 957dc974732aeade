//! The permitted dependencies between the top-level modules of a crate: floors, lowest first, and exceptions, whose number only falls.
//!
//! `hack/arrows/<crate>.txt` has one line per module in the order of the floors, and below a module, as `-> name`, each
//! module above it that it still names. `lib` is what stands in `lib.rs` itself. What counts as naming: [`crate::names`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::names::{Graph, graph};
use crate::tree;

/// The number of exceptions (arrows back up) of all lists. At 0 there is no cycle between modules.
///
/// Lower it in the change that removes exceptions, so that none is added later. Raising it needs a decision, as any change
/// of the architecture does (ADR 0009).
const EXCEPTIONS: usize = 0;

/// The list of one crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Floors {
    /// The modules, lowest floor first.
    pub(crate) order: Vec<String>,
    /// The headings: the first module below each comment that has a line to itself, and that comment.
    pub(crate) groups: BTreeMap<String, String>,
    /// The exceptions, which are arrows back up: from, to.
    exceptions: Vec<(String, String)>,
}

/// Compares every crate under `crates/` with its list. Returns the violations, and a summary with the numbers of modules and
/// exceptions.
pub(crate) fn check(root: &Path) -> Result<(Vec<String>, String)> {
    let (graphs, lists) = (graphs(root)?, lists(root)?);
    let mut broken = Vec::new();
    for name in lists.keys().filter(|name| !graphs.contains_key(*name)) {
        broken.push(format!("there is no crate {name}: remove {}", list_of(name)));
    }
    for (name, graph) in &graphs {
        match lists.get(name) {
            Some(floors) => broken.extend(compare(name, graph, floors)),
            None => broken.push(format!(
                "crate {name} has no list: write {} with its modules, lowest floor first (cargo xtask fences --print)",
                list_of(name)
            )),
        }
    }
    let exceptions = lists.values().map(|floors| floors.exceptions.len()).sum();
    broken.extend(count(exceptions, EXCEPTIONS));
    let modules: usize = graphs.values().map(|graph| graph.arrows.len()).sum();
    Ok((broken, format!("{modules} modules, {exceptions} exceptions")))
}

/// Every crate's modules in the order of its list, each with the modules it names; `^` marks an arrow back up.
pub(crate) fn print(root: &Path) -> Result<String> {
    let (graphs, mut lists) = (graphs(root)?, lists(root)?);
    let mut text = String::new();
    for (name, graph) in &graphs {
        let mut order = lists.remove(name).unwrap_or_default().order;
        order.retain(|module| graph.arrows.contains_key(module));
        let unlisted = graph.arrows.keys().filter(|m| !order.contains(m));
        order.extend(unlisted.cloned().collect::<Vec<_>>());
        let floor = |module: &str| order.iter().position(|m| m == module);
        text += &format!("{name}\n");
        for module in &order {
            let mut names: Vec<&str> = graph.arrows[module].keys().map(String::as_str).collect();
            names.sort_by_key(|to| floor(to));
            let mut line = format!("  {module:<20}");
            for to in names {
                let mark = if floor(to) > floor(module) { "^" } else { "" };
                line += &format!(" {mark}{to}");
            }
            text += &format!("{}\n", line.trim_end());
        }
    }
    Ok(text)
}

fn list_of(name: &str) -> String {
    format!("hack/arrows/{name}.txt")
}

/// Crate → its list.
pub(crate) fn lists(root: &Path) -> Result<BTreeMap<String, Floors>> {
    let dir = root.join("hack/arrows");
    let mut lists = BTreeMap::new();
    for file in tree::files(&dir)? {
        let name = file
            .strip_suffix(".txt")
            .with_context(|| format!("hack/arrows/{file} is no list"))?;
        let floors = floors(&fs::read_to_string(dir.join(&file))?).with_context(|| list_of(name))?;
        lists.insert(name.to_owned(), floors);
    }
    Ok(lists)
}

/// The graph of every crate: of each folder under `crates/` that has a `src`.
fn graphs(root: &Path) -> Result<BTreeMap<String, Graph>> {
    let dir = root.join("crates");
    let mut sources: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in tree::files(&dir)? {
        if let Some((name, file)) = path.split_once("/src/").filter(|(_, file)| file.ends_with(".rs")) {
            let text = fs::read_to_string(dir.join(&path))?;
            sources
                .entry(name.to_owned())
                .or_default()
                .insert(file.to_owned(), text);
        }
    }
    let graphs = sources.iter().map(|(name, files)| {
        let graph = graph(&format!("crates/{name}/src"), files);
        (name.clone(), graph)
    });
    Ok(graphs.collect())
}

// === the list ===

/// Reads a list. `#` begins a comment; the one in the first line is about the list, others with a line to themselves are
/// headings.
pub(crate) fn floors(text: &str) -> Result<Floors> {
    let mut floors = Floors::default();
    let mut heading = None;
    for (n, line) in text.lines().enumerate() {
        if let Some(comment) = line.strip_prefix('#').filter(|_| n > 0) {
            heading = Some(comment.trim().to_owned());
        }
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), floors.order.last()) {
            ([], _) => {}
            (["->", to], Some(from)) => floors.exceptions.push((from.clone(), (*to).to_owned())),
            ([module], _) if *module != "->" => {
                floors.order.push((*module).to_owned());
                let group = heading.take().map(|heading| ((*module).to_owned(), heading));
                floors.groups.extend(group);
            }
            _ => bail!("line {}: neither a module nor `-> module` below one", n + 1),
        }
    }
    Ok(floors)
}

/// The differences between the crate `name` and its list.
fn compare(name: &str, graph: &Graph, floors: &Floors) -> Vec<String> {
    let list = list_of(name);
    let mut broken = Vec::new();
    for module in graph.arrows.keys().filter(|m| !floors.order.contains(m)) {
        broken.push(format!(
            "crate {name}: module {module} is not in {list}: add it on its floor"
        ));
    }
    let mut seen = BTreeSet::new();
    for module in &floors.order {
        if !seen.insert(module) {
            broken.push(format!(
                "crate {name}: {module} stands twice in {list}: remove one line"
            ));
        } else if !graph.arrows.contains_key(module) {
            broken.push(format!(
                "crate {name}: there is no module {module}: remove it from {list}"
            ));
        }
    }
    let floor = |module: &String| floors.order.iter().position(|m| m == module);
    for (from, names) in &graph.arrows {
        for (to, places) in names {
            let (Some(below), Some(above)) = (floor(from), floor(to)) else {
                continue;
            };
            if below < above && !floors.exceptions.contains(&(from.clone(), to.clone())) {
                let more = match places.len() {
                    1 => String::new(),
                    n => format!(" and {} more", n - 1),
                };
                broken.push(format!(
                    "crate {name}: {from} -> {to} at {}{more}: {from} stands below {to} in {list}; move what it needs to a \
                     module below both, or have {to} pass it in",
                    places[0]
                ));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (from, to) in &floors.exceptions {
        let exists = graph.arrows.get(from).is_some_and(|names| names.contains_key(to));
        let what = if !seen.insert((from, to)) {
            "stands twice"
        } else if !exists {
            "is no more"
        } else if floor(from) > floor(to) {
            "leads down and needs no leave"
        } else {
            continue;
        };
        broken.push(format!(
            "crate {name}: {from} -> {to} {what}: remove it from {list}"
        ));
    }
    broken
}

fn count(exceptions: usize, limit: usize) -> Option<String> {
    let remedy = match exceptions.cmp(&limit) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Less => "lower EXCEPTIONS",
        std::cmp::Ordering::Greater => "remove the new ones",
    };
    Some(format!(
        "the lists in hack/arrows have {exceptions} exceptions and EXCEPTIONS (hack/src/arrows.rs) is {limit}: {remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_line_by_line() {
        let floors = floors("# low\na\nb # why\n  -> c\n  -> d\n\n# top\nc\n").unwrap();
        assert_eq!(floors.order, ["a", "b", "c"]);
        let groups = BTreeMap::from([("c".to_owned(), "top".to_owned())]);
        assert_eq!(floors.groups, groups);
        let exceptions = [("b", "c"), ("b", "d")].map(|(from, to)| (from.to_owned(), to.to_owned()));
        assert_eq!(floors.exceptions, exceptions);
        for text in ["-> a", "a b", "a\n -> b c", "a\n->"] {
            let error = super::floors(text).unwrap_err().to_string();
            assert!(error.contains("neither"), "{text}: {error}");
        }
    }

    /// The violations if `a` names `b`, `b` names `a`, and this is the list.
    fn broken(list: &str) -> Vec<String> {
        let files = [
            ("lib.rs", ""),
            ("a.rs", "\nuse crate::b::C;"),
            ("b.rs", "use crate::a::D;"),
            ("c.rs", ""),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let graph = graph("crates/x/src", &BTreeMap::from(files));
        compare("x", &graph, &floors(list).unwrap())
    }

    #[test]
    fn an_arrow_back_that_is_not_listed_is_named_with_its_place() {
        assert_eq!(broken("a\n -> b\nb\nc\nlib"), [""; 0]);
        assert_eq!(broken("b\n -> a\na\nc\nlib"), [""; 0]);
        let found = broken("a\nb\nc\nlib");
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .starts_with("crate x: a -> b at crates/x/src/a.rs:2: a stands below b in hack/arrows/x.txt")
        );
    }

    #[test]
    fn what_a_list_has_too_much_or_too_little_is_named() {
        for (list, expected) in [
            ("a\n -> b\n -> c\nb\nc\nlib", "a -> c is no more: remove it"),
            (
                "a\n -> b\nb\n -> a\nc\nlib",
                "b -> a leads down and needs no leave: remove it",
            ),
            ("a\n -> b\n -> b\nb\nc\nlib", "a -> b stands twice: remove it"),
            ("a\n -> b\nb\nlib", "module c is not in hack/arrows/x.txt: add it"),
            ("a\n -> b\nb\nc\nd\nlib", "there is no module d: remove it"),
            ("a\n -> b\nb\nc\nc\nlib", "c stands twice in hack/arrows/x.txt"),
        ] {
            let found = broken(list);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(expected), "{found:?}");
        }
    }

    #[test]
    fn the_number_of_arrows_back_is_written_down() {
        assert_eq!(count(3, 3), None);
        assert!(count(2, 3).unwrap().ends_with("is 3: lower EXCEPTIONS"));
        assert!(count(4, 3).unwrap().ends_with("remove the new ones"));
    }
}
