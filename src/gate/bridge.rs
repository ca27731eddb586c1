//! The bridge, and per machine a network namespace that has its address before the machine boots, as LXC, Incus and
//! Proxmox do it for `network-config = "none"`. The address stays over a reboot of the machine.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::finding::Failure;
use crate::process::Command;

/// Name of the bridge, in the gate's own network namespace.
const BRIDGE: &str = "mesh0";
/// Name of the interface in a machine; the one that systemd-nspawn gives.
const INTERFACE: &str = "host0";

fn ip(arguments: &[&str]) -> Result<(), Failure> {
    Command::new("ip").args(arguments).check().map(|_| ())
}

/// An address with the prefix length of the network, and without the wait for duplicates.
fn give(namespace: Option<&str>, interface: &str, address: IpAddr, network: &IpNet) -> Result<(), Failure> {
    let address_text = format!("{address}/{}", network.prefix_len());
    let mut arguments = Vec::new();
    arguments.extend(namespace.iter().flat_map(|n| ["-n", n]));
    arguments.extend(["addr", "add", &address_text, "dev", interface]);
    if address.is_ipv6() {
        arguments.push("nodad");
    }
    ip(&arguments)
}

/// Makes the bridge and gives the gate an address on it, so that it is a guest in the mesh's network.
///
/// # Errors
/// When `ip` fails.
pub fn create(ours: IpAddr, network: &IpNet) -> Result<(), Failure> {
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    give(None, BRIDGE, ours, network)?;
    ip(&["link", "set", BRIDGE, "up"])
}

/// Makes a machine's network namespace, plugged into the bridge, and gives its path.
///
/// # Errors
/// When `ip` fails.
pub fn plug(number: usize, address: IpAddr, network: &IpNet) -> Result<String, Failure> {
    // Interface names are at most 15 bytes long; node names may be longer.
    let (namespace, port) = (format!("m{number}"), format!("port{number}"));
    ip(&["netns", "add", &namespace])?;
    ip(&["link", "add", &port, "type", "veth", "peer", "name", INTERFACE, "netns", &namespace])?;
    ip(&["link", "set", &port, "master", BRIDGE, "up"])?;
    ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
    give(Some(&namespace), INTERFACE, address, network)?;
    ip(&["-n", &namespace, "link", "set", INTERFACE, "up"])?;
    Ok(format!("/run/netns/{namespace}"))
}

/// The highest host address of the network that no node has.
///
/// # Errors
/// When none is free.
pub fn free_address(network: &IpNet, taken: &[IpAddr]) -> Result<IpAddr, Failure> {
    let free = |address: &IpAddr| !taken.contains(address);
    let found = match network {
        IpNet::V4(net) => {
            let (first, last) = (u32::from(net.network()), u32::from(net.broadcast()));
            // The first and the last address of an IPv4 network belong to nobody.
            (first + 1..last).rev().map(|n| IpAddr::from(std::net::Ipv4Addr::from(n))).find(free)
        }
        IpNet::V6(net) => {
            let (first, last) = (u128::from(net.network()), u128::from(net.broadcast()));
            (first + 1..=last).rev().map(|n| IpAddr::from(std::net::Ipv6Addr::from(n))).find(free)
        }
    };
    found.ok_or_else(|| {
        Failure::new(format!("{network} has no free address for the gate itself"))
            .help("the gate checks the registry as a guest in the mesh's network: declare a larger one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_takes_an_address_that_no_node_has() {
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            ("10.77.0.0/24", &["10.77.0.11"], Some("10.77.0.254")),
            ("10.77.0.0/24", &["10.77.0.254", "10.77.0.253"], Some("10.77.0.252")),
            ("10.77.0.0/30", &["10.77.0.1", "10.77.0.2"], None),
            ("fd00::/64", &[], Some("fd00::ffff:ffff:ffff:ffff")),
        ];
        for (network, taken, want) in cases {
            let taken: Vec<IpAddr> = taken.iter().map(|a| a.parse().unwrap()).collect();
            let got = free_address(&network.parse().unwrap(), &taken).ok();
            assert_eq!(got.map(|a| a.to_string()).as_deref(), *want, "{network}");
        }
    }
}
