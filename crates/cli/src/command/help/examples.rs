//! The examples in the help of each command: words, and a command line that parses.

/// The examples of a command.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// By the names of the command, without `entourage`.
pub(super) const EXAMPLES: &[Examples] = &[
    (
        "adopt",
        &[
            (
                "Show what a former hub left on the members",
                "entourage adopt --kubeconfig hub.yaml",
            ),
            (
                "Take over the copies of a Karmada whose controllers are stopped",
                "entourage adopt --from-karmada karmada.yaml --yes",
            ),
        ],
    ),
    (
        "agent",
        &[(
            "Run the agent of a cluster in Pull mode",
            "entourage agent --cluster-name member1 --hub-kubeconfig hub.yaml",
        )],
    ),
    (
        "audit",
        &[("Where the Secrets of the fleet are", "entourage audit secrets -A")],
    ),
    (
        "audit secrets",
        &[
            ("Those of all namespaces", "entourage audit secrets -A"),
            (
                "Those of a namespace on a cluster, with those that are kept away",
                "entourage audit secrets -n shop -C member1 -o wide",
            ),
        ],
    ),
    (
        "bench",
        &[(
            "Measure everything on a hub and two members",
            "entourage bench all --kubeconfig hub.yaml --member m1=m1.yaml --member m2=m2.yaml",
        )],
    ),
    (
        "completion",
        &[
            ("Complete in this bash", "source <(entourage completion bash)"),
            ("For zsh", "entourage completion zsh > ~/.zfunc/_entourage"),
        ],
    ),
    (
        "controllers",
        &[
            ("Run the controllers in a pod of the hub", "entourage controllers"),
            (
                "From elsewhere, without optional controllers",
                "entourage controllers --kubeconfig hub.yaml --controllers=*,-deploymentReplicasSyncer",
            ),
        ],
    ),
    (
        "cordon",
        &[(
            "Schedule nothing new to two clusters",
            "entourage cordon member1 member2",
        )],
    ),
    (
        "crds",
        &[
            ("Print the definitions", "entourage crds"),
            (
                "Apply them to a hub",
                "entourage crds --apply --kubeconfig hub.yaml",
            ),
        ],
    ),
    ("demo", &[("Show propagation step by step", "entourage demo")]),
    (
        "describe",
        &[
            ("A Deployment of the hub", "entourage describe deploy/web -n shop"),
            (
                "The same object as a member has it",
                "entourage describe deploy/web -n shop -C member1",
            ),
        ],
    ),
    (
        "drain",
        &[(
            "Evict the workloads of a cluster, and wait",
            "entourage drain member1 --timeout 30m",
        )],
    ),
    (
        "drill",
        &[(
            "Cut a member off while your own manifests run",
            "entourage drill member2 --members 5 -f manifests",
        )],
    ),
    (
        "exec",
        &[
            (
                "Run a command in a pod",
                "entourage exec web-1 -C member1 -n shop -- env",
            ),
            (
                "Open a shell",
                "entourage exec deploy/web -C member1 -n shop -it -- sh",
            ),
        ],
    ),
    (
        "failover",
        &[(
            "Report what the failure of a member would do",
            "entourage failover --dry-run member1",
        )],
    ),
    (
        "get",
        &[
            ("All bindings", "entourage get bindings -A"),
            (
                "The copies of a Deployment that are not applied",
                "entourage get copies web -n shop --field-selector state!=Applied",
            ),
            (
                "What is on a member, as it changes",
                "entourage get copies -A -C member1 -w",
            ),
            (
                "Names of the members",
                "entourage get clusters -o jsonpath='{.items[*].name}'",
            ),
            (
                "Your own columns",
                "entourage get copies -A -o custom-columns=NAME:.name,ON:.cluster,STATE:.state",
            ),
        ],
    ),
    (
        "graph",
        &[
            ("The references of a namespace", "entourage graph -n shop"),
            (
                "Of a kustomization, as Mermaid",
                "entourage graph -k overlays/prod -o mermaid",
            ),
        ],
    ),
    (
        "history",
        &[(
            "What is known of the changes of a Deployment",
            "entourage history deploy/web -n shop",
        )],
    ),
    (
        "impact",
        &[
            (
                "What the deletion of a ConfigMap touches",
                "entourage impact configmap/settings -n shop",
            ),
            ("Of a member", "entourage impact cluster/member1"),
        ],
    ),
    (
        "init",
        &[
            (
                "Show what would be written",
                "entourage init --kubeconfig hub.yaml --dry-run",
            ),
            ("Set the hub up", "entourage init --kubeconfig hub.yaml"),
        ],
    ),
    (
        "interpret",
        &[
            (
                "Check customizations",
                "entourage interpret -f shops.yaml --check",
            ),
            (
                "Interpret the health of an object",
                "entourage interpret -f shops.yaml --operation InterpretHealth --observed-file shop.yaml",
            ),
        ],
    ),
    (
        "join",
        &[(
            "Make a cluster a member",
            "entourage join member1 --kubeconfig hub.yaml --cluster-kubeconfig member1.yaml",
        )],
    ),
    (
        "kustomize-generator",
        &[(
            "A Secret for all namespaces",
            "entourage kustomize-generator --name pull --kind Secret --resource-name pull --from-file .dockerconfigjson --all-namespaces",
        )],
    ),
    (
        "logs",
        &[
            (
                "Follow a workload on all its clusters",
                "entourage logs deploy/web -n shop -f",
            ),
            (
                "The last lines of a pod",
                "entourage logs web-1 -C member1 -n shop --tail 20",
            ),
        ],
    ),
    ("man", &[("Write the manual pages", "entourage man --dir man")]),
    (
        "plan",
        &[
            (
                "Files alone, with members to assume",
                "entourage plan -f app --clusters member1,member2",
            ),
            (
                "A kustomization, against a hub, as a diff",
                "entourage plan -k overlays/prod --kubeconfig hub.yaml --diff",
            ),
            (
                "A URL",
                "entourage plan -f https://example.com/app.yaml --clusters member1",
            ),
        ],
    ),
    (
        "preflight",
        &[
            (
                "Can this cluster be a hub?",
                "entourage preflight --kubeconfig hub.yaml",
            ),
            (
                "Can it be a member?",
                "entourage preflight member --kubeconfig member1.yaml",
            ),
        ],
    ),
    (
        "promote",
        &[(
            "Make a Deployment of a member a template, with its dependencies",
            "entourage promote deployment web -n shop -C member1 --deps --dry-run",
        )],
    ),
    (
        "proxy",
        &[(
            "Serve the hub with clusters/NAME/proxy",
            "entourage proxy --kubeconfig hub.yaml --tls-cert-file tls.crt --tls-private-key-file tls.key",
        )],
    ),
    (
        "register",
        &[(
            "Make a cluster a member in Pull mode",
            "entourage register --bootstrap-kubeconfig edge1.kubeconfig --image registry.example/entourage:1",
        )],
    ),
    (
        "resume",
        &[("Go on with deletions that are paused", "entourage resume member1")],
    ),
    (
        "support-bundle",
        &[(
            "Write the state of a hub for support",
            "entourage support-bundle --kubeconfig hub.yaml",
        )],
    ),
    (
        "taint",
        &[
            (
                "Set a taint",
                "entourage taint member1 maintenance=true:NoSchedule",
            ),
            ("Remove it", "entourage taint member1 maintenance-"),
        ],
    ),
    (
        "token",
        &[(
            "Prepare a cluster in Pull mode",
            "entourage token create edge1 --print-register-command",
        )],
    ),
    (
        "token create",
        &[(
            "Print the command that registers the cluster",
            "entourage token create edge1 --print-register-command",
        )],
    ),
    ("token list", &[("All bootstrap tokens", "entourage token list")]),
    (
        "token delete",
        &[("Delete a token by its id", "entourage token delete abc123")],
    ),
    (
        "top",
        &[
            ("Nodes of all members", "entourage top nodes"),
            (
                "Pods of a namespace, by memory",
                "entourage top pods -n shop --sort-by memory",
            ),
        ],
    ),
    (
        "tree",
        &[(
            "A workload, its dependencies and their clusters",
            "entourage tree deploy/web -n shop",
        )],
    ),
    (
        "ui",
        &[
            ("Show the fleet in the browser", "entourage ui"),
            (
                "Print the address alone, at a port of your own",
                "entourage ui --kubeconfig hub.yaml --port 8081 --no-open",
            ),
        ],
    ),
    (
        "uncordon",
        &[("Schedule to a cluster again", "entourage uncordon member1")],
    ),
    (
        "unjoin",
        &[(
            "Remove a member and its copies",
            "entourage unjoin member1 --remove-copies --wait 5m",
        )],
    ),
    (
        "up",
        &[(
            "A hub and three members with a sample",
            "entourage up --members 3 --apply config/samples/myapp",
        )],
    ),
    (
        "version",
        &[
            ("This binary", "entourage version"),
            (
                "And its hub, for programs",
                "entourage version --kubeconfig hub.yaml -o json",
            ),
        ],
    ),
    (
        "webhook",
        &[(
            "Run the webhook in a pod of the hub",
            "entourage webhook --service karmada-system/entourage-webhook",
        )],
    ),
    (
        "why",
        &[
            ("Why is it where it is?", "entourage why deploy/web -n shop"),
            (
                "Why is it not on a cluster?",
                "entourage why deploy/web -n shop -C member2",
            ),
        ],
    ),
];
