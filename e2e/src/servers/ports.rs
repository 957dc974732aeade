//! Reserved ports: also while no socket listens on them, and across test processes that start clusters at the same time.

use std::{
    fs::{File, OpenOptions},
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::Context;

/// A port of 127.0.0.1 that no other harness process takes as long as this value lives. It is free when handed out.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    /// An advisory lock on a file named after the port; the kernel releases it with the process.
    _lock: File,
}

/// The lowest port tried; below it live services that machines commonly run.
const LOWEST: u32 = 20_000;

/// Takes a free port. Ports lie below the range that the kernel picks from for outgoing connections: otherwise one of
/// those could sit on the port of a member that is stopped for a while. Fails when none is left.
pub(crate) fn take() -> anyhow::Result<Port> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let directory = std::env::temp_dir().join("entourage-e2e-ports");
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let span = first_ephemeral().saturating_sub(LOWEST).max(1000);
    // Processes begin at different places only so that they seldom meet; the lock is what keeps them apart.
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..span {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % span;
        let Ok(number) = u16::try_from(LOWEST + offset) else {
            continue;
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(number.to_string()));
        let Ok(lock) = file else { continue };
        if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
            return Ok(Port { number, _lock: lock });
        }
    }
    anyhow::bail!("no free port from {LOWEST} on, {span} tried")
}

/// The first port of the kernel's range for outgoing connections; its default if that cannot be read.
fn first_ephemeral() -> u32 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_free_and_taken_once() {
        let ports: Vec<Port> = (0..20).map(|_| take().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(|port| port.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
        for port in &ports {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port.number)).unwrap();
        }
    }

    #[test]
    fn a_held_port_cannot_be_locked_by_another() {
        let port = take().unwrap();
        let path = std::env::temp_dir()
            .join("entourage-e2e-ports")
            .join(port.number.to_string());
        let other = OpenOptions::new().append(true).open(path).unwrap();
        assert!(other.try_lock().is_err());
    }
}
