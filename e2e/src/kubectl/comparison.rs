//! Compares kubectl's output with the goldens, and the files with each other.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    client::Client,
    differences::{Difference, differences},
    golden::{Expected, Golden, Transcript},
    script::{Mode, Script},
};
use crate::servers::Version;

/// The lane whose answers are the common ones, where nothing says otherwise.
const LEADING: &str = "embedded";

/// The minor release of the real API servers whose own answers the goldens have.
const RECORDED: u32 = 20;

/// The server that was asked.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// The name of the lane.
    pub lane: &'static str,
    /// The release of a real API server.
    pub version: Option<Version>,
}

impl Server {
    /// The expected answer. A real API server of another release than the recorded one is compared only where the recorded
    /// release and the embedded server answer alike: releases between them do, too.
    fn expected<'a>(&self, golden: &'a Golden, label: &str) -> Option<&'a Transcript> {
        let step = golden.step(label)?;
        match step.lanes.get(self.lane) {
            Some(own) => self.is_recorded().then_some(own),
            None => Some(&step.both),
        }
    }

    fn is_recorded(&self) -> bool {
        self.version.is_none_or(|version| version.minor == RECORDED)
    }
}

/// The folder with scripts, goldens and the list of differences.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// Those in a folder.
    #[must_use]
    pub fn of(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// A script by its name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn script(&self, name: &str) -> Result<Script> {
        Script::load(&self.dir, name)
    }

    /// The folder of manifests, in which commands run.
    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        self.dir.join("manifests")
    }

    /// The names of the scripts, in order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn themes(&self) -> Result<Vec<String>> {
        let names = names(&self.dir)?.into_iter();
        let themes = names.filter_map(|name| name.strip_suffix(".txt").map(str::to_owned));
        Ok(themes.filter(|name| name != "differences").collect())
    }

    /// The minor releases of kubectl that have goldens.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn minors(&self) -> Result<Vec<u32>> {
        let names = names(&self.dir.join("golden"))?;
        let minors = names
            .iter()
            .filter_map(|name| name.strip_prefix("1.")?.parse().ok());
        Ok(minors.collect())
    }

    fn golden(&self, minor: u32, theme: &str) -> PathBuf {
        self.dir.join(format!("golden/1.{minor}/{theme}.txt"))
    }

    fn listed(&self) -> Result<Vec<Difference>> {
        let path = self.dir.join("differences.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        differences(&text)
    }
}

/// The differences between the output of a script and its golden; with `update` the golden is written first.
///
/// # Errors
/// When a file cannot be read or written, or is to be written by a server whose answers are not recorded.
pub fn compare(
    files: &Files,
    script: &Script,
    server: Server,
    client: &Client,
    played: &[(String, Transcript)],
    update: bool,
) -> Result<Vec<String>> {
    let (minors, minor) = (files.minors()?, client.version.minor);
    if !minors.contains(&minor) {
        let nearest = minors.iter().min_by_key(|known| known.abs_diff(minor));
        let nearest = nearest.context("there are no goldens at all")?;
        let golden = Golden::load(&files.golden(*nearest, &script.name))?;
        return Ok(exit_codes(&golden, server, played));
    }
    let path = files.golden(minor, &script.name);
    let mut golden = Golden::load(&path)?;
    if update {
        ensure!(
            server.is_recorded(),
            "only a real API server 1.{RECORDED} writes goldens"
        );
        let release = format!("1.{minor}");
        let listed: Vec<Difference> = files
            .listed()?
            .into_iter()
            .filter(|each| each.is_of(&release, &script.name))
            .collect();
        golden = updated(&golden, script, server.lane, &listed, played);
        std::fs::write(&path, golden.render()).with_context(|| path.display().to_string())?;
    }
    Ok(transcripts(&golden, server, played))
}

