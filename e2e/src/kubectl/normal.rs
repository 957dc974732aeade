//! Placeholders for text that differs from run to run.

use std::sync::OnceLock;

use regex::Regex;

/// A pattern and what stands in its place.
type Rule = (Regex, &'static str);

/// In this order. Ages keep their width, so that columns stay where they are.
const RULES: &[(&str, &str)] = &[
    // The log of the client itself: time, process and line of its source.
    (r"(?m)^([EWI])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\]", "<$1>"),
    // kubectl's remark on its timeout.
    (r"(?m)^<W> .*very short watch.*\n", ""),
    // The same, when its time was over while it was about to watch: what it says to that end follows.
    (
        r"(?m)^<E> .*Failed to watch .*: context deadline exceeded.*\n",
        "",
    ),
    (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "<uid>",
    ),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( [A-Z]+)?",
        "<time>",
    ),
    (
        r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
        "<time>",
    ),
    (r#"(?i)(resource ?version"?: *"?)\d+"#, "$1<version>"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
    (r"-token-[a-z0-9]{5}\b", "-token-xxxxx"),
    // Files that diff and edit compare.
    (r"\S*/(LIVE|MERGED)-\d+/", "$1/"),
    (r"\S*/kubectl-edit-[\w.-]+", "<file>"),
    (r#"(?m)^Client Version: .*$"#, "Client Version: <client>"),
    (r#"(?m)^Kustomize Version: .*$\n"#, ""),
    // Pods of a workload, and what is named by generateName.
    (
        r"\b([a-z][a-z0-9-]*-)[bcdfghjklmnpqrstvwxz2456789]{5}\b",
        "${1}xxxxx",
    ),
    // Ages stand alone in a cell of a table.
    (r"(?m)(^|  )\d\ds  ", "${1}0s   "),
    (r"(?m)(^|  )\d\d?s(  |$)", "${1}0s$2"),
    // Older ones of a slow machine, in the last column; after a colon it is a quantity.
    (r"(?m)^([^:\n]*)  (\d{3}s|[2-9]m(\d\d?s)?)$", "$1  0s"),
];

/// The text with placeholders. `server` is where the API server listens (`127.0.0.1:41233`).
pub(super) fn normalised(text: &str, server: &str) -> String {
    static COMPILED: OnceLock<Vec<Rule>> = OnceLock::new();
    let rules = COMPILED.get_or_init(|| {
        let rules = RULES.iter().map(|(pattern, instead)| match Regex::new(pattern) {
            Ok(regex) => (regex, *instead),
            Err(error) => panic!("{pattern}: {error}"),
        });
        rules.collect()
    });
    let text = text.replace(server, "<server>");
    let text = rules.iter().fold(text, |text, (regex, instead)| {
        regex.replace_all(&text, *instead).into_owned()
    });
    // Golden files have no spaces at the ends of lines.
    let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn what_differs_is_replaced_and_columns_stay() {
        for (text, wanted) in [
            (
                "NAME   AGE   X\na      3s    y\n",
                "NAME   AGE   X\na      0s    y\n",
            ),
            (
                "NAME   AGE   X\na      13s   y\n",
                "NAME   AGE   X\na      0s    y\n",
            ),
            ("a   1/1   12s\n", "a   1/1   0s\n"),
            (
                "a   1/1   112s\nb   1/1   2m\nc   1/1   3m12s\n",
                "a   1/1   0s\nb   1/1   0s\nc   1/1   0s\n",
            ),
            ("timeout=1s period=10s\n", "timeout=1s period=10s\n"),
            ("  cpu:     500m\n", "  cpu:     500m\n"),
            ("  cpu:     5m\n", "  cpu:     5m\n"),
            ("  uid: 0a1b2c3d-0000-4000-8000-0123456789ab\n", "  uid: <uid>\n"),
            (
                "  resourceVersion: \"12\"\n",
                "  resourceVersion: \"<version>\"\n",
            ),
            ("at https://127.0.0.1:4433/x\n", "at https://<server>/x\n"),
            ("E1120 23:19:58.123456    99 a_b.go:12] x\n", "<E> x\n"),
            (
                "E1120 23:19:58.1    99 a.go:1] \"Unhandled Error\" err=\"b.go:2: Failed to watch *x.X: context deadline exceeded\"\nerror: timed out\n",
                "error: timed out\n",
            ),
            (
                "pod/web-9gnjt5snz7-kr8mm deleted\n",
                "pod/web-9gnjt5snz7-xxxxx deleted\n",
            ),
            (
                "--- /tmp/LIVE-123/v1.ConfigMap.a.b\t2026-01-02 03:04:05.6 +0000\n",
                "--- LIVE/v1.ConfigMap.a.b\t<time>\n",
            ),
            ("x   \n", "x\n"),
        ] {
            assert_eq!(normalised(text, "127.0.0.1:4433"), wanted);
        }
    }
}
