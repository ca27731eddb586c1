//! Whether something listens on a port, from what the kernel says (proc(5), `/proc/net/tcp`): nothing connects to a service
//! just to see whether it is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `TCP_LISTEN` of the kernel's `include/net/tcp_states.h`.
const LISTEN: &str = "0A";

/// The listening sockets of this network namespace.
///
/// # Errors
/// When the kernel does not say.
pub fn listening() -> Result<Vec<(IpAddr, u16)>, String> {
    let mut all = Vec::new();
    for file in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        match std::fs::read_to_string(file) {
            Ok(text) => all.extend(parse(&text)),
            // A kernel without IPv6.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.ends_with('6') => {}
            Err(error) => return Err(format!("cannot read {file}: {error}")),
        }
    }
    Ok(all)
}

/// True when one of the sockets can be reached by this address and port.
pub fn serves(sockets: &[(IpAddr, u16)], address: IpAddr, port: u16) -> bool {
    let any = |at: &IpAddr| at.is_unspecified() && (address.is_ipv4() || at.is_ipv6());
    sockets.iter().any(|(at, on)| *on == port && (any(at) || at.to_canonical() == address.to_canonical()))
}

fn parse(text: &str) -> Vec<(IpAddr, u16)> {
    text.lines().filter_map(line).collect()
}

/// `   0: 0B00007F:1538 00000000:0000 0A …`: each 32-bit group of an address in the byte order of the machine.
fn line(line: &str) -> Option<(IpAddr, u16)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    let state = fields.nth(1)?;
    let groups: Vec<[u8; 4]> = (0..address.len() / 8)
        .map(|i| u32::from_str_radix(address.get(8 * i..8 * i + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect::<Option<_>>()?;
    let address: IpAddr = match groups.as_slice() {
        [one] => Ipv4Addr::from(*one).into(),
        [a, b, c, d] => {
            let bytes: [u8; 16] = [*a, *b, *c, *d].concat().try_into().ok()?;
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    (state == LISTEN).then_some(())?;
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_this_process_is_seen_while_it_listens() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        assert!(serves(&listening().unwrap(), at.ip(), at.port()));
        assert!(!serves(&listening().unwrap(), "127.0.0.9".parse().unwrap(), at.port()));
        drop(socket);
        assert!(!serves(&listening().unwrap(), at.ip(), at.port()));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_lines() {
        let text = "  sl  local_address rem_address   st tx_queue\n\
                    0: 0B004D0A:1538 00000000:0000 0A 00000000:00000000\n\
                    1: 0B004D0A:1539 0C004D0A:A000 01 00000000:00000000\n\
                    2: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 0\n\
                    3: 0000000000000000FFFF00000B004D0A:0050 00000000000000000000000000000000:0000 0A 0\n\
                    junk\n";
        let sockets = parse(text);
        let address: IpAddr = "10.77.0.11".parse().unwrap();
        let other: IpAddr = "10.77.0.12".parse().unwrap();
        for (at, port, want) in [
            (address, 5432, true),
            (other, 5432, false),
            (address, 5433, false),
            (other, 443, true),
            (address, 80, true),
        ] {
            assert_eq!(serves(&sockets, at, port), want, "{at}:{port}");
        }
    }
}