/// The errors in the files themselves: goldens that do not belong to their scripts, outputs of one lane that are not in
/// the list of differences, and lines of the list without such an output.
///
/// # Errors
/// When a file cannot be read.
pub fn check_files(files: &Files) -> Result<Vec<String>> {
    let (listed, themes) = (files.listed()?, files.themes()?);
    let mut complaints = Vec::new();
    let mut differing = BTreeSet::new();
    for minor in files.minors()? {
        let release = format!("1.{minor}");
        for theme in &themes {
            let golden = Golden::load(&files.golden(minor, theme))?;
            let wanted = commands(&files.script(theme)?, minor);
            let held: Vec<(String, String)> = golden.steps.iter().map(Expected::name).collect();
            if wanted != held {
                complaints.push(format!(
                    "golden/{release}/{theme}.txt has other commands than {theme}.txt"
                ));
            }
            for step in &golden.steps {
                for (lane, transcript) in &step.lanes {
                    let at = format!("{lane} {release} {theme}/{}", step.label);
                    let of_it = |each: &&Difference| {
                        each.is_of(&release, theme) && each.lane == *lane && each.label == step.label
                    };
                    let Some(line) = listed.iter().position(|each| of_it(&each)) else {
                        complaints.push(format!("{at}: is not in the list of differences"));
                        continue;
                    };
                    if *transcript == step.both {
                        complaints.push(format!("{at}: is no difference any more; take it off the list"));
                    }
                    differing.insert((line, minor));
                }
            }
        }
    }
    for (line, each) in listed.iter().enumerate() {
        for minor in files.minors()? {
            let script = files.script(&each.theme)?;
            let known = commands(&script, minor)
                .iter()
                .any(|(label, _)| *label == each.label);
            if known && each.is_of(&format!("1.{minor}"), &each.theme) && !differing.contains(&(line, minor))
            {
                complaints.push(format!(
                    "{} {} {}/{}: golden/1.{minor} has no such difference",
                    each.lane, each.client, each.theme, each.label
                ));
            }
        }
        if !listed[..line].iter().all(|other| {
            (&other.lane, &other.theme, &other.label) != (&each.lane, &each.theme, &each.label)
                || other.client != each.client
        }) {
            complaints.push(format!(
                "{} {}/{} is listed twice",
                each.lane, each.theme, each.label
            ));
        }
    }
    Ok(complaints)
}

impl Expected {
    fn name(&self) -> (String, String) {
        (self.label.clone(), self.command.clone())
    }
}

/// Labels and commands in the order in which they end.
fn commands(script: &Script, minor: u32) -> Vec<(String, String)> {
    let steps = script.steps_for(minor);
    let ends = steps.filter(|step| !matches!(step.mode, Mode::Beside(_)));
    ends.map(|step| (step.label.clone(), step.command.clone()))
        .collect()
}

