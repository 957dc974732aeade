//! ResourceDistributions carried out by accounts that may read Secrets and ConfigMaps of certain names only.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, Server, eventually, included, manifests, status_code},
    tests,
};
use serde_json::{Value, json};

tests![
    an_account_limited_to_the_distributed_names_is_enough_on_the_hub_and_on_members,
    what_the_account_may_not_list_is_reported_and_holds_no_distribution_up,
];

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The roles of the controllers, as they are granted: see `config/rbac` and `config/rbac-distribution`.
const ROLES: [&str; 2] = [
    include_str!("../../../config/rbac/role.yaml"),
    include_str!("../../../config/rbac-distribution/role.yaml"),
];

/// The kinds whose names count.
const BY_NAME: [&str; 2] = ["configmaps", "secrets"];

/// The rules of a role without what they grant on ConfigMaps and Secrets.
fn without_content(rules: &Value) -> Vec<Value> {
    let mut kept = Vec::new();
    for rule in rules.as_array().into_iter().flatten() {
        let mut rule = rule.clone();
        if let Some(resources) = rule["resources"].as_array_mut() {
            resources.retain(|resource| !BY_NAME.iter().any(|name| resource == name));
            if resources.is_empty() {
                continue;
            }
        }
        kept.push(rule);
    }
    kept
}

/// Everything on objects of a name, and to create any.
fn by_name(name: &str) -> [Value; 2] {
    [
        json!({
            "apiGroups": [""], "resources": BY_NAME, "resourceNames": [name],
            "verbs": ["delete", "get", "list", "patch", "update", "watch"],
        }),
        json!({"apiGroups": [""], "resources": BY_NAME, "verbs": ["create"]}),
    ]
}

/// Has controllers that are started later work as a user whose rights on ConfigMaps and Secrets end at this name. The members'
/// credentials are read as ever. Returns the paths of what must be deleted.
async fn limit(scene: &mut Scene, name: &str) -> Result<Vec<String>> {
    let (mut rules, mut namespaced) = (by_name(name).to_vec(), Vec::new());
    for text in ROLES {
        let (everywhere, there) = roles(text)?;
        rules.extend(without_content(&json!(everywhere)));
        namespaced.extend(there);
    }
    granted(scene, &rules, namespaced).await
}

/// Rules that hold in one namespace each.
pub(super) type Namespaced = Vec<(String, Value)>;

/// The rules of the roles in a file: everywhere, and in single namespaces.
pub(super) fn roles(text: &str) -> Result<(Vec<Value>, Namespaced)> {
    let (mut rules, mut namespaced) = (Vec::new(), Vec::new());
    for text in text.split("\n---\n") {
        let role: Value = serde_saphyr::from_str(text).context("a role")?;
        match role["metadata"]["namespace"].as_str() {
            None => rules.extend(role["rules"].as_array().into_iter().flatten().cloned()),
            Some(namespace) => namespaced.push((namespace.to_owned(), role["rules"].clone())),
        }
    }
    Ok((rules, namespaced))
}

/// Has controllers that are started later work as a user with these rights on the hub and no others. Returns the paths
/// of what must be deleted, for [`unlimit`].
pub(super) async fn granted(
    scene: &mut Scene,
    rules: &[Value],
    namespaced: Namespaced,
) -> Result<Vec<String>> {
    let user = scene.own("limited");
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]);
    let mut made = Vec::new();
    let mut grant = async |root: String, kind: &str, rules: Value| -> Result<()> {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": user}, "rules": rules,
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}, "subjects": subjects,
        });
        let plural = kind.to_lowercase();
        for (path, object) in [
            (format!("{root}/{plural}s"), role),
            (format!("{root}/{plural}bindings"), binding),
        ] {
            scene.hub.call("POST", &path, Some(&object)).await?;
            made.push(format!("{path}/{user}"));
        }
        Ok(())
    };
    let everywhere = json!(rules);
    let mut granted = vec![(String::new(), everywhere.clone())];
    grant(RBAC.to_owned(), "ClusterRole", everywhere).await?;
    for (namespace, rules) in namespaced {
        if scene.hub.get("Namespace", "", &namespace).await?.is_some() {
            grant(format!("{RBAC}/namespaces/{namespace}"), "Role", rules.clone()).await?;
            granted.push((namespace, rules));
        }
    }
    for (namespace, rules) in &granted {
        until_granted(&scene.hub, &user, namespace, rules).await?;
    }
    scene.user = Some(user);
    Ok(made)
}

/// Waits until a server lets a user do what a role says: a real one learns of roles and bindings by watches of its own.
pub(super) async fn until_granted(server: &Server, user: &str, namespace: &str, rules: &Value) -> Result<()> {
    let is_of_kind = |rule: &&Value| rule["resources"].is_array();
    let Some(rule) = rules.as_array().into_iter().flatten().find(is_of_kind) else {
        return Ok(());
    };
    let name = rule["resourceNames"][0].as_str().unwrap_or_default();
    let resource = rule["resources"][0].as_str().unwrap_or_default();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": {
            "namespace": namespace, "verb": rule["verbs"][0], "group": rule["apiGroups"][0],
            "resource": resource, "subresource": subresource, "name": name,
        }},
    });
    eventually("the server grants the rights", async || {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let reviewed = server.call("POST", path, Some(&review)).await?;
        ensure!(
            reviewed["status"]["allowed"] == true,
            "{rule}: {}",
            reviewed["status"]
        );
        Ok(())
    })
    .await
}

/// Gives the controllers everything again.
pub(super) async fn unlimit(scene: &mut Scene, made: &[String]) -> Result<()> {
    scene.user = None;
    for path in made {
        match scene.hub.call("DELETE", path, None).await {
            Err(error) if status_code(&error) == 404 => {}
            result => drop(result?),
        }
    }
    Ok(())
}

