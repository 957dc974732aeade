//! What the controllers logged.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tracing_subscriber::{
    EnvFilter, Registry, fmt::MakeWriter, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

/// What is kept of one test's log, in bytes.
const KEPT: usize = 64 << 20;

/// How much is logged usually.
const USUALLY: &str = "info,entourage_core=debug,entourage_controllers=debug";

/// How much is logged where secrets are looked for: they might leak on any level.
const EVERYTHING: &str = "debug,entourage_core=trace,entourage_controllers=trace";

/// Everything that is logged in this process, and every panic of a thread of the controllers. Clones share it.
#[derive(Clone)]
pub struct Capture {
    held: Arc<Mutex<Held>>,
    levels: reload::Handle<EnvFilter, Registry>,
}

#[derive(Default)]
struct Held {
    lines: VecDeque<String>,
    bytes: usize,
    panics: Vec<String>,
}

impl Capture {
    /// Starts capturing; once a process. `RUST_LOG` makes it print as well.
    #[must_use]
    pub fn install() -> Self {
        let (filter, levels) = reload::Layer::new(EnvFilter::new(usual_levels()));
        let capture = Self {
            held: Arc::default(),
            levels,
        };
        let plain = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(capture.clone());
        let print =
            std::env::var_os("RUST_LOG").map(|_| tracing_subscriber::fmt::layer().with_writer(io::stderr));
        // An error means that a subscriber is installed already; then there is nothing to capture.
        let _ = tracing_subscriber::registry()
            .with(filter)
            .with(plain)
            .with(print)
            .try_init();
        let panics = capture.clone();
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some(super::controllers::THREAD) {
                panics.held().panics.push(info.to_string());
            }
            usual(info);
        }));
        capture
    }

    /// Forgets everything, and logs as much as usual.
    pub fn clear(&self) {
        *self.held() = Held::default();
        // An error means that no subscriber is installed.
        let _ = self.levels.reload(EnvFilter::new(usual_levels()));
    }

    /// Logs everything until the next [`clear`](Self::clear).
    pub fn everything(&self) {
        let _ = self.levels.reload(EnvFilter::new(EVERYTHING));
    }

    /// The last lines.
    #[must_use]
    pub fn tail(&self, lines: usize) -> String {
        let held = self.held();
        let from = held.lines.len().saturating_sub(lines);
        held.lines.iter().skip(from).cloned().collect()
    }

    /// The lines that contain `text`.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<String> {
        self.held()
            .lines
            .iter()
            .filter(|line| line.contains(text))
            .cloned()
            .collect()
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held().lines.len()
    }

    /// Whether nothing was logged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The panics of the controllers' threads.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.held().panics.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn usual_levels() -> String {
    std::env::var("RUST_LOG").unwrap_or_else(|_| USUALLY.to_owned())
}

impl io::Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.held();
        held.bytes += bytes.len();
        held.lines.push_back(String::from_utf8_lossy(bytes).into_owned());
        while held.bytes > KEPT {
            let Some(line) = held.lines.pop_front() else { break };
            held.bytes -= line.len();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Capture {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
