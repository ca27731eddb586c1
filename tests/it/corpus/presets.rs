//! What `systemctl preset` makes of etcd, and what `is-enabled` says of links.

use super::{On, Row, Truth};

const fn preset(
    name: &'static str,
    change: &'static str,
    before: &'static str,
    after: &'static str,
    codes: &'static [&'static str],
) -> Row {
    Row { name, change, on: On::Both, truth: Truth::Preset(before, after), codes, says: "" }
}

const ENABLES: &[&str] = &["preset-enables"];
const NOTHING: &[&str] = &[];

/// The rows.
pub const ROWS: &[Row] = &[
    preset(
        "preset: a glob that sorts earlier",
        "put $E-preset/00-a.preset 'enable etcd*'",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: brackets",
        "put $E-preset/00-a.preset 'enable [d-f]tcd.s*'",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: all",
        "put $E-preset/00-a.preset 'enable *'",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: one character too many",
        "put $E-preset/00-a.preset 'enable etcd?.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: negated brackets",
        "put $E-preset/00-a.preset 'enable [!e]tcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: a later line",
        "put $E-preset/50-a.preset 'enable etcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: a vendor's file that sorts earlier",
        "put usr/lib/systemd/system-preset/00-a.preset 'enable etcd.service'",
        "disabled",
        "enabled",
        ENABLES,
    ),
    preset(
        "preset: a file of /usr/local",
        "put usr/local/lib/systemd/system-preset/00-a.preset 'enable etcd.service'",
        "disabled",
        "enabled",
        ENABLES,
    ),
    preset(
        "preset: a file of our name lower down",
        "put usr/lib/systemd/system-preset/00-fitout.preset 'enable etcd.service'",
        "disabled",
        "disabled",
        NOTHING,
    ),
    preset(
        "preset: ours is hidden by a link to /dev/null",
        "ln -sf /dev/null $E-preset/00-fitout.preset",
        "disabled",
        "enabled",
        &["ledger-kind", "preset-enables"],
    ),
    preset(
        "preset: ours is gone",
        "rm $E-preset/00-fitout.preset",
        "disabled",
        "enabled",
        &["ledger-missing", "preset-enables"],
    ),
    preset(
        "preset: ours is gone, another disables all",
        "rm $E-preset/00-fitout.preset; put $E-preset/99-z.preset 'disable *'",
        "disabled",
        "disabled",
        &["ledger-extra", "ledger-missing"],
    ),
    preset(
        "preset: ends of line of another system",
        r"bytes $E-preset/00-a.preset '# x\r\nenable etcd.service\r\n'",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: carriage returns alone end lines",
        r"bytes $E-preset/00-a.preset '# x\renable etcd.service\r'",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: a NUL ends a line",
        r"bytes $E-preset/00-a.preset '# x\0enable etcd.service'",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: blanks around",
        r"bytes $E-preset/00-a.preset ' \t enable \t etcd.service \t '",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
    preset(
        "preset: a name without its type",
        "put $E-preset/00-a.preset 'enable etcd'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: a comment behind it",
        "put $E-preset/00-a.preset 'enable etcd.service # x'",
        "disabled",
        "disabled",
        &["ledger-extra", "unit-syntax"],
    ),
    preset(
        "preset: a comment behind a line that disables",
        "rm $E-preset/00-fitout.preset; put $E-preset/00-a.preset 'disable etcd.service # x'",
        "disabled",
        "enabled",
        &["ledger-extra", "ledger-missing", "preset-enables", "unit-syntax"],
    ),
    preset(
        "preset: another verb",
        "put $E-preset/00-a.preset 'enabled etcd.service' 'ENABLE etcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra", "unit-syntax"],
    ),
    preset(
        "preset: a commented line",
        "put $E-preset/00-a.preset ';enable etcd.service' '#enable etcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: a file of another suffix",
        "put $E-preset/00-a.preset.bak 'enable etcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: a hidden file",
        "put $E-preset/.00-a.preset 'enable etcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: ignored",
        "put $E-preset/00-a.preset 'ignore etcd.service'",
        "disabled",
        "disabled",
        &["ledger-extra"],
    ),
    preset(
        "preset: the alias only",
        "rm $E-preset/00-fitout.preset; put $E-preset/00-a.preset 'disable etcd2.service'",
        "disabled",
        "enabled",
        &["ledger-extra", "ledger-missing", "preset-enables"],
    ),
    preset(
        "preset: byte order mark",
        r"bytes $E-preset/00-a.preset '\xef\xbb\xbfenable etcd.service\n'",
        "disabled",
        "disabled",
        &["ledger-extra", "unit-syntax"],
    ),
    preset(
        "preset: a link to a file elsewhere",
        "put opt/p 'enable etcd.service'; link $E-preset/00-a.preset /opt/p",
        "disabled",
        "enabled",
        &["ledger-extra", "preset-enables"],
    ),
];
