//! The version of this program, and process metrics from the operating system, read on each scrape. The latter on Linux alone.

use std::{env::consts, fmt, fs, sync::OnceLock};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use super::text_of;

/// Clock ticks a second in `/proc/self/stat`: fixed to 100 in the interface that Linux gives to programs.
const TICKS: f64 = 100.0;

/// Collects `entourage_build_info`, and `process_*`, named as every Prometheus client library names them.
#[derive(Debug)]
pub(super) struct Process;

/// The version of this program and its process metrics as OpenMetrics text, without its end: for a program that has its own exposition.
#[must_use]
pub fn process_families() -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Process));
    let mut text = text_of(&registry);
    text.truncate(text.strip_suffix("# EOF\n").map_or(0, str::len));
    text
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "1, by the version of this program, and the operating system and architecture that it is built for";
        let mut metric = encoder.encode_descriptor("entourage_build_info", help, None, MetricType::Gauge)?;
        let platform = format!("{}/{}", consts::OS, consts::ARCH);
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("platform", platform.as_str()),
        ];
        ConstGauge::new(1_i64).encode(metric.encode_family(&labels)?)?;
        let stat = fs::read_to_string("/proc/self/stat").ok();
        if let Some(seconds) = started(stat.as_deref()) {
            let metric = ConstGauge::new(seconds);
            let kind = metric.metric_type();
            let help = "When this process started, in seconds since 1970";
            metric.encode(encoder.encode_descriptor("process_start_time_seconds", help, None, kind)?)?;
        }
        if let Some(seconds) = stat.as_deref().and_then(cpu_seconds) {
            let metric = ConstCounter::new(seconds);
            let kind = metric.metric_type();
            let help = "User and system CPU time spent, in seconds";
            metric.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?)?;
        }
        if let Some(bytes) = fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| resident_bytes(&status))
        {
            let metric = ConstGauge::new(bytes);
            let kind = metric.metric_type();
            let help = "Resident memory in bytes";
            metric.encode(encoder.encode_descriptor("process_resident_memory_bytes", help, None, kind)?)?;
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            let metric = ConstGauge::new(i64::try_from(entries.count()).unwrap_or(i64::MAX));
            let kind = metric.metric_type();
            let help = "Open file descriptors; every watch is a connection";
            metric.encode(encoder.encode_descriptor("process_open_fds", help, None, kind)?)?;
        }
        Ok(())
    }
}

/// The start of this process in seconds since 1970, read once: it stays, and the file with the start of the machine is long.
fn started(stat: Option<&str>) -> Option<f64> {
    static STARTED: OnceLock<Option<f64>> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        start_seconds(stat?, &machine)
    })
}

/// Fields 14 and 15 of `/proc/self/stat`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = fields_from(stat, 14)?;
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS)
}

/// Field 22 of `/proc/self/stat`, which counts from the start of the machine, and `btime` of `/proc/stat`, which is that.
fn start_seconds(stat: &str, machine: &str) -> Option<f64> {
    let ticks: f64 = fields_from(stat, 22)?.next()?.parse().ok()?;
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted: f64 = booted.trim().parse().ok()?;
    Some(booted + ticks / TICKS)
}

/// The fields of `/proc/self/stat` from this one on, the first of which is 1, and this one at least 3. The second field, the program's
/// name, may have spaces and parentheses, so counting starts behind the last `)`.
fn fields_from(stat: &str, number: usize) -> Option<impl Iterator<Item = &str>> {
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().skip(number.checked_sub(3)?))
}

/// `VmRSS` of `/proc/self/status`, in bytes.
fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(2.0));
    }

    #[test]
    fn a_process_started_so_long_after_the_machine() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 12345 2 3";
        let machine = "cpu  1 2 3\nbtime 1800000000\nprocesses 9\n";
        assert_eq!(start_seconds(stat, machine), Some(1_800_000_123.45));
        assert_eq!(start_seconds(stat, "cpu  1 2 3\n"), None);
        assert_eq!(start_seconds("7 (a) S 1 7", machine), None);
    }

    #[test]
    fn the_families_have_no_end_of_their_own() {
        let text = process_families();
        let version = env!("CARGO_PKG_VERSION");
        assert!(
            text.contains(&format!(
                "entourage_build_info{{version=\"{version}\",platform=\""
            )),
            "{text}"
        );
        assert!(!text.contains("# EOF"), "{text}");
        assert!(text.ends_with('\n'), "{text}");
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t   45000 kB\n"),
            Some(46_080_000)
        );
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\n"), None);
    }
}
