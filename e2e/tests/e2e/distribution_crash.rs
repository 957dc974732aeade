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
    a_takeover_survives_a_crash_after_any_write,
    a_copy_that_is_made_again_survives_a_crash_after_any_write,
    a_strict_distribution_whose_gate_opens_survives_a_crash_after_any_write,
    a_distribution_that_moves_to_another_member_survives_a_crash_after_any_write,
    a_distribution_that_leaves_members_survives_a_crash_after_any_write,
    a_distribution_that_lets_go_on_members_survives_a_crash_after_any_write,
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

/// In one namespace an update takes it over, in another one it must be made again.
async fn a_takeover_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                namespaces(space).await?;
                let mut theirs = manifests::config_map("shared", "theirs");
                theirs["metadata"]["namespace"] = json!(space.own("b"));
                theirs["immutable"] = json!(true);
                space.hub.apply(&theirs).await.map(drop)
            })
        },
        arrived: |_| Box::pin(async { Ok(()) }),
        act: |space| Box::pin(distributes(space, "one", &MORE, "Orphan")),
    };
    survives_crashes(scene, scenario).await
}

async fn a_copy_that_is_made_again_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                namespaces(space).await?;
                immutable(space, "one").await
            })
        },
        arrived: |space| Box::pin(async { space.until_counts("rd", 2, 2, 0).await.map(drop) }),
        act: |space| Box::pin(immutable(space, "two")),
    };
    survives_crashes(scene, scenario).await
}

/// The object in conflict is deleted, and the content changes while the gate opens.
async fn a_strict_distribution_whose_gate_opens_survives_a_crash_after_any_write(
    scene: &mut Scene,
) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                namespaces(space).await?;
                strict(space, "one").await
            })
        },
        arrived: |space| Box::pin(async { space.until_counts("rd", 3, 0, 3).await.map(drop) }),
        act: |space| {
            Box::pin(async {
                space.hub.delete("ConfigMap", &space.own("c"), "shared").await?;
                strict(space, "two").await
            })
        },
    };
    survives_crashes(scene, scenario).await
}

async fn a_distribution_that_lets_go_on_members_survives_a_crash_after_any_write(
    scene: &mut Scene,
) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                let mut targets = included(&[&space.ns]);
                targets["clusters"] = json!({"clusterNames": ["member1", "member2"]});
                let spec = json!({
                    "resource": manifests::config_map("shared", "one"), "targets": targets, "deletionPolicy": "Orphan",
                });
                space.distribute_as("rd", spec).await.map(drop)
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

/// Three namespaces, the last with an unmanaged object.
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

/// Some of them get copies, and existing objects there are taken over.
async fn distributes(space: &Space, value: &str, into: &[&str], policy: &str) -> Result<()> {
    let names: Vec<String> = into.iter().map(|name| space.own(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec: Value = json!({
        "resource": manifests::config_map("shared", value), "targets": included(&names),
        "writePolicy": "overwrite", "deletionPolicy": policy,
    });
    space.distribute_as("rd", spec).await.map(drop)
}

/// Into two of them, so that only another copy can hold something else.
async fn immutable(space: &Space, value: &str) -> Result<()> {
    let (a, b) = (space.own("a"), space.own("b"));
    let mut resource = manifests::config_map("shared", value);
    resource["immutable"] = json!(true);
    space
        .distribute("rd", &resource, &included(&[&a, &b]))
        .await
        .map(drop)
}

/// Into all of them, or none.
async fn strict(space: &Space, value: &str) -> Result<()> {
    let names = MORE.map(|name| space.own(name));
    let names = names.each_ref().map(String::as_str);
    let spec = json!({
        "resource": manifests::config_map("shared", value), "targets": included(&names), "writePolicy": "strict",
    });
    space.distribute_as("rd", spec).await.map(drop)
}
