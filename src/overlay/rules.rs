//! The rules of this family. Each is applied where its fact is found; this file says what they mean.

use crate::finding::{Rule, Severity};

/// All rules of the family.
pub static RULES: &[&Rule] = &[
    &PATH,
    &PATH_RULE_UNUSED,
    &CONFLICT,
    &TYPE_CHANGE,
    &BELOW_NO_DIRECTORY,
    &OWNER_UNKNOWN,
    &REMOVAL_UNMATCHED,
    &TEMPLATE_SYNTAX,
    &TEMPLATE_RENDER,
    &KEY_FILE,
    &EDIT,
    &USER_IDS,
    &PACKAGE_MISSING,
    &BASE_PATH_MISSING,
    &UNIT_STATES,
    &UNIT_MISSING,
    &UNIT_INSTALL,
    &NOT_BORN,
    &PROGRAM_MISSING,
    &PROGRAM_MACHINE,
    &PROGRAM_LIBRARIES,
    &PROGRAM_VERSION,
];

macro_rules! rule {
    ($name:ident, $code:literal, $severity:ident, $summary:literal, $explanation:literal) => {
        #[doc = $summary]
        pub static $name: Rule = Rule {
            code: $code,
            family: "overlay",
            severity: Severity::$severity,
            summary: $summary,
            explanation: $explanation,
        };
    };
}

rule!(
    PATH,
    "overlay-path",
    Error,
    "an overlay's path cannot be a path of an image",
    "Paths of an overlay are absolute, without `..`, and not below /proc, /sys, /dev, /run or /tmp: what is put there \
     is hidden or emptied when the image boots."
);
rule!(
    PATH_RULE_UNUSED,
    "overlay-path-rule-unused",
    Error,
    "a `[path]` table names nothing that the overlay puts",
    "A mode or owner that applies to nothing is most often a typing mistake, and the file that was meant gets 0644 \
     root:root. Name a file of the overlay's `root/`, or say `directory = true`."
);
rule!(
    CONFLICT,
    "overlay-conflict",
    Error,
    "two overlays of a profile give different entries for one path",
    "The result would depend on the order of the overlays. Make the entries equal, take one away, or let the \
     later one say `replace = true` in its `[path]` table: then it wins."
);
rule!(
    TYPE_CHANGE,
    "overlay-type-change",
    Error,
    "an overlay would change the type of an entry of the base",
    "A directory over a link such as /lib breaks the system, and a file over a link hides what the link led to. When \
     the change is meant, say `replace = true` in the `[path]` table of the overlay's manifest."
);
rule!(
    BELOW_NO_DIRECTORY,
    "overlay-below-no-directory",
    Error,
    "an overlay's path lies below something that is no directory",
    "Links of the base are followed on all but the last element of a path, inside the root, as the booted image would. \
     A file, a loop, or a link that an overlay itself puts cannot hold entries."
);
rule!(
    OWNER_UNKNOWN,
    "overlay-owner-unknown",
    Error,
    "an owner is neither in the base's passwd or group nor declared",
    "Owners are looked up in the image's own /etc/passwd and /etc/group, after the users of the overlays were added; \
     never on the build host. Add a `[user.NAME]` table, or a package that makes the user."
);
rule!(
    REMOVAL_UNMATCHED,
    "overlay-removal-unmatched",
    Warning,
    "an entry of `remove` matches nothing in the base",
    "The base has changed, or the entry is misspelt and what it should remove is still there. `*` does not match `/`. \
     A leading `?` says that the base may lack it."
);
rule!(
    TEMPLATE_SYNTAX,
    "overlay-template-syntax",
    Error,
    "a template cannot be parsed",
    "Templates are tera's. Filters of this tool: `json`, `yaml`, `toml`, `sh_quote`, `systemd_escape`. `include` finds \
     files of `templates/`."
);
rule!(
    TEMPLATE_RENDER,
    "overlay-template-render",
    Error,
    "a template uses something that is not there",
    "Rendering is strict: an undefined variable or field is an error, never an empty text. Parameters are written with \
     `_` for `-`: `parameters.log_level`."
);
rule!(
    KEY_FILE,
    "overlay-key-file",
    Error,
    "a private key is put into a file that cannot keep it",
    "A file with a private key holds this one key and nothing else, so that it can be told by its public key alone, and \
     its mode gives nothing to group and others: set `mode = \"0600\"` and the owner in its `[path]` table."
);
rule!(
    EDIT,
    "overlay-edit",
    Error,
    "an edit cannot be made",
    "Edits change a file that is the base's own. The file is missing, is no regular file, is given as a whole by an \
     overlay too, or has lines that cannot be understood."
);
rule!(
    USER_IDS,
    "overlay-user-ids",
    Error,
    "a system user cannot have the ids that the lock file says, or there is no free id",
    "Ids are fixed in `fitout.lock`, since files on data volumes keep them. The base now gives the id to another user. \
     Move one of them, or remove the user's entry from the lock when no node has files of it."
);
rule!(
    PACKAGE_MISSING,
    "overlay-package-missing",
    Error,
    "the base lacks a package that an overlay needs",
    "Debian bases get the packages of all overlays; a base from a tar or directory must bring them."
);
rule!(
    BASE_PATH_MISSING,
    "overlay-base-path-missing",
    Error,
    "the base lacks a path that an overlay needs",
    "The overlay's manifest names it in `base-paths`, because its files or units are of no use without it."
);
rule!(
    UNIT_STATES,
    "overlay-unit-states",
    Error,
    "two overlays of a profile want different states of one unit",
    "Set the state in the profile's `[units]` table: it has the last word."
);
rule!(
    UNIT_MISSING,
    "overlay-unit-missing",
    Error,
    "a unit to be enabled is not in the image",
    "A link to a unit that does not exist starts nothing, without a word."
);
rule!(
    UNIT_INSTALL,
    "overlay-unit-install",
    Error,
    "a unit to be enabled says not how",
    "`enabled` makes the links that the unit's `[Install]` section names (systemd.unit(5)); specifiers and templates \
     without an instance are not supported there."
);
rule!(
    NOT_BORN,
    "overlay-not-born",
    Error,
    "a node that runs the registry is not in its birth record, or at another address",
    "etcd computes the ids of a cluster and of its first members from their peer URLs and the token, once, when the cluster \
     is born; fitout.lock keeps that birth record. A node that is declared later, or elsewhere, does not change it: an image \
     made from the new list would found another cluster beside the living one, and etcd refuses to start from a list that \
     lacks the node. Such a node joins the living registry: `fitout registry members` says the steps, and `fitout build \
     --node NODE --join` makes the image that fits. If the registry of this generation was never started, remove its birth \
     record from fitout.lock, and a build makes a new one."
);

