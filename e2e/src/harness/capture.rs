//! The log of the controllers.
//!
//! Tests that run at the same time are distinguished by the names of their controllers' threads.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tracing_subscriber::{
    EnvFilter, Registry, fmt::MakeWriter, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

/// The maximum size of one test's log, in bytes.
const KEPT: usize = 64 << 20;

/// The default log level.
const USUALLY: &str = "info,entourage_core=debug,entourage_controllers=debug";

/// The log level of tests that search for secrets: they might leak on any level.
const EVERYTHING: &str = "debug,entourage_core=trace,entourage_controllers=trace";

/// The log and the panics of the controllers whose threads have one name. Clones share it.
#[derive(Clone)]
pub struct Capture {
    held: Arc<Mutex<Everyone>>,
    levels: reload::Handle<EnvFilter, Registry>,
    thread: Arc<str>,
}

/// The logs of all tests, by thread.
#[derive(Default)]
struct Everyone {
    logs: BTreeMap<Arc<str>, Held>,
    /// Threads of tests that want everything to be logged.
    curious: BTreeSet<Arc<str>>,
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
            thread: "controllers".into(),
        };
        let plain = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(Writer(capture.held.clone()));
        let print =
            std::env::var_os("RUST_LOG").map(|_| tracing_subscriber::fmt::layer().with_writer(io::stderr));
        // An error means that a subscriber is installed already; then there is nothing to capture.
        let _ = tracing_subscriber::registry()
            .with(filter)
            .with(plain)
            .with(print)
            .try_init();
        let panics = capture.held.clone();
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let mut everyone = panics.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(held) = here().and_then(|thread| everyone.logs.get_mut(thread.as_str())) {
                held.panics.push(info.to_string());
            }
            drop(everyone);
            usual(info);
        }));
        capture
    }

    /// The capture of another test, whose controllers' threads are to have this name (15 characters at most).
    #[must_use]
    pub fn of(&self, thread: &str) -> Self {
        Self {
            thread: thread.into(),
            ..self.clone()
        }
    }

    /// The name that the controllers' threads must have.
    #[must_use]
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// Forgets everything, and logs as much as usual.
    pub fn clear(&self) {
        let mut everyone = self.everyone();
        everyone.logs.insert(self.thread.clone(), Held::default());
        everyone.curious.remove(&self.thread);
        self.set_levels(&everyone);
    }

    /// Logs everything until the next [`clear`](Self::clear).
    pub fn everything(&self) {
        let mut everyone = self.everyone();
        everyone.curious.insert(self.thread.clone());
        self.set_levels(&everyone);
    }

    /// The last lines.
    #[must_use]
    pub fn tail(&self, lines: usize) -> String {
        self.read(|held| {
            let from = held.lines.len().saturating_sub(lines);
            held.lines.iter().skip(from).cloned().collect()
        })
    }

    /// The lines that contain `text`.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<String> {
        self.read(|held| {
            held.lines
                .iter()
                .filter(|line| line.contains(text))
                .cloned()
                .collect()
        })
    }

    /// The number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|held| held.lines.len())
    }

    /// True if nothing was logged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The panics of the controllers' threads.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.read(|held| held.panics.clone())
    }

    fn read<T: Default>(&self, look: impl FnOnce(&Held) -> T) -> T {
        self.everyone()
            .logs
            .get(&self.thread)
            .map(look)
            .unwrap_or_default()
    }

    fn everyone(&self) -> MutexGuard<'_, Everyone> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_levels(&self, everyone: &Everyone) {
        let levels = if everyone.curious.is_empty() {
            usual_levels()
        } else {
            EVERYTHING.to_owned()
        };
        // An error means that no subscriber is installed.
        let _ = self.levels.reload(EnvFilter::new(levels));
    }
}

fn usual_levels() -> String {
    std::env::var("RUST_LOG").unwrap_or_else(|_| USUALLY.to_owned())
}

/// The name of this thread.
fn here() -> Option<String> {
    std::thread::current().name().map(str::to_owned)
}

/// Writes lines to the log of the thread that they come from.
#[derive(Clone)]
struct Writer(Arc<Mutex<Everyone>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut everyone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = here().and_then(|thread| everyone.logs.get_mut(thread.as_str())) {
            held.bytes += bytes.len();
            held.lines.push_back(String::from_utf8_lossy(bytes).into_owned());
            while held.bytes > KEPT {
                let Some(line) = held.lines.pop_front() else { break };
                held.bytes -= line.len();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
