//! Objects in files, and applying them server-side.

use std::{
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use kube::api::{DynamicObject, TypeMeta};
use serde_json::Value;

use crate::apply::label;

mod apply;
mod documents;
mod misfit;
mod remote;

pub use apply::apply;
pub use documents::documents;
use documents::{beginnings, items, manifest};
pub use misfit::misfit;
pub use remote::built;

/// The name of standard input on a command line.
const STDIN: &str = "-";

/// One object of a file. It may be a Secret, so Debug shows no more than [`Display`](fmt::Display).
pub struct Manifest {
    object: DynamicObject,
    types: TypeMeta,
    name: String,
    /// The file, and the number of the document if the file has several that are not empty.
    origin: String,
}

impl Manifest {
    /// The object. It may be a Secret: do not print it.
    ///
    /// # Errors
    /// Never for an object that was read; the type allows one all the same.
    pub fn value(&self) -> Result<Value> {
        serde_json::to_value(&self.object).map_err(|_| anyhow!("{}: the object cannot be read", self.origin))
    }

    /// The file, and the number of the document.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The value of Helm's hook annotation, if Helm would run the object instead of applying it.
    #[must_use]
    pub fn hook(&self) -> Option<&str> {
        let annotations = self.object.metadata.annotations.as_ref()?;
        annotations.get("helm.sh/hook").map(String::as_str)
    }
}

impl fmt::Display for Manifest {
    /// `kind.group namespace/name`, as kubectl writes it with the namespace before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = label(&self.types.api_version, &self.types.kind);
        match &self.object.metadata.namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{}", self.name),
            None => write!(f, "{kind} {}", self.name),
        }
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} of {}", self.origin)
    }
}

/// The objects of files, of directories' YAML and JSON files in order of their names, of URLs, and of standard input for `-`.
///
/// # Errors
/// The file that cannot be read, is invalid YAML or contains no objects, or the document that cannot be applied.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>> {
    read_below(paths, false)
}

/// As [`read`]; with `recursive` also of the directories in directories.
///
/// # Errors
/// As [`read`].
pub fn read_below(paths: &[PathBuf], recursive: bool) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for path in paths {
        let mut found = Found::default();
        if path.as_os_str() == STDIN {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.context("cannot read standard input")?;
            found.add(&text, "standard input")?;
        } else if let Some(url) = remote::url(path) {
            let text = remote::fetch(url)?;
            found.add(&text, &remote::shown(url))?;
        } else if path.is_dir() {
            for file in files(path, recursive)? {
                found.add_file(&file)?;
            }
        } else {
            found.add_file(path)?;
        }
        let is_empty = !found.has_documents;
        manifests.append(&mut found.manifests);
        if is_empty {
            let what = if path.is_dir() {
                ".yaml, .yml and .json files of "
            } else {
                ""
            };
            bail!("no object found in {what}{}", path.display());
        }
    }
    Ok(manifests)
}

fn files(directory: &Path, recursive: bool) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read {}", directory.display());
    let entries = std::fs::read_dir(directory).with_context(unreadable)?;
    let mut entries = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .with_context(unreadable)?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        let extension = entry.extension().and_then(|extension| extension.to_str());
        // A link to a directory is not followed: it may lead back here.
        if recursive && entry.is_dir() && !entry.is_symlink() {
            all.extend(files(&entry, recursive)?);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) && !entry.is_dir() {
            all.push(entry);
        }
    }
    Ok(all)
}

/// The objects of one path.
#[derive(Default)]
struct Found {
    manifests: Vec<Manifest>,
    /// True if anything was written there: a List without items is a document without objects.
    has_documents: bool,
}

impl Found {
    fn add_file(&mut self, path: &Path) -> Result<()> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.add(&text, &path.display().to_string())
    }
}

/// The objects of a text with one or more YAML documents; the items of a List one by one. `origin` names the text in errors,
/// which never contain its content: it may contain Secrets.
///
/// # Errors
/// It is invalid YAML, or a document is not an object that can be applied.
pub fn parse(text: &str, origin: &str) -> Result<Vec<Manifest>> {
    let mut found = Found::default();
    found.add(text, origin)?;
    Ok(found.manifests)
}

