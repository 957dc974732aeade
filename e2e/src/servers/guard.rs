//! Ends the servers when this process ends in a way that runs no destructor: SIGKILL, an abort, a `static` fleet.
//!
//! One shell per test process reads from a pipe which servers to watch over. The kernel closes the pipe when this process
//! is gone, whatever the reason; the shell then kills what is still on its list. It is a process group of its own, as the
//! servers are, so that Ctrl-C in a terminal reaches only the test.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

const SCRIPT: &str = r#"
pids=
while read -r verb pid; do
    left=
    for known in $pids; do
        [ "$known" = "$pid" ] || left="$left $known"
    done
    pids=$left
    [ "$verb" = watch ] && pids="$pids $pid"
done
[ -z "$pids" ] || kill -KILL $pids
"#;

static GUARD: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Has `pid` killed when this process is gone. Fails when no shell can be started.
pub(super) fn watch(pid: u32) -> io::Result<()> {
    tell("watch", pid)
}

/// Takes `pid` off the list. To be called before the process is reaped: afterwards the number may be another's.
pub(super) fn forget(pid: u32) -> io::Result<()> {
    tell("forget", pid)
}

fn tell(verb: &str, pid: u32) -> io::Result<()> {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = match guard.as_mut() {
        Some(pipe) => pipe,
        None => guard.insert(start()?),
    };
    writeln!(pipe, "{verb} {pid}")
}

fn start() -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    shell
        .stdin
        .take()
        .ok_or_else(|| io::Error::other("the guard's standard input was asked for and is missing"))
}

#[cfg(test)]
mod tests {
    use std::{io::Read, path::PathBuf, thread, time::Duration};

    use super::*;

    const CHILD: &str = "ENTOURAGE_E2E_GUARD_CHILD";

    /// Runs itself once more; that process puts a server on the list and aborts, which runs no destructor.
    #[test]
    fn an_aborted_process_leaves_no_server() {
        if std::env::var_os(CHILD).is_some() {
            let server = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
            watch(server.id()).unwrap();
            std::fs::write(std::env::var_os(CHILD).unwrap(), server.id().to_string()).unwrap();
            std::process::abort();
        }
        let note = std::env::temp_dir().join(format!("entourage-e2e-guard-{}", std::process::id()));
        let status = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "servers::guard::tests::an_aborted_process_leaves_no_server",
            ])
            .env(CHILD, &note)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success());
        let pid = std::fs::read_to_string(&note).unwrap();
        std::fs::remove_file(note).unwrap();
        let state = PathBuf::from(format!("/proc/{pid}/stat"));
        let gone = (0..200).any(|_| {
            let mut text = String::new();
            let ended = std::fs::File::open(&state)
                .and_then(|mut file| file.read_to_string(&mut text))
                .is_err();
            // Where the machine's first process does not reap orphans, the ended one stays as a zombie.
            if ended || text.contains(") Z ") {
                return true;
            }
            thread::sleep(Duration::from_millis(25));
            false
        });
        assert!(gone, "process {pid} outlived the one that started it");
    }
}
