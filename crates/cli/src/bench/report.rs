//! The results of a bench: JSON with stable names for programs, a table for people.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use serde::Serialize;

use super::{meter::Figures, stats};

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this format; it changes when a name changes its meaning.
    pub format: u32,
    /// The version of the bench.
    pub entourage: String,
    /// The start time, RFC 3339.
    pub date: String,
    /// The machine that the bench ran on.
    pub machine: Machine,
    /// Version of each server, by name.
    pub servers: BTreeMap<String, String>,
    /// The parameters.
    pub parameters: Parameters,
    /// One entry per scenario and number of workloads, in the order in which they first ran.
    pub scenarios: Vec<Scenario>,
    /// The reason why the bench ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The machine that the bench ran on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processors that the bench may use.
    pub cpus: usize,
    /// Their model.
    pub cpu_model: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// The parameters.
#[derive(Clone, Debug, Serialize)]
pub struct Parameters {
    /// Deployments in S1 to S5.
    pub workloads: usize,
    /// Their namespaces.
    pub namespaces: usize,
    /// Members.
    pub members: usize,
    /// The number of runs of each scenario.
    pub runs: usize,
    /// Requests in flight per server, of the bench and of the floor.
    pub in_flight: usize,
    /// The command that started the control plane, if the bench started it.
    pub controllers: Option<String>,
}

/// The runs of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// For example `S1`.
    pub scenario: String,
    /// Its title.
    pub title: String,
    /// Deployments.
    pub workloads: usize,
    /// The median of each figure over the runs.
    pub median: BTreeMap<String, f64>,
    /// Each run.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The costs measured from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// The values of the scenario, by name; the unit is the end of the name.
    pub values: BTreeMap<String, f64>,
    /// Notes for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Run {
    /// A run with these figures and values.
    #[must_use]
    pub fn new(figures: Option<Figures>, values: impl IntoIterator<Item = (&'static str, f64)>) -> Self {
        let values = values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Self {
            figures,
            values,
            notes: Vec::new(),
        }
    }

    /// All figures that have a median, by name.
    fn flat(&self) -> BTreeMap<String, f64> {
        let mut all = self.values.clone();
        let Some(figures) = &self.figures else { return all };
        let mut add = |name: &str, value: f64| {
            all.insert(name.to_owned(), value);
        };
        let sum = |of: fn(&super::meter::Process) -> f64| figures.processes.iter().map(of).sum::<f64>();
        let requests = [("hub", &figures.hub), ("members", &figures.members)];
        if figures.wall_s > 0.0 {
            add("wall_s", figures.wall_s);
            add("settle_s", figures.settle_s);
        }
        if !figures.processes.is_empty() {
            add("cpu_s", sum(|each| each.cpu_s));
            add("rss_peak_mb", sum(|each| each.rss_peak_bytes as f64 / 1e6));
            add("rss_final_mb", sum(|each| each.rss_final_bytes as f64 / 1e6));
        }
        add("bench_cpu_s", figures.bench_cpu_s);
        for (name, of) in requests {
            add(&format!("{name}_writes"), of.writes as f64);
            add(&format!("{name}_reads"), of.reads as f64);
            add(&format!("{name}_events"), of.events as f64);
            add(&format!("{name}_leases"), of.leases as f64);
        }
        all
    }
}

