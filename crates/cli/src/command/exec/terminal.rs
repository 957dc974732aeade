//! The terminal of this process: raw mode, its size, and what is typed.

use std::{io::Read as _, os::fd::AsFd};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

/// The size of a piece of input.
const PIECE: usize = 4 << 10;

/// Raw mode of a terminal: what is typed goes to the command as it is, ctrl-C too. Dropping it restores the mode before.
pub(super) struct Raw<T: AsFd> {
    terminal: T,
    before: Termios,
}

impl<T: AsFd> Raw<T> {
    /// Begins raw mode.
    pub(super) fn enter(terminal: T) -> std::io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl<T: AsFd> Drop for Raw<T> {
    fn drop(&mut self) {
        // There is nobody to report it to if the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Width and height.
pub(super) fn size() -> std::io::Result<(u16, u16)> {
    let size = tcgetwinsize(std::io::stdout()).or_else(|_| tcgetwinsize(std::io::stdin()))?;
    Ok((size.ws_col, size.ws_row))
}

/// Standard input, until its end. It is read by a thread that nothing waits for: a read that waits for a key cannot be ended, and the
/// process must be able to.
pub(super) fn input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut piece = vec![0; PIECE];
        while let Ok(read @ 1..) = stdin.read(&mut piece) {
            if sender.blocking_send(piece[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rustix::{
        pty::{OpenptFlags, openpt},
        termios::LocalModes,
    };

    use super::*;

    #[test]
    fn the_mode_of_a_terminal_is_restored_also_when_the_command_panics() {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        let is_raw = || {
            let typed = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            !tcgetattr(&terminal).unwrap().local_modes.intersects(typed)
        };
        assert!(!is_raw());
        let raw = Raw::enter(&terminal).unwrap();
        assert!(is_raw());
        drop(raw);
        assert!(!is_raw());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _raw = Raw::enter(&terminal).unwrap();
            assert!(!is_raw(), "it is raw, so this panics");
        }));
        assert!(panicked.is_err());
        assert!(!is_raw());
    }
}