impl Found {
    fn add(&mut self, text: &str, origin: &str) -> Result<()> {
        let documents = documents(text, origin)?;
        let several = documents.len() > 1;
        let lines = Some(beginnings(text)).filter(|lines| lines.len() == documents.len());
        for (number, document) in documents.into_iter().enumerate() {
            let origin = match &lines {
                _ if !several => origin.to_owned(),
                Some(lines) => format!("{origin}, document {} at line {}", number + 1, lines[number]),
                None => format!("{origin}, document {}", number + 1),
            };
            if document.is_null() {
                continue;
            }
            self.has_documents = true;
            match items(&document) {
                Some(items) => {
                    for (number, item) in items.iter().enumerate() {
                        let item = manifest(item, format!("{origin}, item {}", number + 1))?;
                        self.manifests.push(item);
                    }
                }
                None => self.manifests.push(manifest(&document, origin)?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let manifests = parse(text, "a.yaml").unwrap();
        manifests.iter().map(|each| format!("{each:?}")).collect()
    }

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}\n---\n---\nkind: List\nitems:\n- \
                    {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}\n";
        assert_eq!(
            shown(text),
            [
                "configmap ns/a of a.yaml, document 1 at line 1",
                "deployment.apps b of a.yaml, document 2 at line 4, item 1"
            ]
        );
    }

    #[test]
    fn a_list_of_one_kind_gives_its_items_their_kind_and_what_has_a_name_is_no_list() {
        let of_kind = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
        assert_eq!(
            shown(of_kind),
            ["configmap a of a.yaml, item 1", "secret b of a.yaml, item 2"]
        );
        let named = "apiVersion: example.com/v1\nkind: PlayList\nmetadata: {name: summer}\nitems: [a, b]\n";
        assert_eq!(shown(named), ["playlist.example.com summer of a.yaml"]);
        let unnamed = parse(
            "apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}}]\n",
            "a.yaml",
        );
        assert!(
            unnamed
                .unwrap_err()
                .to_string()
                .contains("item 1: the object has no apiVersion")
        );
    }

    #[test]
    fn a_rendered_chart_is_read_with_the_lines_of_its_documents() {
        let chart = "---\n# Source: web/templates/empty.yaml\n---\n# Source: web/templates/job.yaml\napiVersion: batch/v1\n\
                     kind: Job\nmetadata:\n  name: migrate\n  annotations:\n    \"helm.sh/hook\": pre-install\n---\n\
                     # Source: web/templates/cm.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |\n    ---\n    x\n";
        let manifests = parse(chart, "-").unwrap();
        assert_eq!(manifests[0].hook(), Some("pre-install"));
        assert_eq!(
            shown(chart),
            [
                "job.batch migrate of a.yaml, document 1 at line 5",
                "configmap c of a.yaml, document 2 at line 13",
            ]
        );
    }

    #[test]
    fn a_file_may_have_thousands_of_documents() {
        let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, c: d, e: f}\n---\n";
        let text = one.repeat(20_000);
        assert_eq!(parse(&text, "a.yaml").unwrap().len(), 20_000);
    }

    #[test]
    fn modes_are_octal_as_kubectl_reads_them() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nmode: 0644\n";
        assert_eq!(parse(text, "a").unwrap()[0].object.data["mode"], 0o644);
    }

    #[test]
    fn what_cannot_be_applied_is_named_with_its_file() {
        let head = "apiVersion: v1\nkind: ConfigMap\n";
        let table = [
            ("- a\n".to_owned(), "a.yaml: not an object"),
            ("a: [".to_owned(), "invalid YAML"),
            (
                "kind: ConfigMap\n".to_owned(),
                "a.yaml: the object has no apiVersion",
            ),
            ("apiVersion: v1\n".to_owned(), "a.yaml: the object has no kind"),
            (
                format!("{head}metadata: {{}}\n"),
                "a.yaml: the object has no metadata.name",
            ),
            (
                format!("{head}metadata: {{name: []}}\n"),
                "a.yaml: the object's metadata cannot be read",
            ),
            (
                format!("{head}metadata: {{name: a}}\n---\n{head}"),
                "a.yaml, document 2 at line 5: the object has no",
            ),
            (
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n".to_owned(),
                "kustomize build",
            ),
        ];
        for (text, wanted) in table {
            let error = parse(&text, "a.yaml").unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn no_error_shows_what_a_file_says() {
        let secret =
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: hunter2-canary\n";
        for slip in [
            "  password: again\n",
            "  user: \"root\n",
            " x: [\n",
            "\tuser: a\n",
            "  <<: *hunter2-canary\n",
            "  a: !!int hunter2-canary\n",
            "---\nhunter2-canary\n",
            "---\nkind: hunter2\napiVersion: [hunter2-canary]\n",
            "---\nkind: Secret\napiVersion: v1\nmetadata: hunter2-canary\n",
        ] {
            let error = format!("{:?}", parse(&format!("{secret}{slip}"), "s.yaml").unwrap_err());
            assert!(
                !error.contains("canary") && error.contains("s.yaml"),
                "{slip:?}: {error}"
            );
        }
        let manifests = parse(secret, "s.yaml").unwrap();
        assert!(!format!("{manifests:?}").contains("canary"));
    }

    #[test]
    fn a_list_without_items_is_taken_as_a_file_and_in_a_folder() {
        let dir = std::env::temp_dir().join(format!("entourage-empty-list-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("list.yaml");
        std::fs::write(&file, "apiVersion: v1\nkind: List\nitems: []\n").unwrap();
        for path in [&file, &dir] {
            let read = read(std::slice::from_ref(path)).map(|manifests| manifests.len());
            assert_eq!(read.map_err(|error| error.to_string()), Ok(0), "{path:?}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_path_without_objects_is_an_error() {
        let directory = std::env::temp_dir().join(format!("entourage-no-manifests-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let error = read(std::slice::from_ref(&directory)).unwrap_err().to_string();
        std::fs::remove_dir_all(directory).unwrap();
        assert!(error.contains("no object"), "{error}");
        assert!(read(&["/no/such/file.yaml".into()]).is_err());
    }
}
