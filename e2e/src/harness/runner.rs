//! Runs the tests of one binary in one process, one after the other.
//!
//! libtest-mimic gives the command line that cargo and its friends expect (`--list`, a filter, `--exact` …). A runner
//! that starts a process per test, as nextest does, starts a fleet per test: use `cargo test`.

use std::{
    io::Write as _,
    panic::AssertUnwindSafe,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use futures::{FutureExt as _, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use super::{bed::Bed, capture::Capture, report::report, scene::Scene};
use crate::servers::Assets;

/// How long a test may take in all. A hang is a failure that says so.
const LONGEST: Duration = Duration::from_secs(240);

/// One test.
#[derive(Clone, Copy)]
pub struct Test {
    path: &'static str,
    run: for<'a> fn(&'a mut Scene) -> LocalBoxFuture<'a, Result<()>>,
}

impl Test {
    /// A test and its path, which begins with the crate's name.
    #[must_use]
    pub const fn new(
        path: &'static str,
        run: for<'a> fn(&'a mut Scene) -> LocalBoxFuture<'a, Result<()>>,
    ) -> Self {
        Self { path, run }
    }

    fn name(&self) -> &'static str {
        self.path.split_once("::").map_or(self.path, |(_, name)| name)
    }
}

/// What the tests of a process share.
struct Shared {
    runtime: Runtime,
    assets: Assets,
    log: Capture,
    bed: Mutex<Option<Arc<Bed>>>,
}

/// The whole program.
#[must_use]
pub fn main(tests: Vec<Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    entourage::install_tls_provider();
    let Some(assets) = Assets::from_env() else {
        eprintln!(
            "{} end-to-end tests were NOT run: they need real API servers, and KUBEBUILDER_ASSETS names none.\n\
             With setup-envtest or hack/real-apiserver.sh: export KUBEBUILDER_ASSETS=\"$(bash hack/real-apiserver.sh | \
             tail -1)\"",
            tests.len()
        );
        let listed = tests
            .into_iter()
            .map(|test| Trial::test(test.name(), || Ok(())))
            .collect();
        let none = if arguments.list { listed } else { Vec::new() };
        return libtest_mimic::run(&arguments, none).exit_code();
    };
    let runtime = match Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let shared = Arc::new(Shared {
        runtime,
        assets,
        log: Capture::install(),
        bed: Mutex::new(None),
    });
    let trials = tests.into_iter().map(|test| {
        let shared = shared.clone();
        Trial::test(test.name(), move || shared.run(test))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let bed = shared.bed.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(bed) = bed {
        let dir = bed.dir().to_owned();
        drop(bed);
        if conclusion.has_failed() {
            println!(
                "the servers' logs and the logs of failed tests are in {}",
                dir.display()
            );
        } else if let Err(error) = std::fs::remove_dir_all(&dir) {
            eprintln!("{} stays: {error}", dir.display());
        }
    }
    conclusion.exit_code()
}

impl Shared {
    fn run(&self, test: Test) -> Result<(), Failed> {
        let begin = Instant::now();
        let result = self.runtime.block_on(self.play(test));
        print!("({:.1} s) ", begin.elapsed().as_secs_f32());
        // It only decorates the runner's own line.
        let _ = std::io::stdout().flush();
        result.map_err(|error| Failed::from(format!("{error:#}")))
    }

    async fn play(&self, test: Test) -> Result<()> {
        let bed = self.bed().await.context("starting the servers")?;
        let mut scene = Scene::open(bed.clone(), test.name().rsplit("::").next().unwrap_or_default()).await?;
        let begin = Instant::now();
        let scene = &mut scene;
        let outcome = {
            let played = async {
                (test.run)(scene).await?;
                scene
                    .close()
                    .await
                    .context("after the test, while everything it made was deleted")
            };
            let limit = if every_k() { LONGEST * 20 } else { LONGEST };
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
        let told = report(scene).await;
        let file = bed.dir().join(format!("{}.log", test.name().replace("::", ".")));
        // The runner prints what failed when all tests have run; the file is there at once, and has the whole log.
        let _ = std::fs::write(
            &file,
            format!("{error:#}\n{told}--- the whole log\n{}", bed.log.tail(usize::MAX)),
        );
        let cleared = scene.clear_away().await;
        let cleared = cleared.err().map_or_else(String::new, |error| {
            format!("\n--- clearing away failed: {error:#}")
        });
        Err(anyhow!(
            "{error:#}\n{told}--- the whole log: {}{cleared}",
            file.display()
        ))
    }

    async fn bed(&self) -> Result<Arc<Bed>> {
        let held = self.bed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(bed) = held {
            return Ok(bed);
        }
        let begin = Instant::now();
        let dir = std::env::temp_dir().join(format!("entourage-e2e-{}", std::process::id()));
        let bed = Arc::new(Bed::start(&self.assets, &dir, self.log.clone()).await?);
        println!(
            "\na hub and {} members of {} are ready after {:.1} s",
            bed.members.len(),
            self.assets.version()?,
            begin.elapsed().as_secs_f32()
        );
        *self.bed.lock().unwrap_or_else(PoisonError::into_inner) = Some(bed.clone());
        Ok(bed)
    }
}

/// Whether every crash is tried instead of a sample: `ENTOURAGE_E2E_EVERY_K=1`.
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
    match std::env::var("ENTOURAGE_E2E_SEED") {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("ENTOURAGE_E2E_SEED={text} is no number")),
        Err(_) => {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(1, |since| since.as_secs() / 86_400)
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}
