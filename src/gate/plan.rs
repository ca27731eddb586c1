//! What the gate is to do, handed from process to process.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::finding::Failure;
use crate::image::index::{FILE_NAME, Index};
use crate::tree::Digest;

/// The work, as an argument of the hidden stages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The images.
    pub images: Vec<Planned>,
    /// Directory for the logs of a failed run; a directory named after the time is made in it.
    pub logs: PathBuf,
    /// Keep the logs of a passed run too.
    pub keep_logs: bool,
    /// The control group below `/sys/fs/cgroup`; set by the janitor.
    #[serde(default)]
    pub cgroup: PathBuf,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Absolute path.
    pub path: PathBuf,
    /// What the index says of its content; `None` for an image that is in no index.
    pub sha256: Option<Digest>,
}

impl Plan {
    /// As one argument.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub fn to_argument(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map_err(|e| Failure::new(format!("cannot hand the plan on: {e}")))
    }

    /// From that argument.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_argument(text: &str) -> Result<Plan, Failure> {
        serde_json::from_str(text).map_err(|e| Failure::new(format!("this is no plan of the gate: {e}")))
    }
}

/// The images to boot: those given, else all of the mesh's `dist/` by its index.
///
/// # Errors
/// When there is no index, an image is missing, or lies where the gate cannot see it.
pub fn images(given: &[PathBuf], dist: &Path) -> Result<Vec<Planned>, Failure> {
    let mut planned = Vec::new();
    if given.is_empty() {
        let index = Index::load(dist)?.filter(|index| !index.images.is_empty()).ok_or_else(|| nothing(dist))?;
        for entry in index.images.values() {
            let path = absolute(&dist.join(&entry.file))?;
            planned.push(Planned { path, sha256: Some(entry.sha256) });
        }
        return Ok(planned);
    }
    for path in given {
        let path = absolute(path)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let name = path.file_name().unwrap_or_default();
        let index = Index::load(directory)?;
        let entry = index.and_then(|i| i.images.into_values().find(|e| name == e.file.as_str()));
        planned.push(Planned { path, sha256: entry.map(|e| e.sha256) });
    }
    Ok(planned)
}

/// Why a directory gives no images, and what to do.
fn nothing(dist: &Path) -> Failure {
    let shown = dist.display();
    let index = dist.join(FILE_NAME);
    if !dist.exists() {
        return Failure::new(format!("there are no images to boot: there is no directory {shown}"))
            .help("`fitout build` makes it; `--out DIR` names another one, or name the images");
    }
    // What cannot be listed is as good as empty here.
    let names = std::fs::read_dir(dist).into_iter().flatten().flatten().map(|e| e.file_name());
    let mut images: Vec<String> = names.filter_map(|n| n.into_string().ok()).filter(|n| n.contains(".tar")).collect();
    images.sort();
    let why = if index.exists() { "names no image" } else { "is missing" };
    let text = format!("which images belong to the mesh is not known: {} {why}", index.display());
    if images.is_empty() {
        return Failure::new(text).help("`fitout build` makes the images and the index");
    }
    let found: Vec<String> = images.iter().map(|name| dist.join(name).display().to_string()).collect();
    Failure::new(text).help(format!("`fitout build` writes it; or name them: `fitout gate {}`", found.join(" ")))
}

/// An absolute path of something that exists, not below `/run`, which the gate covers.
///
/// # Errors
/// When it does not exist, or lies there.
pub fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = path.canonicalize().map_err(|e| Failure::io("open", path, &e))?;
    if absolute.starts_with("/run") {
        return Err(Failure::new(format!("{} lies below /run", absolute.display()))
            .help("the gate mounts its own /run: move it to another place"));
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_the_way() {
        let plan = Plan {
            images: vec![Planned { path: "/x/lis1.tar.gz".into(), sha256: Some(Digest([1; 32])) }],
            logs: "/x/gate".into(),
            keep_logs: true,
            cgroup: "user.slice/fitout-gate-1".into(),
        };
        assert_eq!(Plan::from_argument(&plan.to_argument().unwrap()), Ok(plan));
        assert!(Plan::from_argument("{}").is_err());
    }

    #[test]
    fn no_images_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let index = directory.path().join("index.json");
        let says = |dist: &Path| {
            let failure = images(&[], dist).unwrap_err();
            (failure.message, failure.help.unwrap_or_default())
        };
        let (message, help) = says(&directory.path().join("dist"));
        assert!(message.contains("there is no directory /"), "{message}");
        assert!(help.contains("`fitout build` makes it"), "{help}");
        let (message, help) = says(directory.path());
        assert!(message.ends_with("index.json is missing"), "{message}");
        assert_eq!(help, "`fitout build` makes the images and the index");
        let image = directory.path().join("lis1.tar.gz");
        std::fs::write(&image, "").unwrap();
        let (_, help) = says(directory.path());
        assert!(help.ends_with(&format!("`fitout gate {}`", image.display())), "{help}");
        std::fs::write(&index, r#"{"schema": 1, "tool": "0", "mesh": "m", "images": {}}"#).unwrap();
        let (message, _) = says(directory.path());
        assert!(message.ends_with("index.json names no image"), "{message}");
        std::fs::remove_file(&index).unwrap();
        std::fs::remove_file(&image).unwrap();
        let failure = images(&[directory.path().join("lis1.tar.gz")], directory.path()).unwrap_err();
        assert!(failure.message.starts_with("cannot open"), "{failure}");
    }

    #[test]
    fn a_given_image_is_looked_up_in_the_index_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("lis1.tar.gz");
        std::fs::write(&image, b"x").unwrap();
        let planned = images(std::slice::from_ref(&image), Path::new("/nowhere")).unwrap();
        assert_eq!(planned[0].sha256, None);
        let digest = Digest([7; 32]).hex();
        let index = format!(
            r#"{{"schema":1,"tool":"0","mesh":"m","images":{{"lis1":{{"file":"lis1.tar.gz","size":1,
               "sha256":"{digest}","identity":"{digest}","base":"{digest}","parts":[]}}}}}}"#
        );
        std::fs::write(directory.path().join("index.json"), index).unwrap();
        let planned = images(std::slice::from_ref(&image), Path::new("/nowhere")).unwrap();
        assert_eq!(planned[0].sha256, Some(Digest([7; 32])));
    }
}
