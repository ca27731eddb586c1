//! Shell patterns as fnmatch(3) without flags reads them: `*`, `?`, `[a-z]`, `[!x]`, `\x`.

/// True when the whole name matches the pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    whole(&pattern, &name)
}

fn whole(pattern: &[char], name: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return name.is_empty() };
    match first {
        '*' => (0..=name.len()).any(|skip| whole(rest, &name[skip..])),
        '?' => !name.is_empty() && whole(rest, &name[1..]),
        '[' => match (class(rest), name.split_first()) {
            (Some((set, after)), Some((c, tail))) => set.contains(*c) && whole(after, tail),
            (Some(_), None) => false,
            // Without a closing bracket it is an ordinary character.
            (None, _) => name.first() == Some(&'[') && whole(rest, &name[1..]),
        },
        '\\' if !rest.is_empty() => name.first() == rest.first() && whole(&rest[1..], &name[1..]),
        c => name.first() == Some(c) && whole(rest, &name[1..]),
    }
}

/// A bracket expression without its brackets.
struct Class<'p> {
    negated: bool,
    members: &'p [char],
}

impl Class<'_> {
    fn contains(&self, c: char) -> bool {
        let mut at = 0;
        let mut found = false;
        while at < self.members.len() {
            let low = self.members[at];
            let is_range = at + 2 < self.members.len() && self.members[at + 1] == '-';
            let high = if is_range { self.members[at + 2] } else { low };
            found |= (low..=high).contains(&c);
            at += if is_range { 3 } else { 1 };
        }
        found != self.negated
    }
}

/// Reads a class from behind its `[`; gives it and what follows its `]`. A `]` at the start is a member.
fn class(pattern: &[char]) -> Option<(Class<'_>, &[char])> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let members = &pattern[usize::from(negated)..];
    let end = members.iter().skip(1).position(|c| *c == ']')? + 1;
    Some((Class { negated, members: &members[..end] }, &members[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        let table = [
            ("*", "etcd.service", true),
            ("etcd.*", "etcd.service", true),
            ("etcd*.service", "etcd.service", true),
            ("*d.s*e", "etcd.service", true),
            ("etcd", "etcd.service", false),
            ("etc?.service", "etcd.service", true),
            ("etc[a-d].service", "etcd.service", true),
            ("etc[!a-c].service", "etcd.service", true),
            ("etc[^d].service", "etcd.service", false),
            ("[]e]tcd", "etcd", true),
            ("[etcd", "[etcd", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            (r"a\x2db.service", "ax2db.service", true),
            ("", "", true),
            ("?", "", false),
        ];
        for (pattern, name, want) in table {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
