//! The budget of a call: checked by the hook of the virtual machine and by every function that may take long.

use std::{
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use mlua::Lua;

use crate::{error::say, limits::Limits};

/// The limit that was reached. Once set it stays: whatever the script does then, the call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reached {
    /// The deadline.
    Time = 1,
    /// Too many instructions.
    Instructions,
    /// Too much memory, or one string or result that is too large.
    Memory,
}

/// The budget of the call that runs in a state. Relaxed atomics: only one thread uses a state at a time; they make it shareable.
pub(crate) struct Budget {
    epoch: Instant,
    /// In nanoseconds from the epoch.
    started: AtomicU64,
    time: AtomicU64,
    most_instructions: AtomicU64,
    memory: AtomicUsize,
    string: AtomicUsize,
    answer: AtomicUsize,
    instructions: AtomicU64,
    steps: AtomicU64,
    nested: AtomicU32,
    reached: AtomicU8,
    line: AtomicU32,
}

/// The maximum nesting of library functions that call functions of the script that call library functions: each level takes
/// kilobytes of the thread's stack. The virtual machine limits all other nesting itself.
const NESTED: u32 = 16;

/// The number of steps of a function between two reads of the clock: some microseconds' worth.
const STEPS: u64 = 4096;

impl Budget {
    /// An empty budget, until a call begins.
    pub(crate) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            started: AtomicU64::new(0),
            time: AtomicU64::new(0),
            most_instructions: AtomicU64::new(0),
            memory: AtomicUsize::new(0),
            string: AtomicUsize::new(0),
            answer: AtomicUsize::new(0),
            instructions: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            nested: AtomicU32::new(0),
            reached: AtomicU8::new(0),
            line: AtomicU32::new(0),
        }
    }

    /// Begins a call.
    pub(crate) fn begin(&self, limits: Limits) {
        self.started.store(self.now(), Relaxed);
        self.time.store(nanos(limits.time), Relaxed);
        self.most_instructions.store(limits.instructions, Relaxed);
        self.memory.store(limits.memory, Relaxed);
        self.string.store(limits.string, Relaxed);
        self.answer.store(limits.answer, Relaxed);
        self.instructions.store(0, Relaxed);
        self.steps.store(0, Relaxed);
        self.nested.store(0, Relaxed);
        self.reached.store(0, Relaxed);
        self.line.store(0, Relaxed);
    }

    /// The limits of the call.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            time: Duration::from_nanos(self.time.load(Relaxed)),
            instructions: self.most_instructions.load(Relaxed),
            memory: self.memory.load(Relaxed),
            string: self.string.load(Relaxed),
            answer: self.answer.load(Relaxed),
        }
    }

    /// The time for which the call has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now().saturating_sub(self.started.load(Relaxed)))
    }

    fn now(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }

    /// Counts work of a function outside the virtual machine; reads the clock from time to time.
    pub(crate) fn step(&self, steps: usize) -> mlua::Result<()> {
        let before = self.steps.load(Relaxed);
        let after = before.saturating_add(steps as u64);
        self.steps.store(after, Relaxed);
        if before / STEPS == after / STEPS {
            return Ok(());
        }
        self.check()
    }

    /// Counts instructions and reads the clock.
    pub(crate) fn count(&self, instructions: u64) -> mlua::Result<()> {
        let used = self.instructions.fetch_add(instructions, Relaxed) + instructions;
        if used > self.most_instructions.load(Relaxed) {
            return Err(self.reach(Reached::Instructions));
        }
        self.check()
    }

    /// Calls a function of the script from a library function.
    pub(crate) fn nested<T>(&self, call: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
        if self.nested.load(Relaxed) >= NESTED {
            return Err(say("library functions call each other too deeply"));
        }
        self.nested.fetch_add(1, Relaxed);
        let result = call();
        self.nested.fetch_sub(1, Relaxed);
        result
    }

    /// Fails if a limit was reached, now or before.
    pub(crate) fn check(&self) -> mlua::Result<()> {
        if let Some(reached) = self.reached() {
            return Err(self.reach(reached));
        }
        if nanos(self.elapsed()) >= self.time.load(Relaxed) {
            return Err(self.reach(Reached::Time));
        }
        Ok(())
    }

    /// Records that a limit was reached; the first one counts. Returns the error that stops the script.
    pub(crate) fn reach(&self, limit: Reached) -> mlua::Error {
        if self.reached().is_none() {
            self.reached.store(limit as u8, Relaxed);
        }
        mlua::Error::runtime("a limit was reached")
    }

    /// Records the line of the script, for the error.
    pub(crate) fn at_line(&self, line: Option<usize>) {
        if self.line.load(Relaxed) == 0 {
            let line = line.and_then(|line| u32::try_from(line).ok());
            self.line.store(line.unwrap_or_default(), Relaxed);
        }
    }

    pub(crate) fn reached(&self) -> Option<Reached> {
        Some(match self.reached.load(Relaxed) {
            1 => Reached::Time,
            2 => Reached::Instructions,
            3 => Reached::Memory,
            _ => return None,
        })
    }

    pub(crate) fn line(&self) -> Option<u32> {
        Some(self.line.load(Relaxed)).filter(|line| *line > 0)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The current line of the script: that of its innermost function, or `None`.
pub(crate) fn current_line(lua: &Lua) -> Option<usize> {
    (0..8)
        .map_while(|level| {
            lua.inspect_stack(level, |debug| {
                let is_script = debug
                    .source()
                    .short_src
                    .is_some_and(|name| name == crate::chunks::CHUNK);
                debug.current_line().filter(|_| is_script)
            })
        })
        .flatten()
        .next()
}