rule!(
    PROGRAM_MISSING,
    "overlay-program-missing",
    Error,
    "there is no mesh-agent to put into the images",
    "The overlay `announce` puts the announcer `mesh-agent` into each image. It is taken from beside the running `fitout`, where \
     `make build` puts it, or from the path that `[agent] binary.<architecture>` in mesh.toml names for the base's \
     architecture."
);
rule!(
    PROGRAM_MACHINE,
    "overlay-program-machine",
    Error,
    "mesh-agent is for another machine than the images",
    "The machine in the program's ELF header is compared with that of the base's own programs (elf(5), `e_machine`). A kernel \
     refuses a program of another machine with `Exec format error`, at the first start on the node. Build mesh-agent for \
     that machine and name it: `[agent] binary.arm64 = \"PATH\"` in mesh.toml."
);
rule!(
    PROGRAM_LIBRARIES,
    "overlay-program-libraries",
    Error,
    "mesh-agent is linked with what the base does not have",
    "A dynamically linked program needs its loader, its libraries and the versions of their symbols (ld.so(8)). One that was \
     linked on a newer system than the base's does not start there: `version GLIBC_2.38 not found`. `make build` links \
     mesh-agent statically, so that it runs on every base of its machine."
);
rule!(
    PROGRAM_VERSION,
    "overlay-program-version",
    Error,
    "mesh-agent is of another version than fitout",
    "fitout renders /etc/mesh/node.toml and the roles of the registry for the announcer of its own version. The program carries \
     its version; `mesh-agent --version` prints it."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_of_this_family() {
        let codes: std::collections::BTreeSet<_> = RULES.iter().map(|r| r.code).collect();
        assert_eq!(codes.len(), RULES.len());
        assert!(RULES.iter().all(|r| r.code.starts_with("overlay-") && r.family == "overlay"));
    }
}
