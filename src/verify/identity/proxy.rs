//! Proxies of the build host.

use super::{files_below, put_by_overlay, rule, text};
use crate::finding::{Finding, Rule, Severity};
use crate::tree::TreePath;
use crate::verify::Image;

/// A proxy.
pub static PROXY: Rule = rule(
    "build-proxy",
    Severity::Warning,
    "the image goes through a proxy of the machine that made its base",
    "\
Builders write their proxy into apt's configuration (apt-transport-http(1)), the environment of all sessions (environment(5),
profile.d, systemd's `DefaultEnvironment=`) or the configuration of single programs. On the nodes it is unreachable, or worse, one
that others can put up, and it may hold a password. What an overlay puts there is taken as meant.",
);

/// Directories and files whose lines set variables.
const ENVIRONMENTS: [&str; 14] = [
    "/etc/environment",
    "/etc/environment.d",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/bash.bashrc",
    "/etc/default",
    "/etc/security/pam_env.conf",
    "/etc/systemd",
    "/etc/skel",
    "/etc/zsh",
    "/usr/lib/environment.d",
    "/root/.bashrc",
    "/root/.bash_profile",
    "/root/.profile",
];

/// Files of programs with a key for their proxy.
const PROGRAMS: [&str; 12] = [
    "/etc/wgetrc",
    "/root/.wgetrc",
    "/etc/curlrc",
    "/root/.curlrc",
    "/etc/pip.conf",
    "/root/.pip/pip.conf",
    "/root/.config/pip/pip.conf",
    "/etc/npmrc",
    "/root/.npmrc",
    "/etc/gitconfig",
    "/root/.gitconfig",
    "/etc/dnf/dnf.conf",
];

/// Applies the rule.
pub(super) fn check(image: &Image, out: &mut Vec<Finding>) {
    let mut look = |places: &[&str], find: fn(&str) -> Option<(usize, String)>| {
        for path in places.iter().flat_map(|place| files(image, place)) {
            let Some((line, what)) = text(image, &path.display()).and_then(|text| find(&text)) else { continue };
            if put_by_overlay(image, &path).is_none() {
                let secret = if has_password(&what) { ", with a password" } else { "" };
                let message = format!("line {line} names the proxy {}{secret}", without_password(&what));
                out.push(PROXY.finding(path.display(), message).help("remove it from the base"));
            }
        }
    };
    look(&["/etc/apt/apt.conf", "/etc/apt/apt.conf.d"], apt);
    look(&["/etc/apt/sources.list", "/etc/apt/sources.list.d"], sources);
    look(&ENVIRONMENTS, environment);
    look(&PROGRAMS, program);
}

/// A file, or the files below a directory.
fn files(image: &Image, place: &str) -> Vec<TreePath> {
    let path = TreePath::parse(place).unwrap_or_default();
    match image.tree.get(&path) {
        Some(entry) if entry.is_directory() => files_below(image, place).map(|(path, _)| path.clone()).collect(),
        Some(_) => vec![path],
        None => Vec::new(),
    }
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().is_some_and(|host| host.contains('@'))
}

fn without_password(url: &str) -> String {
    let shown = match (url.split_once("://"), has_password(url)) {
        (Some((scheme, rest)), true) => {
            format!("{scheme}://…@{}", rest.split_once('@').map_or("", |(_, rest)| rest))
        }
        _ => url.to_owned(),
    };
    format!("`{shown}`")
}

/// The first proxy of an apt configuration (apt.conf(5)): `Acquire::http::Proxy "…";`, or in nested blocks.
fn apt(text: &str) -> Option<(usize, String)> {
    let mut scopes: Vec<String> = Vec::new();
    let mut words: Vec<(usize, String)> = Vec::new();
    for (line, token) in apt_tokens(text) {
        match token.as_str() {
            "{" => scopes.push(words.drain(..).next().map(|(_, word)| word).unwrap_or_default()),
            "}" => {
                scopes.pop();
                words.clear();
            }
            ";" => {
                if let [(_, name), .., (line, value)] = words.as_slice() {
                    let full = [scopes.join("::"), name.clone()].join("::").to_lowercase();
                    let full = full.trim_start_matches("::");
                    let names = full.strip_prefix("acquire::").and_then(|rest| rest.split_once("::"));
                    let is_proxy = names.is_some_and(|(method, key)| {
                        let key = key.split("::").next().unwrap_or_default();
                        ["http", "https", "ftp"].contains(&method)
                            && ["proxy", "proxy-auto-detect", "proxyautodetect"].contains(&key)
                    });
                    if is_proxy && !value.is_empty() && !value.eq_ignore_ascii_case("direct") {
                        return Some((*line, value.clone()));
                    }
                }
                words.clear();
            }
            _ => words.push((line, token.trim_matches('"').to_owned())),
        }
    }
    None
}

