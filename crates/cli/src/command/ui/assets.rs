//! The files of the page, as they are in the binary.

/// A file: its path, its media type and its text.
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) media_type: &'static str,
    pub(super) text: &'static str,
}

macro_rules! script {
    ($name:literal) => {
        Asset {
            path: concat!("/", $name),
            media_type: "text/javascript; charset=utf-8",
            text: include_str!(concat!("page/", $name)),
        }
    };
}

/// All files.
pub(super) const ASSETS: &[Asset] = &[
    Asset {
        path: "/",
        media_type: "text/html; charset=utf-8",
        text: include_str!("page/index.html"),
    },
    Asset {
        path: "/style.css",
        media_type: "text/css; charset=utf-8",
        text: include_str!("page/style.css"),
    },
    Asset {
        path: "/icon.svg",
        media_type: "image/svg+xml",
        text: include_str!("page/icon.svg"),
    },
    script!("main.js"),
    script!("store.js"),
    script!("dom.js"),
    script!("words.js"),
    script!("rows.js"),
    script!("overview.js"),
    script!("workloads.js"),
    script!("object.js"),
    script!("graph.js"),
    script!("timeline.js"),
    script!("distributions.js"),
];

/// The file of a path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command/ui/page");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| format!("/{}", file.unwrap().file_name().to_str().unwrap()))
            .collect();
        let served = ASSETS.iter().map(|asset| match asset.path {
            "/" => "/index.html".to_owned(),
            path => path.to_owned(),
        });
        assert_eq!(served.collect::<BTreeSet<_>>(), files);
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere_and_makes_no_markup_of_data() {
        for Asset { path, text, .. } in ASSETS {
            let links = text.replace("http://www.w3.org/", "");
            for refused in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "localStorage.setItem(\"token",
            ] {
                assert!(!links.contains(refused), "{path} has {refused}");
            }
        }
        let page = find("/").unwrap().text;
        for refused in ["<script>", "<style", " style=", " onclick=", " onload="] {
            assert!(
                !page.contains(refused),
                "the content security policy refuses {refused}"
            );
        }
    }
}