fn transcripts(golden: &Golden, server: Server, played: &[(String, Transcript)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (label, got) in played {
        match server.expected(golden, label) {
            Some(wanted) if wanted != got => complaints.push(format!("[{label}]\n{}", changed(wanted, got))),
            None if golden.step(label).is_none() => {
                complaints.push(format!("[{label}] is not in the golden"));
            }
            _ => {}
        }
    }
    for step in &golden.steps {
        if !played.iter().any(|(label, _)| *label == step.label) {
            complaints.push(format!("[{}] is in the golden only", step.label));
        }
    }
    complaints
}

fn exit_codes(golden: &Golden, server: Server, played: &[(String, Transcript)]) -> Vec<String> {
    let wrong = played.iter().filter_map(|(label, got)| {
        let wanted = server.expected(golden, label)?;
        (wanted.code != got.code).then(|| format!("[{label}] wanted exit code {}\n{}", wanted.code, got))
    });
    wrong.collect()
}

/// The golden with what was played: into the common answers, or into those of the lane where it is listed to differ.
fn updated(
    golden: &Golden,
    script: &Script,
    lane: &str,
    listed: &[Difference],
    played: &[(String, Transcript)],
) -> Golden {
    let steps = played.iter().map(|(label, got)| {
        let is_listed = |lane: &str| {
            listed
                .iter()
                .any(|each| each.lane == lane && each.label == *label)
        };
        let mut step = golden.step(label).cloned().unwrap_or_else(|| Expected {
            label: label.clone(),
            both: got.clone(),
            ..Expected::default()
        });
        let of_it = script.steps.iter().find(|each| each.label == *label);
        step.command = of_it.map(|each| each.command.clone()).unwrap_or_default();
        step.lanes.retain(|lane, _| is_listed(lane));
        if is_listed(lane) {
            step.lanes.insert(lane.to_owned(), got.clone());
        } else if lane == LEADING || is_listed(LEADING) {
            step.both = got.clone();
        }
        step
    });
    Golden {
        steps: steps.collect(),
    }
}

/// The lines that differ: `-` wanted, `+` printed.
fn changed(wanted: &Transcript, got: &Transcript) -> String {
    let (wanted, got) = (wanted.to_string(), got.to_string());
    let (wanted, got): (Vec<&str>, Vec<&str>) = (wanted.lines().collect(), got.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = wanted.iter().zip(&got).take_while(same).count();
    let tail = wanted[head..]
        .iter()
        .rev()
        .zip(got[head..].iter().rev())
        .take_while(same)
        .count();
    let lines = |sign: char, lines: &[&str]| -> String {
        let lines = &lines[head..lines.len() - tail];
        lines.iter().map(|line| format!("  {sign}{line}\n")).collect()
    };
    let above = head
        .checked_sub(1)
        .map_or_else(String::new, |line| format!("   {}\n", wanted[line]));
    format!("{above}{}{}", lines('-', &wanted), lines('+', &got))
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(stdout: &str) -> Transcript {
        Transcript {
            stdout: stdout.to_owned(),
            ..Transcript::default()
        }
    }

    fn server(lane: &'static str, version: Option<&str>) -> Server {
        Server {
            lane,
            version: version.map(|text| text.parse().unwrap()),
        }
    }

    fn played(stdout: &str) -> Vec<(String, Transcript)> {
        vec![("a".to_owned(), printed(stdout))]
    }

    #[test]
    fn scripts_goldens_and_the_list_of_differences_agree() {
        let files = Files::of(Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl"));
        assert!(!files.themes().unwrap().is_empty());
        let complaints = check_files(&files).unwrap();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    #[test]
    fn an_update_changes_the_common_answer_or_the_one_that_is_listed() {
        let script = Script::parse("x", "[a] kubectl\n").unwrap();
        let listed = differences("real * x/a why\n").unwrap();
        let first = updated(&Golden::default(), &script, "embedded", &listed, &played("one\n"));
        let both = updated(&first, &script, "real", &listed, &played("two\n"));
        let real = server("real", Some("v1.20.2"));
        assert!(transcripts(&both, server("embedded", None), &played("one\n")).is_empty());
        assert!(transcripts(&both, real, &played("two\n")).is_empty());
        // Of a release that nothing was recorded of, what is listed is not known.
        let newer = server("real", Some("v1.33.1"));
        assert!(transcripts(&both, newer, &played("three\n")).is_empty());
        // An unlisted difference is written nowhere, and stays one.
        let unlisted = updated(&both, &script, "real", &[], &played("two\n"));
        assert_eq!(
            transcripts(&unlisted, real, &played("two\n")),
            ["[a]\n  -| one\n  +| two\n"]
        );
    }

    #[test]
    fn a_client_without_golden_is_held_to_exit_codes() {
        let script = Script::parse("x", "[a] kubectl\n").unwrap();
        let golden = updated(&Golden::default(), &script, "embedded", &[], &played("one\n"));
        let embedded = server("embedded", None);
        assert!(exit_codes(&golden, embedded, &played("two\n")).is_empty());
        let failed = Transcript {
            code: 1,
            ..Transcript::default()
        };
        assert_eq!(
            exit_codes(&golden, embedded, &[("a".to_owned(), failed)]).len(),
            1
        );
    }
}
