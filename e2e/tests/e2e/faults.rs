//! Slow, failing and confusing API servers (invariants I7 and I8).

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    faults::FaultPlan,
    harness::{Outline, PATIENCE, Scene, Space, differences, eventually_within, manifests, seed},
    tests,
};
use futures::future::LocalBoxFuture;
use tokio::sync::OnceCell;

tests![
    a_slow_network_changes_nothing,
    errors_before_and_after_the_effect_change_nothing,
    broken_repeated_and_stale_watches_change_nothing,
    calls_that_are_never_answered_change_nothing,
    lost_watch_frames_never_delete_anything,
];

async fn a_slow_network_changes_nothing(scene: &mut Scene) -> Result<()> {
    journey(scene, PATIENCE * 2, "latency=20..80ms watch-delay=0..100ms").await
}

async fn errors_before_and_after_the_effect_change_nothing(scene: &mut Scene) -> Result<()> {
    journey(
        scene,
        PATIENCE * 2,
        "latency=0..10ms error-before=8% error-after=8% status=409,429,500,503,reset",
    )
    .await
}

async fn broken_repeated_and_stale_watches_change_nothing(scene: &mut Scene) -> Result<()> {
    journey(
        scene,
        PATIENCE * 2,
        "watch-cut=8% watch-gone=3% watch-repeat=15% watch-stale=15% watch-delay=0..60ms",
    )
    .await
}

async fn calls_that_are_never_answered_change_nothing(scene: &mut Scene) -> Result<()> {
    scene.options.hub_deadline = Duration::from_secs(1);
    scene.options.member_deadline = Duration::from_secs(1);
    // A list that hangs is given up after five seconds, and after twice as long when it hangs again.
    journey(scene, PATIENCE * 2, "hang=3%").await
}

/// A test under faults: steps, each of which ends as it does without faults.
pub(crate) struct Journey {
    /// The names of the steps.
    pub(crate) steps: &'static [&'static str],
    /// Does one of them.
    pub(crate) take: for<'a> fn(&'static str, &'a Space) -> LocalBoxFuture<'a, Result<()>>,
    /// The state after each step without faults. Made once: it is the same for every kind of fault.
    pub(crate) calm: OnceCell<Vec<Outline>>,
}

/// The steps of the example.
static EXAMPLE: Journey = Journey {
    steps: &[
        "arrives",
        "is edited",
        "moves",
        "drops its reference",
        "is taken away",
    ],
    take: |step, space| Box::pin(take(step, space)),
    calm: OnceCell::const_new(),
};

async fn take(step: &str, space: &Space) -> Result<()> {
    match step {
        "arrives" => {
            for object in manifests::example() {
                space.apply(object).await?;
            }
            Ok(())
        }
        "is edited" => space
            .apply(manifests::config_map("my-config", "two"))
            .await
            .map(drop),
        "moves" => space
            .apply(manifests::policy(&["member2", "member3"]))
            .await
            .map(drop),
        "drops its reference" => space.apply(manifests::deployment("myapp", &[])).await.map(drop),
        _ => space.delete("Deployment", "myapp").await,
    }
}

async fn calm(scene: &mut Scene, journey: &Journey) -> Result<Vec<Outline>> {
    let space = scene.another_space().await?;
    scene.start().await?;
    let mut outlines = Vec::new();
    for step in journey.steps {
        (journey.take)(step, &space).await?;
        scene.quiet().await?;
        outlines.push(space.outline().await?);
    }
    scene.stop().await?;
    Ok(outlines)
}

/// The example's journey under faults.
async fn journey(scene: &mut Scene, patience: Duration, faults: &str) -> Result<()> {
    goes_through(scene, &EXAMPLE, patience, faults).await
}

/// A scene goes through the steps of a journey under faults, and looks after each as it does without.
pub(crate) async fn goes_through(
    scene: &mut Scene,
    journey: &Journey,
    patience: Duration,
    faults: &str,
) -> Result<()> {
    let plan: FaultPlan = format!("seed={} {faults}", seed()).parse()?;
    println!("{plan}");
    let calm = journey
        .calm
        .get_or_try_init(async || calm(scene, journey).await)
        .await?;
    scene.launch(plan.clone())?;
    for (step, wanted) in journey.steps.iter().zip(calm) {
        (journey.take)(step, scene).await?;
        eventually_within(
            patience,
            &format!("it {step} as it does without faults"),
            async || {
                let differences = differences(wanted, &scene.outline().await?);
                ensure!(differences.is_empty(), "{differences:#?}");
                Ok(())
            },
        )
        .await
        .with_context(|| plan.to_string())?;
    }
    let struck = scene.faults.recorder().faults();
    let slow_only = faults.starts_with("latency=20");
    ensure!(!struck.is_empty() || slow_only, "no fault struck: {plan}");
    Ok(())
}

/// No server loses frames; should one do so, nothing that is wanted may be deleted for it.
async fn lost_watch_frames_never_delete_anything(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    let plan: FaultPlan = format!("seed={} watch-drop=40%", seed()).parse()?;
    println!("{plan}");
    scene.stop().await?;
    scene.launch(plan)?;
    scene.controllers()?.ready().await?;
    for round in 0..5 {
        scene
            .apply(manifests::config_map("my-config", &format!("round {round}")))
            .await?;
        scene
            .apply(manifests::deployment("myapp", &["my-config", "second"]))
            .await?;
        scene
            .apply(manifests::config_map("second", &format!("round {round}")))
            .await?;
    }
    scene.quiet().await?;
    let deleted: Vec<String> = scene
        .writes()
        .into_iter()
        .filter(|write| write.starts_with("member") && write.contains(" delete "))
        .collect();
    ensure!(deleted.is_empty(), "{deleted:#?}");
    assert_eq!(
        scene.holders("Deployment", "myapp").await?,
        ["member1", "member2"]
    );
    assert_eq!(
        scene.holders("ConfigMap", "my-config").await?,
        ["member1", "member2"]
    );
    Ok(())
}
