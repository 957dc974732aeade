//! The checkout as files, and the one way generated files are written or compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let hack = Path::new(env!("CARGO_MANIFEST_DIR"));
    hack.parent().unwrap_or(hack).to_path_buf()
}

/// Every file under `dir`, as paths relative to it with `/`, sorted. Hidden folders other than `.ci` and folders called
/// `target` are left out; links are not followed.
pub(crate) fn files(dir: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    walk(dir, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}/{name}")
        };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let skipped = name == "target" || (name.starts_with('.') && name != ".ci");
            if !skipped {
                walk(&entry.path(), &path, found)?;
            }
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Brings the folder `dir` to exactly `wanted` (file name → content) among the files that end in `suffix`, or, with
/// `check`, fails with the names that differ. Other files of the folder are not touched. Returns how many there are.
pub(crate) fn generate(
    dir: &Path,
    suffix: &str,
    wanted: &BTreeMap<String, String>,
    check: bool,
) -> Result<usize> {
    let present: BTreeSet<String> = match dir.exists() {
        true => files(dir)?
            .into_iter()
            .filter(|f| f.ends_with(suffix) && !f.contains('/'))
            .collect(),
        false => BTreeSet::new(),
    };
    let surplus: Vec<&String> = present.iter().filter(|f| !wanted.contains_key(*f)).collect();
    let mut differing = Vec::new();
    for (name, content) in wanted {
        if !present.contains(name) || fs::read_to_string(dir.join(name))? != *content {
            differing.push(name);
        }
    }
    if check {
        if !(surplus.is_empty() && differing.is_empty()) {
            let dir = dir.strip_prefix(root()).unwrap_or(dir);
            bail!(
                "{}: differs from what is generated: {differing:?}; belongs to nothing: {surplus:?}",
                dir.display()
            );
        }
        return Ok(wanted.len());
    }
    fs::create_dir_all(dir)?;
    for name in surplus {
        fs::remove_file(dir.join(name))?;
    }
    for name in differing {
        fs::write(dir.join(name), &wanted[name])?;
    }
    Ok(wanted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test alone, removed when it goes out of scope.
    struct Scratch(PathBuf);
    impl Scratch {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("entourage-xtask-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn generated_files_are_written_compared_and_taken_away() {
        let scratch = Scratch::new("generate");
        let dir = scratch.0.join("crds");
        let one = BTreeMap::from([("a.yaml".to_owned(), "a\n".to_owned())]);
        assert!(generate(&dir, ".yaml", &one, true).is_err());
        assert_eq!(generate(&dir, ".yaml", &one, false).unwrap(), 1);
        assert_eq!(generate(&dir, ".yaml", &one, true).unwrap(), 1);

        fs::write(dir.join("old.yaml"), "").unwrap();
        fs::write(dir.join("README.md"), "").unwrap();
        let err = generate(&dir, ".yaml", &one, true).unwrap_err().to_string();
        assert!(err.contains("old.yaml") && !err.contains("README"), "{err}");
        generate(&dir, ".yaml", &one, false).unwrap();
        assert_eq!(files(&dir).unwrap(), ["README.md", "a.yaml"]);
    }

    #[test]
    fn the_walk_leaves_out_build_output_and_hidden_folders() {
        let scratch = Scratch::new("walk");
        for file in ["src/a.rs", "target/b.rs", ".git/c", ".ci/run", ".hidden"] {
            let path = scratch.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(files(&scratch.0).unwrap(), [".ci/run", ".hidden", "src/a.rs"]);
    }
}
