//! The textfile for Prometheus' node exporter (its collector `textfile`).

use std::io::Write;
use std::path::Path;

use fitout::layout::{CertificateUse, Time};

/// What is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// Seconds since the registry last answered; 0 while it answers.
    pub unreachable: u64,
    /// When each certificate ends.
    pub certificates: Vec<(CertificateUse, Time)>,
    /// Seconds since the node's last backup, when it has one.
    pub backup: Option<i64>,
    /// The generation of the registry that last answered.
    pub generation: Option<u32>,
}

/// The text exposition format.
pub fn render(measured: &Measured) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, help: &str, samples: Vec<String>| {
        if !samples.is_empty() {
            text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
            text.extend(samples.iter().map(|sample| format!("{name}{sample}\n")));
        }
    };
    metric(
        "mesh_registry_unreachable_seconds",
        "Seconds since the mesh registry last answered this node; 0 while it answers.",
        vec![format!(" {}", measured.unreachable)],
    );
    let end = |(purpose, end): &(CertificateUse, Time)| format!("{{use=\"{purpose}\"}} {}", end.seconds());
    metric(
        "mesh_certificate_not_after_seconds",
        "When a certificate of this node ends, in seconds since 1970.",
        measured.certificates.iter().map(end).collect(),
    );
    metric(
        "mesh_backup_age_seconds",
        "Seconds since this node last made a backup of the registry.",
        measured.backup.iter().map(|age| format!(" {age}")).collect(),
    );
    metric(
        "mesh_generation",
        "Generation of the registry that last answered; a restore raises it.",
        measured.generation.iter().map(|generation| format!(" {generation}")).collect(),
    );
    text
}

/// Writes it so that a reader sees the old or the new text, never a part.
///
/// # Errors
/// In words, with the file.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // The collector reads `*.prom` only.
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || {
        let mut file = std::fs::File::create(&new)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&new, path)
    };
    write().map_err(|e: std::io::Error| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_metrics_of_the_design() {
        let ends = |text: &str| text.parse::<Time>().unwrap();
        let all = Measured {
            unreachable: 7,
            certificates: vec![
                (CertificateUse::Client, ends("2031-05-06T00:00:00Z")),
                (CertificateUse::Peer, ends("2031-05-07T00:00:00Z")),
            ],
            backup: Some(60),
            generation: Some(2),
        };
        let samples: Vec<String> =
            render(&all).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        assert_eq!(
            samples,
            [
                "mesh_registry_unreachable_seconds 7",
                "mesh_certificate_not_after_seconds{use=\"client\"} 1935792000",
                "mesh_certificate_not_after_seconds{use=\"peer\"} 1935878400",
                "mesh_backup_age_seconds 60",
                "mesh_generation 2",
            ]
        );
        assert_eq!(render(&Measured::default()).lines().count(), 3, "what is not known is not there");
    }

    #[test]
    fn the_file_is_exchanged_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mesh.prom");
        write(&path, "a 1\n").unwrap();
        write(&path, "b 2\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b 2\n");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(write(Path::new("/nonexistent/mesh.prom"), "").unwrap_err().contains("/nonexistent/mesh.prom"));
    }
}
