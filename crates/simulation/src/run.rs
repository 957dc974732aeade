//! The run of a process on its servers: keys are planned one after another, and each change is carried out, until nothing is
//! left to do. Time is virtual.

use std::ops::ControlFlow;

use entourage_core::{
    object::Time,
    observation::Watch,
    plan::{Change, Key, Plan},
};

use crate::{
    environment::Environment,
    executor::Outcome,
    notifications::{observe, open},
};

/// The driver of a run. The methods with a body are those of a run without disturbances.
pub trait Run: Environment {
    /// The reason why a run ends before nothing is left to do.
    type Stop;

    /// The next watch to open.
    fn next_watch(&mut self) -> Option<Watch>;

    /// A watch was closed.
    fn closed(&mut self, _: &Watch) {}

    /// Begins a turn: true if it was used up, so that no key is planned in it.
    fn turn(&mut self) -> ControlFlow<Self::Stop, bool>;

    /// The next key to plan.
    fn next_key(&mut self) -> Option<Key> {
        self.process_mut().next_key()
    }

    /// True if a plan is not carried out now.
    fn defers(&mut self, key: &Key, plan: &Plan) -> bool;

    /// Carries out a change of a plan that was made for these reasons.
    fn carry_out(&mut self, change: Change, why: &[String]) -> ControlFlow<Self::Stop, Outcome>;

    /// No key is left: true if something else was done.
    fn idle(&mut self) -> ControlFlow<Self::Stop, bool>;

    /// The time after which a plan that failed is made again, in milliseconds; 0 makes it again at once, so that time does not
    /// pass for a plan that always fails.
    fn retry(&self) -> i64 {
        1_000
    }

    /// The next time at which there is something to do, other than for a timer.
    fn wakes_at(&self) -> Option<Time> {
        None
    }
}

/// Runs until nothing is left to do before this time. Cost: O(plans), each as named at its planner.
pub fn run<R: Run>(run: &mut R, until: Time) -> ControlFlow<R::Stop> {
    loop {
        open_watches(run);
        if run.turn()? {
            continue;
        }
        if let Some(key) = run.next_key() {
            work(run, &key)?;
        } else if !run.idle()? && !pass_time(run, until) {
            return ControlFlow::Continue(());
        }
    }
}

/// Closes and opens watches as the process demands.
pub fn open_watches<R: Run>(run: &mut R) {
    loop {
        for watch in run.process_mut().close() {
            run.closed(&watch);
        }
        let Some(watch) = run.next_watch() else { return };
        open(run, &watch);
    }
}

/// Plans a key and carries out the plan.
pub fn work<R: Run>(run: &mut R, key: &Key) -> ControlFlow<R::Stop> {
    let now = run.servers().now;
    let plan = run.process_mut().plan(key, now);
    if run.defers(key, &plan) {
        return ControlFlow::Continue(());
    }
    run.process_mut().start(&plan, now);
    act(run, key, plan)
}

/// Carries out a plan, each change a millisecond after the one before. After a failure the rest of the plan is dropped, and the
/// key is planned again a little later.
pub fn act<R: Run>(run: &mut R, key: &Key, plan: Plan) -> ControlFlow<R::Stop> {
    for change in plan.changes {
        let outcome = run.carry_out(change, &plan.why)?;
        let now = run.servers().now.plus(1);
        run.servers_mut().now = now;
        for seen in outcome.seen {
            observe(run, seen);
        }
        if outcome.failed {
            let retry = run.retry();
            let process = run.process_mut();
            if retry == 0 {
                process.queue.insert(key.clone());
            } else {
                process.timers.insert(key.clone(), now.plus(retry));
            }
            break;
        }
    }
    ControlFlow::Continue(())
}

/// Advances time to the next timer, or to [`Run::wakes_at`]; false if neither comes before this time is over.
pub fn pass_time<R: Run>(run: &mut R, until: Time) -> bool {
    let timers = run.process().timers.iter();
    let timer = timers.map(|(key, time)| (*time, key.clone())).min();
    let times = timer
        .as_ref()
        .map(|(time, _)| *time)
        .into_iter()
        .chain(run.wakes_at());
    let Some(time) = times.min().filter(|time| *time <= until) else {
        return false;
    };
    let servers = run.servers_mut();
    servers.now = servers.now.max(time);
    if timer.is_some_and(|(at, _)| at == time) {
        // All of that time: in a process they are queued before the first of them is planned.
        let process = run.process_mut();
        let due = process.timers.iter().filter(|(_, at)| **at == time);
        let due: Vec<Key> = due.map(|(key, _)| key.clone()).collect();
        process.timers.retain(|_, at| *at != time);
        process.queue.extend(due);
    }
    true
}