/// The names of the ClusterRoles that the controllers have on a member.
async fn roles_on(scene: &Scene, member: &str) -> Result<Vec<String>> {
    let all = scene.member(member)?.list("ClusterRole", "", "").await?;
    let names = all.iter().filter_map(|role| role["metadata"]["name"].as_str());
    Ok(names
        .filter(|name| name.starts_with("entourage"))
        .map(str::to_owned)
        .collect())
}

/// The lines of the log that tell of a list that was refused.
fn refused(scene: &Scene, resource: &str) -> Vec<String> {
    let mut lines = scene.bed.log.with("cannot list");
    lines.retain(|line| line.contains(&format!("resource={resource}")));
    lines
}

async fn an_account_limited_to_the_distributed_names_is_enough_on_the_hub_and_on_members(
    scene: &mut Scene,
) -> Result<()> {
    let name = scene.own("pull");
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let mut theirs = manifests::secret(&name, "theirs");
    theirs["metadata"]["namespace"] = json!(b);
    scene.hub.create(&theirs).await?;
    for role in roles_on(scene, "member1").await? {
        let limit = |live: &mut Value| {
            let mut rules = without_content(&live["rules"]);
            rules.extend(by_name(&name));
            live["rules"] = json!(rules);
        };
        scene
            .member("member1")?
            .edit("ClusterRole", "", &role, limit)
            .await?;
    }
    let made = limit(scene, &name).await?;
    let tested = limited(scene, &name, [&a, &b]).await;
    // Removes also the objects that were created for another test's account, when this one fails.
    unlimit(scene, &made).await?;
    if scene.controllers().is_ok() {
        scene.stop().await?;
    }
    scene.bed.restore().await?;
    tested
}

async fn limited(scene: &mut Scene, name: &str, [a, b]: [&str; 2]) -> Result<()> {
    scene.start().await?;
    let secret = manifests::secret(name, "one");
    scene.distribute("rd", &secret, &included(&[a, b])).await?;
    scene.until_counts("rd", 2, 1, 1).await?;
    scene.hub.delete("Secret", b, name).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    let spoil = |live: &mut Value| live["data"] = json!({});
    let as_wanted = |value: &'static str| {
        move |copy: &Value| {
            ensure!(copy["data"]["key"] == value, "other data");
            Ok(())
        }
    };
    scene.hub.edit("Secret", a, name, spoil).await?;
    scene.until_there("Secret", a, name, as_wanted("b25l")).await?;
    let mut targets = included(&[a]);
    targets["clusters"] = json!({"clusterNames": ["member1"]});
    scene.distribute("there", &secret, &targets).await?;
    scene.until_held("Secret", name, &["member1"]).await?;
    scene.until_counts("there", 1, 1, 0).await?;
    scene.edit_on("member1", "Secret", name, spoil).await?;
    scene
        .until_copy("member1", "Secret", name, as_wanted("b25l"))
        .await?;
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    let next = manifests::secret(name, "two");
    scene.distribute("rd", &next, &included(&[a])).await?;
    scene.distribute("there", &next, &targets).await?;
    scene.until_in("Secret", name, &[a, b], &[a]).await?;
    scene.until_there("Secret", a, name, as_wanted("dHdv")).await?;
    scene
        .until_copy("member1", "Secret", name, as_wanted("dHdv"))
        .await?;
    for resource in BY_NAME {
        let lines = refused(scene, resource);
        ensure!(lines.is_empty(), "{lines:#?}");
    }
    scene.end_distribution("there", "Background").await?;
    scene.until_ended("there").await?;
    scene.until_held("Secret", name, &[]).await
}

/// A workload with a Secret as dependency needs a list of all Secrets, which `config/rbac` grants and this account does not
/// have. The result for the workload is not checked: later edits of the Secret are not delivered without that list.
async fn what_the_account_may_not_list_is_reported_and_holds_no_distribution_up(
    scene: &mut Scene,
) -> Result<()> {
    let name = scene.own("pull");
    let made = limit(scene, &name).await?;
    let tested = beyond(scene, &name).await;
    unlimit(scene, &made).await?;
    if scene.controllers().is_ok() {
        scene.stop().await?;
    }
    tested
}

async fn beyond(scene: &mut Scene, name: &str) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let targets = included(&[&ns]);
    scene
        .distribute("rd", &manifests::secret(name, "one"), &targets)
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    ensure!(refused(scene, "secrets").is_empty(), "nothing asked for it yet");
    scene.apply(manifests::secret("other", "x")).await?;
    for name in [name, "other"] {
        let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": name}}]});
        let workload = if name == "other" { "another" } else { "myapp" };
        scene
            .apply(manifests::workload("Deployment", workload, &pod))
            .await?;
        let mut policy = manifests::policy_for(workload, "Deployment", workload, &["member1"]);
        policy["spec"]["propagateDeps"] = json!(true);
        scene.apply(policy).await?;
    }
    // The dependency that it may read by name is propagated; the other one is not.
    scene.until_held("Secret", name, &["member1"]).await?;
    scene.quiet().await?;
    let lines = refused(scene, "secrets");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    ensure!(scene.on("member1", "Secret", "other").await?.is_none());
    scene
        .distribute("rd", &manifests::secret(name, "two"), &targets)
        .await?;
    scene
        .until_there("Secret", &ns, name, |copy| {
            ensure!(copy["data"]["key"] == "dHdv", "the old one");
            Ok(())
        })
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    scene.restart().await?;
    scene.quiet().await?;
    scene.until_counts("rd", 1, 1, 0).await.map(drop)
}
