//! The feature gate PropagateDeps.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::json;

tests![switching_the_gate_off_releases_the_finalizer_and_keeps_the_copies];

async fn switching_the_gate_off_releases_the_finalizer_and_keeps_the_copies(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.stop().await?;
    scene.options.propagate_deps = false;
    scene.start().await?;
    scene
        .until_binding("myapp-deployment", |binding| {
            let finalizers = &binding["metadata"]["finalizers"];
            ensure!(
                *finalizers == json!(["karmada.io/binding-controller"]),
                "{finalizers}"
            );
            Ok(())
        })
        .await?;
    // Nothing new follows, what followed stays.
    scene
        .apply(manifests::deployment("myapp", &["my-config", "second"]))
        .await?;
    scene.apply(manifests::config_map("second", "x")).await?;
    scene
        .until_copy("member1", "Deployment", "myapp", |copy| {
            let volumes = copy["spec"]["template"]["spec"]["volumes"]
                .as_array()
                .map(Vec::len);
            ensure!(volumes == Some(2), "{volumes:?} volumes");
            Ok(())
        })
        .await?;
    scene.quiet().await?;
    assert_eq!(
        scene.holders("ConfigMap", "my-config").await?,
        ["member1", "member2"]
    );
    assert_eq!(scene.holders("ConfigMap", "second").await?, [""; 0]);
    scene.stop().await?;
    scene.options.propagate_deps = true;
    scene.start().await?;
    scene
        .until_held("ConfigMap", "second", &["member1", "member2"])
        .await?;
    scene.until_settled(&["member1", "member2"]).await
}
