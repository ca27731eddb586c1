//! `overlays/NAME/overlay.toml`: what an overlay asks for and what it says of its paths.
//!
//! All keys, with their defaults; `description` alone must be given:
//!
//! ```toml
//! description = "one line for people"
//! parts = []                 # registry parts that may carry it: voter, arbiter, client, control-plane; empty: all
//! requires = []              # overlays that must come earlier in the same profile
//! conflicts = []             # overlays that may not be in the same profile
//! provides = []              # packages that the base need not have when this overlay is in the profile
//! packages = []              # Debian packages that the base must have; a `debian` base gets them installed
//! base-paths = []            # absolute paths that the base must have
//! remove = []                # absolute paths or globs of the base's that are left out; with a leading `?`
//!                            # those that a base may lack
//! edits = []                 # of: "os-release", "users", "hosts" (the built-in edits)
//!
//! [parameter.log-level]      # kebab-case; templates see it as `parameters.log_level`
//! type = "string"            # boolean | integer | string | strings
//! default = "info"           # without one, a profile or node must give the value
//! description = "one line for people"
//!
//! [path."/etc/app/app.yaml"] # the target, without `.tera`; every key may be left out
//! mode = "0640"              # octal text; default "0644", for directories "0755"
//! user = "root"              # a name or a number
//! group = "etcd"
//! replace = true             # may replace an entry of another type, or another overlay's entry
//! link = "/usr/bin/other"    # make this link though no link of the overlay lies there
//! directory = true           # make this directory though no file of the overlay lies in it
//! program = "mesh-agent"     # put this program of fitout's here; mode "0755" when none is given
//!
//! [unit."app.service"]
//! state = "enabled"          # stopped | enabled | masked
//!
//! [user.app]                 # a system user and the group of that name; the id is fixed in the lock file
//! home = "/var/lib/app"      # default /nonexistent
//! description = "comment field"
//! ```
//!
//! Files are `overlays/NAME/root/…`, which mirrors the target; a name that ends in `.tera` is a template and loses that
//! ending. Nothing else may lie in an overlay's directory but `overlay.toml`, `root/` and files called `README*`.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeValue;

use super::files::OverlayFiles;
use super::model::{
    Edit, LibraryContent, LibraryFile, Manifest, Overlay, Parameter, ParameterKind, Part, PathRule, Program, UnitState,
    User, Value,
};
use super::section::{Reports, Section};
use super::table::{NOT_TEXT, Refusal, Table, parse};
use super::values::{self, INVALID_VALUE};
use crate::finding::{Rule, Severity, Source, Span, Spanned};

/// The file's name in an overlay's directory.
const MANIFEST_FILE: &str = "overlay.toml";

/// An overlay's directory does not have the form of an overlay.
pub static OVERLAY_LAYOUT: Rule = Rule {
    code: "overlay-layout",
    family: "declaration",
    severity: Severity::Error,
    summary: "an overlay's directory does not have the form of an overlay",
    explanation: "An overlay is `overlays/NAME/overlay.toml` and `overlays/NAME/root/…`, which mirrors the target. A file \
        elsewhere in that directory would never reach an image, so it is refused; only files called `README*` may lie \
        beside.",
};

/// Rules of this file.
pub(super) const RULES: &[&Rule] = &[&OVERLAY_LAYOUT];

/// `stopped`, `enabled`, `masked`.
pub(super) fn unit_state(value: &DeValue<'_>) -> Result<UnitState, Refusal> {
    values::word(
        value,
        &[("stopped", UnitState::Stopped), ("enabled", UnitState::Enabled), ("masked", UnitState::Masked)],
    )
}

/// A registry part.
pub(super) fn part(value: &DeValue<'_>) -> Result<Part, Refusal> {
    let all = [Part::Voter, Part::Arbiter, Part::Client, Part::ControlPlane];
    values::word(value, &all.map(|p| (p.as_str(), p)))
}