/// Words, strings and marks, each with its line; comments are left out.
fn apt_tokens(text: &str) -> Vec<(usize, String)> {
    let mut tokens = Vec::new();
    let mut in_comment = false;
    for (index, line) in text.lines().enumerate() {
        let mut rest = line;
        loop {
            if in_comment {
                match rest.split_once("*/") {
                    Some((_, after)) => (in_comment, rest) = (false, after),
                    None => break,
                }
            }
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with("//") || rest.starts_with('#') {
                break;
            }
            if let Some(after) = rest.strip_prefix("/*") {
                (in_comment, rest) = (true, after);
                continue;
            }
            let end = match rest.as_bytes()[0] {
                b'{' | b'}' | b';' => 1,
                b'"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                _ => rest.find(|c: char| c.is_whitespace() || "{};\"".contains(c)).unwrap_or(rest.len()),
            };
            tokens.push((index + 1, rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    tokens
}

/// A mirror that only the build host reaches, or a cache of packages (apt-cacher-ng and its like have port 3142).
fn sources(text: &str) -> Option<(usize, String)> {
    let is_cache = |word: &&str| {
        let Some((_, rest)) = word.split_once("://") else { return false };
        let host = rest.split('/').next().unwrap_or_default();
        let name = host.trim_start_matches('[').split([':', ']']).next().unwrap_or_default();
        name == "localhost" || name.starts_with("127.") || host.starts_with("[::1]") || host.ends_with(":3142")
    };
    lines(text).find_map(|(number, line)| line.split_whitespace().find(is_cache).map(|word| (number, word.to_owned())))
}

/// `http_proxy=…` in any case, exported or not, alone or in a list of variables.
fn environment(text: &str) -> Option<(usize, String)> {
    lines(text).find_map(|(number, line)| {
        let plain = line.replace("=\"", "=").replace("='", "=").replace(['"', '\'', ';'], " ");
        plain.split_whitespace().find_map(|word| {
            let lower = word.to_lowercase();
            let at = ["http_proxy=", "https_proxy=", "ftp_proxy=", "all_proxy="].iter().find_map(|name| {
                let at = lower.find(name)?;
                let alone = at == 0 || lower[..at].ends_with('=');
                alone.then_some(at + name.len())
            })?;
            let value = word.get(at..).filter(|value| !value.is_empty() && !value.starts_with('$'))?;
            Some((number, value.to_owned()))
        })
    })
}

/// `proxy = …` and its like.
fn program(text: &str) -> Option<(usize, String)> {
    lines(text).find_map(|(number, line)| {
        let (key, value) = line.split_once(['=', ' ', '\t'])?;
        let key = key.trim().trim_start_matches('-').to_lowercase();
        let names = ["proxy", "https-proxy", "http-proxy", "http_proxy", "https_proxy", "ftp_proxy"];
        let value = value.trim().trim_start_matches('=').trim().trim_matches('"');
        (names.contains(&key.as_str()) && !value.is_empty()).then(|| (number, value.to_owned()))
    })
}

/// Lines with their numbers, without comments and blank ones.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (fn(&str) -> Option<(usize, String)>, &'static str, Option<(usize, &'static str)>);

    #[test]
    fn proxies_are_found_where_they_are_set_and_only_there() {
        let cases: &[Case] = &[
            (apt, "Acquire::http::Proxy \"http://10.0.0.1:3128\";", Some((1, "http://10.0.0.1:3128"))),
            (apt, "Acquire {\n http { Proxy \"http://p:1\"; };\n};", Some((2, "http://p:1"))),
            (apt, "acquire::HTTPS::proxy::deb.debian.org \"http://p:1\";", Some((1, "http://p:1"))),
            (apt, "Acquire::http::Proxy-Auto-Detect \"/usr/bin/x\";", Some((1, "/usr/bin/x"))),
            (apt, "Acquire::http::Proxy \"DIRECT\";\nAcquire::https::Proxy \"false\" ;", Some((2, "false"))),
            (apt, "Acquire::http::Proxy \"DIRECT\";", None),
            (
                apt,
                "// Acquire::http::Proxy \"x\";\n# Acquire::http::Proxy \"x\";\n/* Acquire::http::Proxy\n\"x\"; */",
                None,
            ),
            (apt, "APT { NeverAutoRemove { \"^proxy\"; }; };\nDPkg::Pre-Install-Pkgs { \"a\"; };", None),
            (sources, "deb http://127.0.0.1:8080/repo trixie main", Some((1, "http://127.0.0.1:8080/repo"))),
            (sources, "Types: deb\nURIs: http://cache.lan:3142/repo", Some((2, "http://cache.lan:3142/repo"))),
            (sources, "deb http://mirror.lan/repo trixie main", None),
            (environment, "export http_proxy=\"http://u:p@p:1\"; export x=y", Some((1, "http://u:p@p:1"))),
            (environment, "[Manager]\nDefaultEnvironment=\"a=b\" \"HTTPS_PROXY=http://p:1\"", Some((2, "http://p:1"))),
            (environment, "Environment=ALL_PROXY=socks5://p:1", Some((1, "socks5://p:1"))),
            (environment, "# http_proxy=x\nno_proxy=localhost\nhttp_proxy=\nhttp_proxy=$x\nmy_http_proxy=x", None),
            (program, "use_proxy = on\nhttps_proxy = http://p:1/", Some((2, "http://p:1/"))),
            (program, "[http]\n\tproxy = http://p:1", Some((2, "http://p:1"))),
            (program, "proxy-user = x\n#proxy = http://p:1", None),
        ];
        for (find, text, want) in cases {
            let want = want.map(|(line, value)| (line, value.to_owned()));
            assert_eq!(find(text), want, "{text}");
        }
        assert_eq!(without_password("http://u:p@p:1"), "`http://…@p:1`");
        assert_eq!(without_password("http://p:1"), "`http://p:1`");
    }
}
