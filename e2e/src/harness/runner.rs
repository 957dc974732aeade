//! Runs the tests of one binary in one process, on both lanes.
//!
//! On the **embedded** lane every test has a hub and three members of its own, and several tests run at a time; it needs
//! nothing but this program. On the **real** lane (with `KUBEBUILDER_ASSETS`) there are a few fleets of real API servers,
//! started when they are first needed; each runs one test after the other. libtest-mimic gives the command line that cargo
//! and its friends expect (`--list`, a filter, `--exact` …). A runner that starts a process per test, as nextest does,
//! starts a fleet per test: use `cargo test`.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    panic::AssertUnwindSafe,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use futures::{FutureExt as _, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use super::{
    bed::{Bed, MEMBERS},
    capture::Capture,
    report::report,
    scene::Scene,
};
use crate::servers::{Assets, Fleet};

/// The timeout of a test. A test that hangs fails with a message; a crash after every write takes a minute alone, and five
/// where the other tests and a build share two cores with it.
const LONGEST: Duration = Duration::from_secs(1_200);

/// The number of concurrent tests on the embedded lane: they mostly wait until they can be sure that nothing happens.
const AT_A_TIME: usize = 16;

/// The maximum number of fleets of real API servers, and so of concurrent tests on the real lane. A fleet
/// takes about 1.2 GB, and its idle servers a tenth of a core.
const FLEETS: usize = 3;

/// The default number of seeds of failovers under faults.
const FAILOVERS: usize = 3;

/// The number of slowest tests that are listed at the end of a lane.
const SLOWEST: usize = 10;

/// One test.
#[derive(Clone, Copy)]
pub struct Test {
    path: &'static str,
    run: for<'a> fn(&'a mut Scene) -> LocalBoxFuture<'a, Result<()>>,
    lanes: &'static [Lane],
    plain: bool,
    ignored: Option<&'static str>,
}

/// The kinds of servers that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Embedded clusters, fresh for each test.
    Embedded,
    /// Real API servers, used by one test after the other.
    Real,
}

impl Lane {
    /// Its name in the names of tests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        }
    }
}

impl Test {
    /// A test of both lanes and its path, which begins with the crate's name.
    #[must_use]
    pub const fn new(
        path: &'static str,
        run: for<'a> fn(&'a mut Scene) -> LocalBoxFuture<'a, Result<()>>,
    ) -> Self {
        Self {
            path,
            run,
            lanes: &[Lane::Embedded, Lane::Real],
            plain: false,
            ignored: None,
        }
    }

    /// The same on one lane only.
    #[must_use]
    pub const fn only(self, lanes: &'static [Lane]) -> Self {
        Self { lanes, ..self }
    }

    /// The same without controllers, also at its end.
    #[must_use]
    pub const fn plain(self) -> Self {
        Self { plain: true, ..self }
    }

    /// The same, ignored for a reason, if there is one.
    #[must_use]
    pub const fn unless(self, ignored: Option<&'static str>) -> Self {
        Self { ignored, ..self }
    }

    fn name(&self) -> &'static str {
        self.path.split_once("::").map_or(self.path, |(_, name)| name)
    }
}

