//! The terminal of this process: raw mode, its size, and what is typed.

use std::io::Read as _;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

/// The size of a piece of input.
const PIECE: usize = 4 << 10;

/// Raw mode of standard input: what is typed goes to the command as it is, ctrl-C too. Dropping it restores the mode before.
pub(super) struct Raw {
    before: Termios,
}

impl Raw {
    /// Begins raw mode.
    pub(super) fn enter() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // There is nobody to tell if the terminal is gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
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
