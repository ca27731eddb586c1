//! Passwords that all machines of an image would share.

use super::{rule, text};
use crate::finding::{Finding, Rule, Severity};
use crate::verify::Image;

/// A password.
pub static PASSWORD: Rule = rule(
    "password-shared",
    Severity::Warning,
    "a user has a password, which all images of the base share, or needs none",
    "\
The second field of shadow(5) is a hash, which who has one image can try to guess for all of them, or empty, so that no password is
asked for. `!` and `*` lock the password; keys for SSH work all the same. `fitout` locks root and what overlays add, and does not
change users of the base: lock them there with `passwd --lock`.",
);

/// Applies the rule.
pub(super) fn check(image: &Image, out: &mut Vec<Finding>) {
    let shadow = "/etc/shadow";
    let lines = text(image, shadow).unwrap_or_default();
    for (user, hash) in lines.lines().filter_map(|line| line.split_once(':')) {
        let hash = hash.split(':').next().unwrap_or_default();
        let message = match hash.chars().next() {
            Some('!' | '*') => continue,
            None => format!("user `{user}` needs no password"),
            Some(_) => format!("user `{user}` has a password"),
        };
        out.push(PASSWORD.finding(shadow, message).help(format!("lock it in the base: `passwd --lock {user}`")));
    }
}
