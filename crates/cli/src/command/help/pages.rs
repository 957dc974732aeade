//! The pages against the command line: their lines parse, and their tables of flags and of feature gates are complete, in both directions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::{SERVERS, command, parse};
use crate::command::controllers::features::FEATURES;

/// The words in the place of something that the reader fills in, and a value for them.
const PLACEHOLDERS: &[(&str, &str)] = &[("join member1 …", "join member1 --cluster-kubeconfig member1.yaml")];

/// Lines that do not parse, and must not: the beginning of each, and the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

const FLAGS: &str = "docs/reference/flags.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The README and all pages below `docs`.
fn pages() -> Vec<String> {
    fn below(folder: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                below(&path, found);
            } else if path.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = vec!["README.md".to_owned()];
    below("docs", &mut found);
    found.sort();
    found
}

/// The lines of the code blocks of a page that a reader runs, those that go on joined: `(number, line)`. In a block `console` they begin
/// with `$`, and the others are output.
fn lines(page: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut block: Option<&str> = None;
    let mut begun: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            block = match block {
                None => Some(language),
                Some(_) => None,
            };
            begun = None;
            continue;
        }
        let Some(language) = block else { continue };
        let (first, words) = match (begun.take(), line.strip_prefix("$ ")) {
            (Some((first, before)), _) => (first, format!("{before} {line}")),
            (None, Some(words)) => (number, words.to_owned()),
            (None, None) if language == "console" => continue,
            (None, None) => (number, line.to_owned()),
        };
        match words.strip_suffix('\\') {
            Some(words) => begun = Some((first, words.to_owned())),
            None if words.ends_with('|') => begun = Some((first, words)),
            None => all.push((first, words)),
        }
    }
    all
}

/// The commands of a line of a shell, each as its words: without comments, redirections and assignments.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | ';' | '>' | '<' | '(' | ')') => {
                all.last_mut().unwrap().extend(word.take());
                if letter != ' ' {
                    all.push(Vec::new());
                }
            }
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    for words in &mut all {
        let is_assignment = |word: &String| {
            let name = word.split_once('=').map(|(name, _)| name);
            name.is_some_and(|name| name.chars().all(|each| each.is_ascii_uppercase() || each == '_'))
        };
        let assignments = words.iter().take_while(|word| is_assignment(word)).count();
        words.drain(..assignments);
    }
    all.retain(|words| words.first().is_some_and(|word| word == "entourage"));
    all
}

#[test]
fn a_line_is_read_as_a_shell_reads_it() {
    for (line, wanted) in [
        ("entourage up", vec!["entourage up"]),
        (
            "source <(entourage completion bash)",
            vec!["entourage completion bash"],
        ),
        (
            "helm template web | entourage plan -f - --diff",
            vec!["entourage plan -f - --diff"],
        ),
        (
            "entourage completion zsh > \"${fpath[1]}/_entourage\"",
            vec!["entourage completion zsh"],
        ),
        (
            "KUBECONFIG=a.yaml entourage get copies   # entourage up",
            vec!["entourage get copies"],
        ),
        (
            "entourage why a/b || echo \"entourage up\"",
            vec!["entourage why a/b"],
        ),
        (
            "entourage get copies -o jsonpath='{.items[*]}'",
            vec!["entourage get copies -o jsonpath={.items[*]}"],
        ),
        (
            "entourage crds; entourage up &",
            vec!["entourage crds", "entourage up"],
        ),
        ("helm install entourage charts/entourage", vec![]),
    ] {
        let found: Vec<String> = commands(line).iter().map(|words| words.join(" ")).collect();
        assert_eq!(found, wanted, "{line}");
    }
    let page = "entourage out\n```sh\na \\\n  b\nc |\n  d\n```\n   ```console\n   $ e\n   output\n   ```\n";
    let found: Vec<String> = lines(page).into_iter().map(|(_, line)| line).collect();
    assert_eq!(found, ["a  b", "c | d", "e"]);
}

#[test]
fn every_command_line_of_the_pages_parses() {
    let mut used = BTreeSet::new();
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (number, line) in lines(&read(&page)) {
            let mut line = line;
            for (left_out, value) in PLACEHOLDERS {
                if line.contains(left_out) {
                    used.insert(*left_out);
                    line = line.replace(left_out, value);
                }
            }
            for words in commands(&line) {
                found += 1;
                let Err(error) = parse(words.iter().map(Into::into)) else {
                    continue;
                };
                let error = error.to_string();
                let joined = words.join(" ");
                match EXCEPTIONS.iter().find(|(begin, _)| joined.starts_with(begin)) {
                    Some((begin, _)) => {
                        used.insert(*begin);
                    }
                    None => wrong.push(format!(
                        "{page}:{number}: {joined}: {}",
                        error.lines().next().unwrap_or_default()
                    )),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 120, "only {found} command lines are found");
    for (row, _) in PLACEHOLDERS.iter().chain(EXCEPTIONS) {
        assert!(used.contains(row), "no line of a page needs the row {row:?}");
    }
}

/// The rows of a section of a page: their cells.
fn rows<'a>(page: &'a str, section: &str) -> Vec<Vec<&'a str>> {
    let start = format!("{section}\n");
    let section = page.split("\n## ").find(|text| text.starts_with(&start));
    let rows = section
        .unwrap_or_default()
        .lines()
        .filter(|line| line.starts_with("| `"));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The words between backticks.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn the_tables_of_the_commands_that_run_for_long_have_their_flags_and_no_others() {
    let page = read(FLAGS);
    let root = command();
    for name in SERVERS {
        let command = root.find_subcommand(name).unwrap();
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let flags: BTreeSet<String> = shown
            .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
            .filter(|flag| flag != "--help")
            .collect();
        let rows = rows(&page, &format!("entourage {name}"));
        let listed: BTreeSet<String> = rows
            .iter()
            .flat_map(|row| code(row[0]))
            .map(str::to_owned)
            .collect();
        assert!(flags.len() > 7, "{name} has only {flags:?}");
        let (missing, unknown): (Vec<_>, Vec<_>) = (
            flags.difference(&listed).collect(),
            listed.difference(&flags).collect(),
        );
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{FLAGS}, section entourage {name}: add {missing:?}, remove {unknown:?}"
        );
    }
}

#[test]
fn the_table_of_the_feature_gates_has_each_with_its_default_and_no_other() {
    let page = read(FLAGS);
    let rows = rows(&page, "Feature gates");
    let listed: BTreeMap<&str, &str> = rows
        .iter()
        .map(|row| (row[0].trim_matches('`'), row[1]))
        .collect();
    let word = |default| if default { "on" } else { "off" };
    let known: BTreeMap<&str, &str> = FEATURES
        .iter()
        .map(|feature| (feature.name, word(feature.default)))
        .collect();
    assert_eq!(listed, known, "{FLAGS}, section Feature gates");
}
