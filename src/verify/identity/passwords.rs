//! Who gets in without anybody having declared it: passwords that all machines of an image share, accounts that need
//! none, further names of root, and keys for SSH.

use super::{put_by_overlay, rule, text};
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::search::follow;
use crate::tree::{Kind, TreePath};
use crate::verify::Image;

/// A password.
pub static PASSWORD: Rule = rule(
    "password-shared",
    Severity::Warning,
    "a user has a password, which all images of the base share",
    "\
The second field of shadow(5), or of passwd(5) where it is not `x`, is a hash, which who has one image can try to guess for all of
them. `!` and `*` lock the password; keys for SSH work all the same. `fitout` locks root and what overlays add, and does not change
other users of the base: lock them there with `passwd --lock`.",
);

/// None needed.
pub static NONE: Rule = rule(
    "password-none",
    Severity::Error,
    "a user needs no password",
    "\
An empty second field of passwd(5) or shadow(5) says that no password is asked for: whoever reaches a console, `su`, or a service that
asks PAM, is that user (pam_unix(8), `nullok`, which is Debian's default). `x` in passwd(5) sends to shadow(5), where `!` and `*` lock
the password. Lock it in the base with `passwd --lock USER`.",
);

/// Another root.
pub static ROOT_TWICE: Rule = rule(
    "root-twice",
    Severity::Error,
    "an account other than root has the user id 0",
    "\
The kernel knows numbers and no names: each account with the user id 0 in passwd(5) is root, with a password, a shell and keys of its
own, and what locks root does not lock it. Remove it from the base.",
);

/// Keys that nobody declared.
pub static KEYS: Rule = rule(
    "authorized-keys-unrecorded",
    Severity::Warning,
    "an account has keys for SSH that no overlay put",
    "\
`.ssh/authorized_keys` and `.ssh/authorized_keys2` in a home directory say who logs in as its owner (sshd_config(5),
AuthorizedKeysFile). What `[image] ssh-authorized-keys` or an overlay puts there is in the image's ledger; this was in the base, or was
put there after the build, so who can log in is declared nowhere. Remove it, and declare the keys that are meant.",
);

const PASSWD: &str = "/etc/passwd";
const SHADOW: &str = "/etc/shadow";

/// Applies the rules.
pub(super) fn check(image: &Image, out: &mut Vec<Finding>) {
    for file in [PASSWD, SHADOW] {
        let lines = text(image, file).unwrap_or_default();
        lines.lines().for_each(|line| account(file, line, out));
    }
    authorized_keys(image, out);
}

/// One line of passwd or shadow.
fn account(file: &str, line: &str, out: &mut Vec<Finding>) {
    let mut fields = line.split(':');
    let (Some(user), Some(password)) = (fields.next(), fields.next()) else { return };
    // `+` and `-` bring in or leave out accounts of NIS (nsswitch.conf(5), compat) and are none themselves.
    if user.is_empty() || user.starts_with(['+', '-', '#']) {
        return;
    }
    let help = format!("lock it in the base: `passwd --lock {user}`");
    match password.chars().next() {
        Some('!' | '*') => {}
        // It is in shadow(5).
        Some('x') if file == PASSWD && password == "x" => {}
        None => out.push(NONE.finding(file, format!("user `{user}` needs no password")).help(help)),
        Some(_) => out.push(PASSWORD.finding(file, format!("user `{user}` has a password")).help(help)),
    }
    let is_root = fields.next().is_some_and(|id| id.parse() == Ok(0_u32));
    if file == PASSWD && is_root && user != "root" {
        let message = format!("user `{user}` has the user id 0, so it is root by another name");
        out.push(ROOT_TWICE.finding(file, message).help(format!("remove it from the base: `userdel --force {user}`")));
    }
}

/// Keys in homes, wherever these are.
fn authorized_keys(image: &Image, out: &mut Vec<Finding>) {
    // Without a ledger nothing is known of who put what, which the container family says.
    if image.manifest.is_none() {
        return;
    }
    for (path, entry) in &image.tree.entries {
        let name = path.as_bytes();
        let is_one = [&b".ssh/authorized_keys"[..], b".ssh/authorized_keys2"]
            .iter()
            .any(|end| name.strip_suffix(*end).is_some_and(|home| home.is_empty() || home.ends_with(b"/")));
        if !is_one || matches!(entry.kind, Kind::Directory) || put_by_overlay(image, path).is_some() {
            continue;
        }
        if let Some(message) = keys(image, path) {
            let help =
                "remove it; keys that are meant are declared: `[image] ssh-authorized-keys`, or an overlay's file";
            out.push(KEYS.finding(path.display(), message).help(help));
        }
    }
}

/// What is to say of a file of keys; `None` when there are none in it.
fn keys(image: &Image, path: &TreePath) -> Option<String> {
    let unrecorded = "which no overlay put: it was in the base, or was put there after the build";
    let end = follow(&image.tree, path)?;
    if !matches!(&image.tree.get(&end)?.kind, Kind::File(data) if data.len > 0) {
        return None;
    }
    // Of files outside the homes of people only the length is known.
    let Ok(content) = image.tree.content(&end) else { return Some(format!("it has keys for SSH, {unrecorded}")) };
    let text = String::from_utf8_lossy(&content).into_owned();
    let keys = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    match keys {
        0 => None,
        1 => Some(format!("it has one key for SSH, {unrecorded}")),
        keys => Some(format!("it has {keys} keys for SSH, {unrecorded}")),
    }
}