fn edit(value: &DeValue<'_>) -> Result<Edit, Refusal> {
    values::word(value, &[("os-release", Edit::OsRelease), ("users", Edit::Users), ("hosts", Edit::Hosts)])
}

fn program(value: &DeValue<'_>) -> Result<Program, Refusal> {
    values::word(value, &[("mesh-agent", Program::MeshAgent)])
}

fn parameter_kind(value: &DeValue<'_>) -> Result<ParameterKind, Refusal> {
    values::word(
        value,
        &[
            ("boolean", ParameterKind::Boolean),
            ("integer", ParameterKind::Integer),
            ("string", ParameterKind::String),
            ("strings", ParameterKind::Strings),
        ],
    )
}

/// A user or group: a name as Debian's `adduser` makes it for system users, or a number.
fn owner(value: &DeValue<'_>) -> Result<String, Refusal> {
    if let DeValue::Integer(_) = value {
        return values::integer_in(value, 0, i64::from(u32::MAX) - 1).map(|n| n.to_string());
    }
    let text = values::text(value)?;
    let number = text.parse::<u32>().is_ok_and(|n| n < u32::MAX && n.to_string() == text);
    if !number && let Some(fault) = user_name_fault(&text) {
        return Err(Refusal::new(&INVALID_VALUE, format!("the owner `{}` {fault}", text.escape_debug())));
    }
    Ok(text)
}

fn user_name_fault(text: &str) -> Option<&'static str> {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let rest = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
    (!first || !rest || text.len() > 32).then_some(
        "is not a user name: a lower-case letter or `_`, then letters, digits, `-` and `_`, at most 32 characters",
    )
}

/// A field of `/etc/passwd`: one line without colon.
fn passwd_field(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = values::text(value)?;
    if text.contains(':') || text.chars().any(char::is_control) {
        return Err(Refusal::new(&INVALID_VALUE, "must be one line without `:` (it is a field of /etc/passwd)"));
    }
    Ok(text)
}

/// The kind of a value.
pub(super) fn kind_of(value: &Value) -> ParameterKind {
    match value {
        Value::Boolean(_) => ParameterKind::Boolean,
        Value::Integer(_) => ParameterKind::Integer,
        Value::String(_) => ParameterKind::String,
        Value::Strings(_) => ParameterKind::Strings,
    }
}

/// A kind with its article.
pub(super) fn kind_words(kind: ParameterKind) -> &'static str {
    match kind {
        ParameterKind::Boolean => "`true` or `false`",
        ParameterKind::Integer => "a whole number",
        ParameterKind::String => "a text",
        ParameterKind::Strings => "a list of texts",
    }
}

/// Reads one overlay. What cannot be read is reported, and stand-ins take its place.
pub(super) fn overlay(reports: &Reports, name: &str, files: &OverlayFiles<'_>) -> Overlay {
    let mut content = BTreeMap::new();
    let mut manifest = None;
    for (path, file) in &files.files {
        if path.ends_with("/.tera") {
            reports.broken(
                Section::Overlays,
                OVERLAY_LAYOUT
                    .finding(file.name.clone(), "a template has the empty name")
                    .help("put the name of the file in the image in front of `.tera`"),
            );
        } else if let Some(below) = path.strip_prefix("root/") {
            content.insert(below.to_owned(), (*file).clone());
        } else if path == MANIFEST_FILE {
            manifest = Some(*file);
        } else if path == "root" && !matches!(file.content, LibraryContent::Directory) {
            reports.broken(
                Section::Overlays,
                OVERLAY_LAYOUT
                    .finding(file.name.clone(), "`root` is no directory")
                    .help("make it a directory that mirrors the target; links are kept below it, and it may be none"),
            );
        } else if !path.starts_with("README") && path != "root" {
            reports.broken(
                Section::Overlays,
                OVERLAY_LAYOUT
                    .finding(file.name.clone(), "this file is neither `overlay.toml` nor below `root/`")
                    .help("move it below `root/` to where it shall be in the image, or remove it"),
            );
        }
    }
    if manifest.is_none() {
        reports.broken(
            Section::Overlays,
            OVERLAY_LAYOUT
                .finding(format!("overlays/{name}"), "the overlay has no `overlay.toml`")
                .help("add one; `description = \"…\"` is enough"),
        );
    }
    let source = manifest.and_then(|file| text_of(reports, Section::Overlays, file));
    let manifest = match source {
        Some(source) => parse(reports, &source, &[Section::Overlays], |table| decode(table, &source)),
        None => stand_in(Source::new(format!("overlays/{name}/{MANIFEST_FILE}"), "")),
    };
    Overlay { name: name.to_owned(), manifest, files: content }
}

