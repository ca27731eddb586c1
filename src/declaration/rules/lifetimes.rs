//! Lives of certificates, renewal windows, and the promise to rebuild.

use std::time::Duration;

use super::Check;
use crate::declaration::model::Mesh;
use crate::declaration::section::Section;
use crate::declaration::show_duration;
use crate::finding::{Finding, Rule, Severity, Spanned};

pub(super) const CHECKS: &[Check] = &[
    Check { rule: &LEAF_OUTLIVES_AUTHORITY, needs: &[Section::Pki], run: leaf_outlives_authority },
    Check { rule: &RENEWAL_WINDOW, needs: &[Section::Pki], run: renewal_window },
    Check { rule: &REBUILD_WINDOW, needs: &[Section::Pki, Section::Mesh], run: rebuild_window },
];

/// A certificate shall live longer than its authority.
pub static LEAF_OUTLIVES_AUTHORITY: Rule = Rule {
    code: "leaf-outlives-authority",
    family: "declaration",
    severity: Severity::Error,
    summary: "a certificate shall live longer than its authority",
    explanation: "A chain is valid only as long as each of its certificates (RFC 5280 section 6.1.3). A leaf that outlives \
        its authority looks good and is refused, by every peer on the same day.",
};

/// The window for renewal is not shorter than the life.
pub static RENEWAL_WINDOW: Rule = Rule {
    code: "renewal-window",
    family: "declaration",
    severity: Severity::Error,
    summary: "the window for renewal is not shorter than the life of a certificate",
    explanation: "A certificate is reissued when less than `renew-before` is left of it. When that is all of its life, each \
        build issues new ones, no two builds are the same bytes, and every image looks overdue.",
};

/// Certificates could expire before new images can be built.
pub static REBUILD_WINDOW: Rule = Rule {
    code: "rebuild-window",
    family: "declaration",
    severity: Severity::Error,
    summary: "the window for renewal is not longer than the time to rebuild",
    explanation: "A certificate reaches a node in an image, and `time-to-rebuild` is the promise of how long it takes to \
        build, ship and start one. When that is not less than `renew-before`, the old certificate may expire on the \
        way. Most of all in topology `single`, where nothing takes over: there certificate renewal is the clock.",
};

fn leaves(mesh: &Mesh) -> [(&'static str, &Spanned<Duration>); 3] {
    let pki = &mesh.pki;
    [("server", &pki.server_lifetime), ("client", &pki.client_lifetime), ("peer", &pki.peer_lifetime)]
}

fn leaf_outlives_authority(mesh: &Mesh, out: &mut Vec<Finding>) {
    let authority = &mesh.pki.authority_lifetime;
    for (purpose, life) in leaves(mesh).into_iter().filter(|(_, life)| life.value > authority.value) {
        out.push(
            LEAF_OUTLIVES_AUTHORITY
                .finding(
                    format!("pki.{purpose}.lifetime"),
                    format!(
                        "a {purpose} certificate of {} outlives its authority of {}",
                        show_duration(life.value),
                        show_duration(authority.value)
                    ),
                )
                .at(&life.span)
                .related(&authority.span, "the life of the authority")
                .help("shorten it, or raise `authority-lifetime`"),
        );
    }
}

fn renewal_window(mesh: &Mesh, out: &mut Vec<Finding>) {
    let window = &mesh.pki.renew_before;
    let short: Vec<_> = leaves(mesh).into_iter().filter(|(_, life)| window.value >= life.value).collect();
    let Some((_, shortest)) = short.iter().min_by_key(|(_, life)| life.value) else { return };
    let names: Vec<&str> = short.iter().map(|(purpose, _)| *purpose).collect();
    out.push(
        RENEWAL_WINDOW
            .finding(
                "pki.renew-before",
                format!(
                    "{} is not less than the life of certificates for: {}",
                    show_duration(window.value),
                    names.join(", ")
                ),
            )
            .at(&window.span)
            .related(&shortest.span, format!("a life of {}", show_duration(shortest.value)))
            .help("renew in the last third or less of the life"),
    );
}

fn rebuild_window(mesh: &Mesh, out: &mut Vec<Finding>) {
    let (window, rebuild) = (&mesh.pki.renew_before, &mesh.time_to_rebuild);
    if window.value <= rebuild.value {
        out.push(
            REBUILD_WINDOW
                .finding(
                    "pki.renew-before",
                    format!(
                        "certificates are renewed {} before they expire, and an image takes {}",
                        show_duration(window.value),
                        show_duration(rebuild.value)
                    ),
                )
                .at(&window.span)
                .related(&rebuild.span, "the time that an image takes")
                .help("raise `renew-before` well above `time-to-rebuild`"),
        );
    }
}
