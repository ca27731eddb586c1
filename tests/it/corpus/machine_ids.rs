//! What a boot makes of `/etc/machine-id`: whether it is a first boot, which enables units by preset.

use super::{On, Row, Truth};

const fn first(name: &'static str, change: &'static str, enables: bool, codes: &'static [&'static str]) -> Row {
    Row { name, change, on: On::Both, truth: Truth::FirstBoot(enables), codes, says: "" }
}

/// systemd-nspawn does not boot it.
const fn refused(name: &'static str, change: &'static str, codes: &'static [&'static str]) -> Row {
    Row { truth: Truth::Refused, ..first(name, change, false, codes) }
}

const WRONG: &[&str] = &["ledger-content", "machine-id"];

/// The rows.
pub const ROWS: &[Row] = &[
    first("machine-id: `uninitialized` without a line end", "printf uninitialized >etc/machine-id", true, WRONG),
    first("machine-id: it is missing", "rm etc/machine-id", true, &["ledger-missing", "machine-id"]),
    first("machine-id: an id", "put etc/machine-id 0123456789abcdef0123456789abcdef", false, WRONG),
    refused("machine-id: only a line end", "put etc/machine-id ''", WRONG),
    refused("machine-id: no id", "put etc/machine-id nonsense", WRONG),
    first(
        "machine-id: a dangling link",
        "rm etc/machine-id; link etc/machine-id /nowhere",
        true,
        &["ledger-kind", "machine-id"],
    ),
    first(
        "machine-id: a link to an empty file",
        "mv etc/machine-id etc/machine; link etc/machine-id machine",
        false,
        &["ledger-kind"],
    ),
    first("machine-id: it may not be read by others", "chmod 400 etc/machine-id", false, &["ledger-mode"]),
];
