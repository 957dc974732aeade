//! CPU time and memory of a process, from `/proc`.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize;

/// Clock ticks per second in `/proc/PID/stat`: fixed to 100 in the interface that Linux gives to programs.
const TICKS: f64 = 100.0;

/// The resources that a process has used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// The process.
    pub pid: u32,
    /// The program's name, at most 15 characters.
    pub name: String,
    /// User and system time in seconds, in steps of 0.01.
    pub cpu_s: f64,
    /// The most memory it ever had resident, in bytes, since its start or since [`forget_peak`].
    pub rss_peak_bytes: u64,
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
}

/// Reads the usage of a process.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub fn usage(pid: u32) -> Result<Usage> {
    let read = |file: &str| {
        let path = path(pid, file);
        fs::read_to_string(&path).with_context(|| format!("process {pid} has ended, or cannot be read"))
    };
    let (stat, status) = (read("stat")?, read("status")?);
    let parsed = cpu_seconds(&stat).zip(name(&stat));
    let (cpu_s, name) = parsed.with_context(|| format!("/proc/{pid}/stat is not understood"))?;
    // A process that has exited and was not waited for has no memory lines.
    let rss_peak_bytes = kilobytes(&status, "VmHWM:").unwrap_or_default() * 1024;
    let rss_bytes = kilobytes(&status, "VmRSS:").unwrap_or_default() * 1024;
    Ok(Usage {
        pid,
        name,
        cpu_s,
        rss_peak_bytes,
        rss_bytes,
    })
}

/// Resets the peak of a process's resident memory. Returns false if the system does not allow it, and the peak stays that since
/// the process's start.
#[must_use]
pub fn forget_peak(pid: u32) -> bool {
    fs::write(path(pid, "clear_refs"), "5").is_ok()
}

/// CPU seconds of this process so far; 0 without `/proc`.
#[must_use]
pub fn own_cpu_seconds() -> f64 {
    usage(std::process::id()).map_or(0.0, |usage| usage.cpu_s)
}

fn path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// Fields 14 and 15. The second field, the program's name, may contain spaces and parentheses, so counting starts after the
/// last `)`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS)
}

fn name(stat: &str) -> Option<String> {
    let (_, rest) = stat.split_once('(')?;
    Some(rest.rsplit_once(')')?.0.to_owned())
}

fn kilobytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(name(stat).as_deref(), Some("a) b) c"));
    }

    #[test]
    fn memory_is_read_in_kilobytes() {
        let status = "VmPeak:\t 9 kB\nVmHWM:\t   46000 kB\nVmRSS:\t   45000 kB\n";
        assert_eq!(kilobytes(status, "VmHWM:"), Some(46_000));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
    }

    #[test]
    fn a_process_that_does_not_exist_is_named() {
        let error = format!("{:#}", usage(u32::MAX).unwrap_err());
        assert!(error.contains("4294967295"), "{error}");
    }
}
