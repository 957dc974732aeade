//! Process metrics from the operating system, read on each scrape. On systems other than Linux: none.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// Clock ticks a second in `/proc/self/stat`: fixed to 100 in the interface that Linux gives to programs.
const TICKS: f64 = 100.0;

/// Collects `process_*`, named as every Prometheus client library names them.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if let Some(seconds) = fs::read_to_string("/proc/self/stat")
            .ok()
            .and_then(|stat| cpu_seconds(&stat))
        {
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

/// Fields 14 and 15 of `/proc/self/stat`. The second field, the program's name, may have spaces and parentheses, so counting
/// starts behind the last `)`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS)
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
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t   45000 kB\n"),
            Some(46_080_000)
        );
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\n"), None);
    }
}
