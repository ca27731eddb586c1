//! Edits of files that are the base's own: pure functions from bytes to bytes. Done twice, they change nothing more.

use std::net::IpAddr;

/// First line of the marked block in `/etc/hosts`.
pub const HOSTS_BEGIN: &str = "# begin of the mesh's nodes, written by fitout";
/// Last line of the marked block.
pub const HOSTS_END: &str = "# end of the mesh's nodes";
/// What a system without `/etc/hosts` lacks (Debian's netbase writes the same names).
const HOSTS_LOCAL: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Sets `IMAGE_ID=` and `IMAGE_VERSION=` (os-release(5)) and leaves all else as it is.
pub fn os_release(base: &[u8], id: &str, version: &str) -> Vec<u8> {
    let base = String::from_utf8_lossy(base);
    let mut text: String = base
        .lines()
        .filter(|line| !line.starts_with("IMAGE_ID=") && !line.starts_with("IMAGE_VERSION="))
        .map(|line| format!("{line}\n"))
        .collect();
    for (key, value) in [("IMAGE_ID", id), ("IMAGE_VERSION", version)] {
        text.push_str(&format!("{key}={}\n", super::filters::sh_quote(value)));
    }
    text.into_bytes()
}

/// One line of `/etc/hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Address.
    pub address: IpAddr,
    /// Full name: the canonical one, so it comes first (hosts(5)).
    pub fqdn: String,
    /// Short name.
    pub name: String,
}

/// Puts all nodes into a marked block. The base's own name and Debian's `127.0.1.1` line go: a node's name must lead to
/// its mesh address. `base` is `None` where the base has no such file.
pub fn hosts(base: Option<&[u8]>, base_hostname: &str, nodes: &[Host]) -> Vec<u8> {
    let base = base.map_or(HOSTS_LOCAL.into(), String::from_utf8_lossy);
    let mut text = String::new();
    let mut in_block = false;
    for line in base.lines() {
        in_block |= line == HOSTS_BEGIN;
        if !in_block {
            text.extend(keep_host(line, base_hostname).map(|line| line + "\n"));
        }
        in_block &= line != HOSTS_END;
    }
    text.push_str(&format!("{HOSTS_BEGIN}\n"));
    for Host { address, fqdn, name } in nodes {
        text.push_str(&format!("{address}\t{fqdn} {name}\n"));
    }
    text.push_str(&format!("{HOSTS_END}\n"));
    text.into_bytes()
}

/// A line of the base without the base's own name; `None` when nothing is left of it.
fn keep_host(line: &str, base_hostname: &str) -> Option<String> {
    let content = line.split('#').next().unwrap_or("");
    let mut words = content.split_whitespace();
    let Some(address) = words.next() else { return Some(line.to_owned()) };
    if address == "127.0.1.1" {
        return None;
    }
    let own = |name: &&str| {
        let is_local = name.starts_with("localhost");
        !is_local
            && !base_hostname.is_empty()
            && (*name == base_hostname || name.starts_with(&format!("{base_hostname}.")))
    };
    let names: Vec<&str> = words.collect();
    if !names.iter().any(own) {
        return Some(line.to_owned());
    }
    let left: Vec<&str> = names.into_iter().filter(|name| !own(name)).collect();
    if left.is_empty() { None } else { Some(format!("{address}\t{}", left.join(" "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_gets_two_lines_and_keeps_the_rest() {
        let base = b"NAME=\"Debian\"\nIMAGE_ID=old\nID=debian";
        let edited = os_release(base, "harbour-voter", "2026.11.0 rc");
        assert_eq!(
            String::from_utf8_lossy(&edited),
            "NAME=\"Debian\"\nID=debian\nIMAGE_ID=harbour-voter\nIMAGE_VERSION='2026.11.0 rc'\n"
        );
        assert_eq!(os_release(&edited, "harbour-voter", "2026.11.0 rc"), edited);
    }

    #[test]
    fn hosts_has_every_node_and_nothing_of_the_build_host() {
        let nodes = [
            Host { address: "10.77.0.11".parse().unwrap(), fqdn: "lis1.harbour.mesh".into(), name: "lis1".into() },
            Host { address: "fd00::12".parse().unwrap(), fqdn: "por1.harbour.mesh".into(), name: "por1".into() },
        ];
        let block = format!(
            "{HOSTS_BEGIN}\n10.77.0.11\tlis1.harbour.mesh lis1\nfd00::12\tpor1.harbour.mesh por1\n{HOSTS_END}\n"
        );
        let cases = [
            (None, HOSTS_LOCAL.to_owned()),
            (Some("127.0.0.1 localhost\n127.0.1.1 vm.example vm\n"), "127.0.0.1 localhost\n".to_owned()),
            (Some("127.0.0.1 localhost vm\n# about vm\n"), "127.0.0.1\tlocalhost\n# about vm\n".to_owned()),
            (Some("192.0.2.1 vm.example vm\n192.0.2.2 other vmx\n"), "192.0.2.2 other vmx\n".to_owned()),
        ];
        for (base, want) in cases {
            let edited = hosts(base.map(str::as_bytes), "vm", &nodes);
            assert_eq!(String::from_utf8_lossy(&edited), want + &block, "{base:?}");
            assert_eq!(hosts(Some(&edited), "vm", &nodes), edited, "twice: {base:?}");
        }
    }
}