/// Stands in for a manifest that cannot be read, so that references to the overlay still resolve.
fn stand_in(source: Arc<Source>) -> Manifest {
    Manifest {
        source,
        description: String::new(),
        parts: Vec::new(),
        requires: Vec::new(),
        conflicts: Vec::new(),
        provides: Vec::new(),
        packages: Vec::new(),
        base_paths: Vec::new(),
        parameters: BTreeMap::new(),
        paths: BTreeMap::new(),
        removals: Vec::new(),
        units: BTreeMap::new(),
        edits: Vec::new(),
        users: BTreeMap::new(),
    }
}

/// The text of a library file as a source; reports what is not text.
pub(super) fn text_of(reports: &Reports, section: Section, file: &LibraryFile) -> Option<Arc<Source>> {
    let LibraryContent::File(bytes) = &file.content else {
        reports.broken(section, NOT_TEXT.finding(file.name.clone(), "must be a regular file"));
        return None;
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(Source::new(file.name.clone(), text)),
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
            let source = Source::new(file.name.clone(), good);
            let end = source.text.len();
            let (line, _) = source.line_column(end);
            reports.broken(
                section,
                NOT_TEXT
                    .finding(file.name.clone(), format!("the file is not UTF-8 text (line {line})"))
                    .at(&Span::new(&source, end..end))
                    .help("save it as UTF-8"),
            );
            None
        }
    }
}

fn decode(mut table: Table<'_>, source: &Arc<Source>) -> Manifest {
    let description = table.need("description", values::line, "\"one line for people\"");
    let parts = table.list("parts", part);
    let requires = table.list("requires", values::label);
    let conflicts = table.list("conflicts", values::label);
    let provides = table.list("provides", values::package);
    let packages = table.list("packages", values::package);
    let base_paths = table.list("base-paths", values::image_path);
    let removals = table.list("remove", glob);
    let edits = table.list("edits", edit);
    let parameters = named(table.tables("parameter", Section::Overlays), parameter);
    let paths = named(table.tables("path", Section::Overlays), path_rule);
    let units = named(table.tables("unit", Section::Overlays), unit);
    let users = named(table.tables("user", Section::Overlays), user);
    table.finish();
    Manifest {
        source: source.clone(),
        description: description.map(|d| d.value).unwrap_or_default(),
        parts,
        requires,
        conflicts,
        provides,
        packages,
        base_paths,
        parameters,
        paths,
        removals,
        units,
        edits,
        users,
    }
}