impl Report {
    /// Adds a run to its scenario.
    pub fn add(&mut self, scenario: &str, title: &str, workloads: usize, run: Run) {
        let place = self
            .scenarios
            .iter()
            .position(|each| each.scenario == scenario && each.workloads == workloads);
        let place = place.unwrap_or_else(|| {
            let (scenario, title) = (scenario.to_owned(), title.to_owned());
            self.scenarios.push(Scenario {
                scenario,
                title,
                workloads,
                median: BTreeMap::new(),
                runs: Vec::new(),
            });
            self.scenarios.len() - 1
        });
        let entry = &mut self.scenarios[place];
        entry.runs.push(run);
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in entry.runs.iter().flat_map(Run::flat) {
            values.entry(name).or_default().push(value);
        }
        entry.median = values
            .into_iter()
            .map(|(name, all)| (name, stats::median(&all)))
            .collect();
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let Machine {
            cpus,
            cpu_model,
            kernel,
            ..
        } = &self.machine;
        let versions: Vec<_> = self
            .servers
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} on {cpus} x {cpu_model}, Linux {kernel}; {}",
            self.date,
            versions.join(", ")
        );
        for Scenario {
            scenario,
            title,
            workloads,
            median,
            runs,
        } in &self.scenarios
        {
            let _ = writeln!(
                text,
                "\n{scenario} {title} ({workloads} Deployments, median of {})",
                runs.len()
            );
            for (name, value) in median {
                let spread: Vec<_> = runs.iter().filter_map(|run| run.flat().remove(name)).collect();
                let spread: Vec<_> = spread.into_iter().map(number).collect();
                let _ = writeln!(text, "  {name:<28} {:>12}   {}", number(*value), spread.join(" "));
            }
            let Some(last) = runs.last() else { continue };
            for (server, requests) in last
                .figures
                .iter()
                .flat_map(|figures| [("hub", &figures.hub), ("members", &figures.members)])
            {
                for (request, count) in &requests.writes_by {
                    let _ = writeln!(text, "  {server:<8} {request:<60} {count:>8}");
                }
            }
            for note in runs.iter().flat_map(|run| &run.notes) {
                let _ = writeln!(text, "  note: {note}");
            }
        }
        text
    }
}

impl Machine {
    /// This machine, as far as `/proc` describes it.
    #[must_use]
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kilobytes = memory
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .unwrap_or_default();
        Self {
            cpus: std::thread::available_parallelism().map_or(1, Into::into),
            cpu_model: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| "unknown processor".into()),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: kilobytes * 1024,
        }
    }
}

/// A number with a reasonable number of decimals.
fn number(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn report() -> Report {
        Report {
            format: 1,
            entourage: "0".into(),
            date: "2026-01-01T00:00:00Z".into(),
            machine: Machine {
                cpus: 2,
                cpu_model: "model".into(),
                kernel: "6".into(),
                memory_bytes: 1,
            },
            servers: BTreeMap::from([("hub".into(), "v1.33.0".into())]),
            parameters: Parameters {
                workloads: 300,
                namespaces: 10,
                members: 3,
                runs: 3,
                in_flight: 16,
                controllers: None,
            },
            scenarios: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn runs_of_a_scenario_are_kept_together_and_their_median_is_taken() {
        let mut report = report();
        for (workloads, wall_s) in [(300, 9.0), (300, 7.0), (100, 2.0), (300, 8.0)] {
            let figures = Figures {
                wall_s,
                ..Figures::default()
            };
            report.add(
                "S1",
                "cold",
                workloads,
                Run::new(Some(figures), [("floor_s", 5.0)]),
            );
        }
        assert_eq!(report.scenarios.len(), 2);
        let entry = &report.scenarios[0];
        assert_eq!(
            (entry.runs.len(), entry.median["wall_s"], entry.median["floor_s"]),
            (3, 8.0, 5.0)
        );
        let table = report.table();
        assert!(
            table.contains("S1 cold (300 Deployments, median of 3)"),
            "{table}"
        );
        assert!(table.contains("9 7 8"), "{table}");
    }

    #[test]
    fn the_names_in_the_json_are_stable() {
        let mut report = report();
        report.add("S3", "idle", 300, Run::new(Some(Figures::default()), []));
        let json = serde_json::to_value(&report).unwrap();
        for pointer in [
            "/format",
            "/date",
            "/machine/cpus",
            "/machine/kernel",
            "/servers/hub",
            "/parameters/in_flight",
            "/scenarios/0/median/hub_writes",
            "/scenarios/0/runs/0/figures/hub/writes_by",
            "/scenarios/0/runs/0/figures/processes",
            "/scenarios/0/runs/0/figures/bench_cpu_s",
        ] {
            assert!(json.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn numbers_have_as_many_decimals_as_say_something() {
        assert_eq!(
            ["8", "8.123", "12.35", "123.5"],
            [8.0, 8.1234, 12.345, 123.45].map(number).as_slice()
        );
    }
}
