//! A crash after any write of a ResourceDistribution leads to the same end as no crash.

use anyhow::Result;
use entourage_e2e::{
    harness::{Scene, Space, included, manifests},
    tests,
};
use serde_json::{Value, json};

use crate::crash::{Scenario, survives_crashes};

tests![Embedded:
    a_new_distribution_survives_a_crash_after_any_write,
    a_changed_and_moved_distribution_survives_a_crash_after_any_write,
    a_distribution_that_lets_go_survives_a_crash_after_any_write,
    a_distribution_that_moves_to_another_member_survives_a_crash_after_any_write,
    a_distribution_that_leaves_members_survives_a_crash_after_any_write,
];

/// The further namespaces of a space.
const MORE: [&str; 3] = ["a", "b", "c"];

async fn a_new_distribution_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| Box::pin(namespaces(space)),
        arrived: |_| Box::pin(async { Ok(()) }),
        act: |space| Box::pin(distributes(space, "one", &["a", "b"], "Delete")),
    };
    survives_crashes(scene, scenario).await
}

async fn a_changed_and_moved_distribution_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                namespaces(space).await?;
                distributes(space, "one", &["a", "b"], "Delete").await
            })
        },
        arrived: |space| Box::pin(async { space.until_counts("rd", 2, 2, 0).await.map(drop) }),
        act: |space| Box::pin(distributes(space, "two", &["b", "c"], "Delete")),
    };
    survives_crashes(scene, scenario).await
}

async fn a_distribution_that_lets_go_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                namespaces(space).await?;
                distributes(space, "one", &["a", "b"], "Orphan").await
            })
        },
        arrived: |space| Box::pin(async { space.until_counts("rd", 2, 2, 0).await.map(drop) }),
        act: |space| Box::pin(space.end_distribution("rd", "Background")),
    };
    survives_crashes(scene, scenario).await
}

async fn a_distribution_that_moves_to_another_member_survives_a_crash_after_any_write(
    scene: &mut Scene,
) -> Result<()> {
    let scenario = Scenario {
        given: |space| Box::pin(on_members(space, "one", &["member1", "member2"])),
        arrived: |space| Box::pin(async { space.until_counts("rd", 2, 2, 0).await.map(drop) }),
        act: |space| Box::pin(on_members(space, "two", &["member2", "member3"])),
    };
    survives_crashes(scene, scenario).await
}

async fn a_distribution_that_leaves_members_survives_a_crash_after_any_write(
    scene: &mut Scene,
) -> Result<()> {
    let scenario = Scenario {
        given: |space| Box::pin(on_members(space, "one", &["member1", "member2"])),
        arrived: |space| Box::pin(async { space.until_counts("rd", 2, 2, 0).await.map(drop) }),
        act: |space| Box::pin(space.end_distribution("rd", "Background")),
    };
    survives_crashes(scene, scenario).await
}

/// Into the namespace of the space on members.
async fn on_members(space: &Space, value: &str, members: &[&str]) -> Result<()> {
    let mut targets = included(&[&space.ns]);
    targets["clusters"] = json!({"clusterNames": members});
    space
        .distribute("rd", &manifests::config_map("shared", value), &targets)
        .await
        .map(drop)
}

/// Three namespaces, and what is somebody else's in the last.
async fn namespaces(space: &Space) -> Result<()> {
    for name in MORE {
        let name = space.own(name);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        space.hub.apply(&namespace).await?;
    }
    let mut theirs = manifests::config_map("shared", "theirs");
    theirs["metadata"]["namespace"] = json!(space.own("c"));
    space.hub.apply(&theirs).await.map(drop)
}

/// Into some of them, and what stands there is taken over.
async fn distributes(space: &Space, value: &str, into: &[&str], policy: &str) -> Result<()> {
    let names: Vec<String> = into.iter().map(|name| space.own(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec: Value = json!({
        "resource": manifests::config_map("shared", value), "targets": included(&names),
        "writePolicy": "overwrite", "deletionPolicy": policy,
    });
    space.distribute_as("rd", spec).await.map(drop)
}