/// Decodes `[kind.NAME]` tables by name, leaving out those that are reported.
fn named<T>(
    tables: Vec<(Spanned<String>, Table<'_>)>,
    decode: fn(Spanned<String>, Table<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    tables.into_iter().filter_map(|(name, table)| Some((name.value.clone(), decode(name, table)?))).collect()
}

fn glob(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = values::text(value)?;
    let path = text.strip_prefix('?').unwrap_or(&text);
    if let Some(fault) = values::image_path_fault(path) {
        return Err(Refusal::new(&INVALID_VALUE, format!("the path `{}` {fault}", path.escape_debug())));
    }
    match globset::GlobBuilder::new(path).literal_separator(true).build() {
        Ok(_) => Ok(text),
        Err(error) => Err(Refusal::new(&INVALID_VALUE, format!("`{text}` is not a glob: {}", error.kind()))),
    }
}

fn parameter(name: Spanned<String>, mut table: Table<'_>) -> Option<Parameter> {
    // Templates see it with `_` for `-`, which must be an identifier.
    let first = name.value.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    let rest = name.value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !first || !rest {
        let refusal = Refusal::new(&INVALID_VALUE, "is not a parameter name")
            .help("a lower-case letter, then lower-case letters, digits and hyphens");
        table.reports.broken(table.section, refusal.finding(&format!("parameter.{}", name.value), &name.span));
    }
    let kind = table.need("type", parameter_kind, "\"string\"");
    let default = table.get("default", values::parameter);
    let description = table.need("description", values::line, "\"one line for people\"");
    if let (Some(kind), Some(default)) = (&kind, &default)
        && kind_of(&default.value) != kind.value
    {
        let refusal = Refusal::new(
            &super::table::WRONG_TYPE,
            format!("the default must be {}, as `type` says", kind_words(kind.value)),
        );
        table.refuse("default", &default.span, refusal);
    }
    table.finish();
    Some(Parameter { name, kind: kind?.value, default: default.map(|d| d.value), description: description?.value })
}

fn path_rule(path: Spanned<String>, mut table: Table<'_>) -> Option<PathRule> {
    if let Some(fault) = values::image_path_fault(&path.value) {
        let refusal = Refusal::new(&INVALID_VALUE, format!("the path `{}` {fault}", path.value.escape_debug()));
        table.reports.broken(table.section, refusal.finding("path", &path.span));
    }
    let rule = PathRule {
        mode: table.get("mode", values::mode),
        user: table.get("user", owner),
        group: table.get("group", owner),
        replace: table.get("replace", values::boolean),
        directory: table.get("directory", values::boolean).is_some_and(|d| d.value),
        link: table.get("link", values::line),
        program: table.get("program", program),
        path,
    };
    if let (true, Some(link)) = (rule.directory, &rule.link) {
        let refusal = Refusal::new(&INVALID_VALUE, "a path is a link or a directory, not both").help("leave one out");
        table.refuse("link", &link.span, refusal);
    }
    if let (true, Some(program)) = (rule.directory || rule.link.is_some(), &rule.program) {
        let refusal = Refusal::new(&INVALID_VALUE, "a path is a program, a link or a directory, not two of them")
            .help("leave one out");
        table.refuse("program", &program.span, refusal);
    }
    table.finish();
    Some(rule)
}

fn unit(name: Spanned<String>, mut table: Table<'_>) -> Option<Spanned<UnitState>> {
    check_unit_name(&name, table.reports, table.section);
    let state = table.need("state", unit_state, "\"stopped\"");
    table.finish();
    state
}

/// Reports a unit name that is none.
pub(super) fn check_unit_name(name: &Spanned<String>, reports: &Reports, section: Section) {
    if let Some(fault) = values::unit_name_fault(&name.value) {
        let refusal = Refusal::new(&INVALID_VALUE, format!("the unit `{}` {fault}", name.value.escape_debug()));
        reports.broken(section, refusal.finding("unit", &name.span));
    }
}

fn user(name: Spanned<String>, mut table: Table<'_>) -> Option<User> {
    if let Some(fault) = user_name_fault(&name.value) {
        let refusal = Refusal::new(&INVALID_VALUE, format!("the user `{}` {fault}", name.value.escape_debug()));
        table.reports.broken(table.section, refusal.finding("user", &name.span));
    }
    let home = table.get("home", values::image_path);
    let description = table.get("description", passwd_field);
    table.finish();
    Some(User {
        name,
        home: home.map_or_else(|| "/nonexistent".to_owned(), |h| h.value),
        description: description.map(|d| d.value).unwrap_or_default(),
    })
}