/// The state that the tests of a lane share.
struct Shared {
    lane: Lane,
    runtime: Runtime,
    assets: Option<Assets>,
    log: Capture,
    /// The fleets of the real lane that no test uses now.
    idle: Mutex<Vec<Arc<Bed>>>,
    dir: PathBuf,
    /// The number of fleets that were started.
    begun: AtomicUsize,
    times: Mutex<Vec<(Duration, &'static str)>>,
}

/// The whole program. `more` are tests that need no scene; they run with the embedded lane.
#[must_use]
pub fn main(tests: &[Test], more: Vec<Trial>) -> ExitCode {
    let arguments = Arguments::from_args();
    entourage::install_tls_provider();
    let log = Capture::install();
    let assets = Assets::from_env();
    if assets.is_none() {
        eprintln!(
            "{} end-to-end tests run on embedded clusters only: KUBEBUILDER_ASSETS names no real API servers.\nWith \
             setup-envtest or hack/real-apiserver.sh: export KUBEBUILDER_ASSETS=\"$(bash hack/real-apiserver.sh | tail \
             -1)\"",
            tests.len()
        );
    }
    let embedded = lane(Lane::Embedded, &arguments, tests, more, None, &log);
    let real = match assets {
        Some(assets) => lane(Lane::Real, &arguments, tests, Vec::new(), Some(assets), &log),
        None => Ok(true),
    };
    match (embedded, real) {
        (Ok(true), Ok(true)) => ExitCode::SUCCESS,
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
        _ => ExitCode::from(101),
    }
}

/// Runs the tests of a lane; whether all passed.
fn lane(
    lane: Lane,
    arguments: &Arguments,
    tests: &[Test],
    more: Vec<Trial>,
    assets: Option<Assets>,
    log: &Capture,
) -> Result<bool> {
    let mut arguments = arguments.clone();
    let at_a_time = match lane {
        Lane::Real => FLEETS,
        Lane::Embedded => AT_A_TIME,
    };
    arguments.test_threads = arguments.test_threads.or(Some(at_a_time));
    let shared = Arc::new(Shared {
        lane,
        runtime: Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?,
        assets,
        log: log.clone(),
        idle: Mutex::default(),
        dir: std::env::temp_dir().join(format!("entourage-e2e-{}-{}", lane.name(), std::process::id())),
        begun: AtomicUsize::new(0),
        times: Mutex::default(),
    });
    let chosen = tests
        .iter()
        .filter(|test| test.lanes.contains(&lane))
        .map(|test| {
            let (shared, test) = (shared.clone(), *test);
            let trial = Trial::test(format!("{}::{}", lane.name(), test.name()), move || {
                shared.run(test)
            });
            match test.ignored {
                Some(reason) => trial.with_kind(reason).with_ignored_flag(true),
                None => trial,
            }
        });
    let mut trials: Vec<Trial> = chosen.chain(more).collect();
    if let Some(seed) = number("ENTOURAGE_E2E_ORDER") {
        trials.sort_by_cached_key(|trial| shuffled(seed, trial.name()));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(std::mem::take(&mut *shared.idle()));
    shared.tell_slowest();
    if shared.dir.exists() {
        if conclusion.has_failed() {
            println!("logs of failed tests are in {}", shared.dir.display());
        } else if let Err(error) = std::fs::remove_dir_all(&shared.dir) {
            eprintln!("{} stays: {error}", shared.dir.display());
        }
    }
    Ok(!conclusion.has_failed())
}

impl Shared {
    fn run(&self, test: Test) -> Result<(), Failed> {
        let begin = Instant::now();
        let result = self.runtime.block_on(async {
            let bed = self.bed().await.context("starting the servers")?;
            let result = self.play(test, &bed).await;
            if self.lane == Lane::Real {
                self.idle().push(bed);
            }
            result
        });
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push((begin.elapsed(), test.name()));
        result.map_err(|error| Failed::from(format!("{error:#}")))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Bed>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the tests that took longest, with the time that each had its servers.
    fn tell_slowest(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.sort_unstable_by(|a, b| b.cmp(a));
        if times.len() > SLOWEST {
            println!("the slowest tests of the {} lane:", self.lane.name());
            for (took, name) in times.iter().take(SLOWEST) {
                println!("{:>7.1} s {name}", took.as_secs_f32());
            }
        }
    }

    async fn play(&self, test: Test, bed: &Arc<Bed>) -> Result<()> {
        let mut scene = Scene::open(bed.clone(), test.name().rsplit("::").next().unwrap_or_default()).await?;
        let begin = Instant::now();
        let scene = &mut scene;
        let outcome = {
            let played = async {
                (test.run)(scene).await?;
                let end = async {
                    match test.plain {
                        true => scene.leave().await,
                        false => scene.close().await,
                    }
                };
                end.await
                    .context("after the test, while everything it made was deleted")
            };
            let limit = if every_k() || failovers().count() > FAILOVERS {
                LONGEST * 20
            } else {
                LONGEST
            };
            let bounded = tokio::time::timeout(limit, AssertUnwindSafe(played).catch_unwind());
            match bounded.await {
                Err(_) => Err(anyhow!(
                    "still running after {:.0} s",
                    begin.elapsed().as_secs_f32()
                )),
                Ok(Err(panic)) => Err(anyhow!("{}", message(&*panic))),
                Ok(Ok(result)) => result,
            }
        };
        let Err(error) = outcome else { return Ok(()) };
        // What hangs would not tell either. A failure shows when clearing away fails as well.
        let _ = bed.repair().await;
        let reported = report(scene).await;
        let file = self.dir.join(format!("{}.log", test.name().replace("::", ".")));
        // The runner prints what failed when all tests have run; the file is there at once, and has the whole log.
        let _ = std::fs::create_dir_all(&self.dir);
        let _ = std::fs::write(
            &file,
            format!(
                "{error:#}\n{reported}--- the whole log\n{}",
                bed.log.tail(usize::MAX)
            ),
        );
        let cleared = match self.lane {
            Lane::Real => scene.clear_away().await,
            // Its servers go with it.
            Lane::Embedded => Ok(()),
        };
        let cleared = cleared.err().map_or_else(String::new, |error| {
            format!("\n--- clearing away failed: {error:#}")
        });
        Err(anyhow!(
            "{error:#}\n{reported}--- the whole log: {}{cleared}",
            file.display()
        ))
    }

    /// Servers that no other test uses: fresh ones on the embedded lane, an idle fleet or one more on the real lane.
    async fn bed(&self) -> Result<Arc<Bed>> {
        if let Some(bed) = self.idle().pop() {
            return Ok(bed);
        }
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(number.to_string());
        let log = self.log.of(&format!("control-{number}"));
        let Some(assets) = &self.assets else {
            let fleet = Fleet::embedded(MEMBERS.len(), &dir).await?;
            return Ok(Arc::new(Bed::start(fleet, &dir, log).await?));
        };
        let begin = Instant::now();
        let fleet = Fleet::start(assets, MEMBERS.len(), &dir).await?;
        let bed = Arc::new(Bed::start(fleet, &dir, log).await?);
        println!(
            "a hub and {} members of {} are ready after {:.1} s",
            bed.members.len(),
            assets.version()?,
            begin.elapsed().as_secs_f32()
        );
        Ok(bed)
    }
}

/// True if every crash is tried instead of a sample: `ENTOURAGE_E2E_EVERY_K=1`.
#[must_use]
pub fn every_k() -> bool {
    std::env::var("ENTOURAGE_E2E_EVERY_K").is_ok_and(|text| text == "1")
}

/// The seed of this run: `ENTOURAGE_E2E_SEED`, or one that is different from day to day.
///
/// # Panics
/// When the variable is no number.
#[must_use]
pub fn seed() -> u64 {
    number("ENTOURAGE_E2E_SEED").unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(1, |since| since.as_secs() / 86_400)
    })
}

/// The seeds of failovers under faults: that of `ENTOURAGE_E2E_SEED`, or `ENTOURAGE_E2E_FAILOVERS` of them, from that or the
/// first on; a few without either.
///
/// # Panics
/// When one of the variables is no number.
#[must_use]
pub fn failovers() -> std::ops::Range<u64> {
    let seed = number("ENTOURAGE_E2E_SEED");
    let usual = if seed.is_some() { 1 } else { FAILOVERS as u64 };
    let (first, count) = (
        seed.unwrap_or(1),
        number("ENTOURAGE_E2E_FAILOVERS").unwrap_or(usual),
    );
    first..first.saturating_add(count)
}

/// The number that an environment variable has, if it is set.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

/// The place of a test in the order of a seed.
fn shuffled(seed: u64, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, name).hash(&mut hasher);
    hasher.finish()
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}
