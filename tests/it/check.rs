//! `fitout check` against real registries: what can be wrong with one, and that the commands it prints mend it.
//!
//! One start of a registry serves many rows. A row spoils something, says which findings must come (and no others), and
//! mends it. etcd's own times are waited for by condition.

mod forge;
mod keys;
pub(crate) mod registry;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{run, tool, until};
use forge::Leaf;
use registry::{NODES, Registry, the};

/// A code, and a text that must be said with it.
type Want<'a> = (&'a str, &'a str);

/// An address to which packets are sent and from which nothing ever comes.
const HOLE: &str = "192.0.2.9";

#[test]
fn a_registry_of_trixie_and_all_that_can_be_wrong_with_it() {
    let mut registry = Registry::new("trixie");
    // From its birth por1 is 200 ms away from the others; what they measure is there after 30 s.
    let relay = slow_down(&mut registry, "por1");
    registry.start_all();
    registry.mended("start");
    all_is_well(&registry);
    server_certificates(&registry);
    client_certificates(&registry);
    endpoints(&mut registry);
    registry.finds(
        "the members measured it",
        "lis1",
        &[],
        &[("live-round-trip", "the timing bears 100 ms\nlook at the route")],
    );
    speed_up(&mut registry, "por1", &relay);
    membership(&mut registry);
    replacement(&mut registry);
    data(&mut registry);
    strangers_and_other_clusters(&mut registry);
    the_end(&mut registry);
}

#[test]
fn a_registry_of_bookworm() {
    let mut registry = Registry::new("bookworm");
    registry.start_all();
    registry.mended("start");
    all_is_well(&registry);
    membership(&mut registry);
    replacement(&mut registry);
    data(&mut registry);
    // An upgrade, one member first. There is no way back: 3.4 does not read what 3.5 has written.
    let (from, newer) = (registry::mesh("trixie").join("dist/por1.tar.gz"), registry.file("por1", ""));
    registry.stop("por1");
    tool("tar", &["-xzf", from.to_str().unwrap(), "-C", newer.to_str().unwrap(), "./usr/bin/etcd"]);
    registry.start("por1");
    let skew = [("live-version-skew", "3.4.23: https://127.77.0.11:2379"), ("live-version-skew", "3.5.16: ")];
    let found = registry.finds("one member is newer", "lis1", &[], &skew);
    assert!(the(&found, "live-version-skew").text.starts_with("warning"), "neighbours may run together: {found:#?}");
    the_end(&mut registry);
}

/// A clean registry: each node's image, all at once, an operator's certificate, how fast, and that nothing is written.
fn all_is_well(registry: &Registry) {
    for (node, _) in NODES {
        registry
            .check(node, &[])
            .exits(0)
            .says("is a member (")
            .says("clean")
            .does_not_say("member remove")
            .does_not_say("error[");
    }
    let others = ["mad1", "por1"].map(|node| registry.image(node).to_str().unwrap().to_owned());
    let said = registry.check("lis1", &[&others[0], &others[1]]).exits(0);
    for (code, times) in [("live-next-step", 3), ("live-votes", 1)] {
        assert_eq!(said.stdout.matches(&format!("[{code}]")).count(), times, "{code}\n{}", said.all());
    }
    said.says("without porto: 2 of 3 votes, 2 needed: writes go on");

    let revision = || {
        let status = registry.etcdctl(&["endpoint", "status", "--write-out=json"]);
        status.split("\"revision\":").nth(1).and_then(|t| t.split([',', '}']).next()).unwrap().to_owned()
    };
    let before = revision();
    registry.check("lis1", &[]).exits(0);
    assert_eq!(revision(), before, "the check writes nothing");

    // The best of five: other programs run on this machine too.
    let times = (0..5).map(|_| {
        let start = Instant::now();
        registry.check("lis1", &[]).exits(0);
        start.elapsed()
    });
    let best = times.min().unwrap();
    assert!(best < Duration::from_secs(1), "a check took {best:?}");
}

/// etcd reads certificate and key at each handshake, so a swapped file counts at once.
fn server_certificates(registry: &Registry) {
    let client = registry.mesh.join("pki/authority/client");
    let own = registry.file("por1", "etc/etcd/pki/server");
    let kept = registry.file("por1", "kept/server");
    copy_pair(&own, &kept);
    let leaf = |address, valid, server| Leaf { name: "por1", address, valid, server };
    let address = Some("127.77.0.12");
    //   what it is                  leaf                                       authority    code, text
    let rows: [(&str, Leaf<'_>, bool, Want<'_>); 7] = [
        ("expired", leaf(address, (-20, -10), true), true, ("live-server-expired", "it was valid until 20")),
        ("not yet valid", leaf(address, (10, 20), true), true, ("live-server-not-yet-valid", "it is valid from 20")),
        ("another address", leaf(Some("127.77.0.11"), (-1, 90), true), true, ("live-server-name", "127.77.0.11")),
        ("no alternative name", leaf(None, (-1, 90), true), true, ("live-server-name", "`127.77.0.12` is not among")),
        ("another authority", leaf(address, (-1, 90), true), false, ("live-server-authority", "another authority")),
        ("a client's", leaf(address, (-1, 90), false), true, ("live-server-usage", "lacks server authentication")),
        ("ends soon", leaf(address, (-1, 10), true), true, ("live-server-ends-soon", "ends in 9 days")),
    ];
    for (what, wanted, ours, want) in rows {
        if ours {
            forge::leaf(&client, &wanted, &own)
        } else {
            forge::foreign(&wanted, &own)
        }
        registry.finds(what, "lis1", &[], &[want]);
    }
    copy_pair(&kept, &own);
    registry.mended("server certificates");
}

/// What is shown to the registry: an operator's certificate, good and bad.
fn client_certificates(registry: &Registry) {
    let client = registry.mesh.join("pki/authority/client");
    let leaf = |valid, server| Leaf { name: "operator:anna", address: None, valid, server };
    let refused = ("live-client-refused", "https://127.77.0.13:2379");
    //   what it is           leaf                      authority   findings
    let rows: [(&str, Leaf<'_>, bool, &[Want<'_>]); 5] = [
        ("expired", leaf((-20, -10), false), true, &[("live-client-expired", "pki issue"), refused]),
        ("not yet valid", leaf((10, 20), false), true, &[("live-client-not-yet-valid", "clock"), refused]),
        ("of another store", leaf((-1, 90), false), false, &[("live-client-authority", "from the store"), refused]),
        ("a server's", leaf((-1, 90), true), true, &[("live-client-usage", "client authentication"), refused]),
        ("ends soon", leaf((-1, 10), false), true, &[("live-client-ends-soon", "ends in 9 days")]),
    ];
    for (what, wanted, ours, want) in rows {
        let to = registry.file("credentials", what).join("anna");
        if ours {
            forge::leaf(&client, &wanted, &to)
        } else {
            forge::foreign(&wanted, &to)
        }
        registry.finds(what, "lis1", &["--credentials", to.parent().unwrap().to_str().unwrap()], want);
    }
    run(&registry.mesh, &["pki", "issue", "--operator", "anna"]).exits(0);
    let options = ["--credentials", "pki/operators", "--replace"];
    let found = registry.finds("an operator's certificate", "lis1", &options, &[]);
    let export = the(&found, "live-next-step").notes.into_iter().find(|n| n.starts_with("1. ")).unwrap();
    assert!(export.contains("/pki/operators/anna.key") && export.contains("/pki/authority/client.crt"), "{export}");
    registry
        .check("lis1", &["--credentials", "pki/operators/bert"])
        .exits(3)
        .says("no certificate pki/operators/bert.crt");
    registry.check("lis1", &["--credentials", "dist"]).exits(3).says("dist holds no certificate with its key");
    // The steps below propose a new one where there is none.
    std::fs::remove_dir_all(registry.mesh.join("pki/operators")).unwrap();
}

/// Endpoints that are away, silent, or something else.
fn endpoints(registry: &mut Registry) {
    let away = |reason| [("live-unreachable", "https://127.77.0.12:2379"), ("live-unreachable", reason)];
    registry.stop("por1");
    let found = registry.finds("one of three away", "lis1", &[], &away("connection refused"));
    assert!(
        the(&found, "live-votes").text.contains("the loss of lisbon or madrid would stop all writes"),
        "{found:#?}"
    );
    registry.start("por1");
    registry.mended("one of three away");

    // The kernel takes the connection, and nobody ever answers.
    registry.freeze("por1");
    let start = Instant::now();
    registry.check("lis1", &["--timeout", "1"]).exits(1).says("live-unreachable").says("nothing was heard");
    assert!(start.elapsed() < Duration::from_secs(3), "a silent member took {:?}", start.elapsed());
    registry.thaw("por1");
    registry.mended("black hole");

    // Packets go and nothing comes back.
    for step in ["link add hole type veth peer name other", "addr add 192.0.2.1/24 dev hole", "link set hole up"] {
        registry.ip(step);
    }
    registry.ip("link set other up");
    registry.ip(&format!("neigh add {HOLE} lladdr 02:00:00:00:00:09 dev hole nud permanent"));
    let ends = |endpoints: &[&str], code, text: &str| {
        let options: Vec<&str> = endpoints.iter().flat_map(|e| ["--endpoint", e]).chain(["--timeout", "1"]).collect();
        let start = Instant::now();
        registry.check("lis1", &options).exits(code).says(text);
        assert!(start.elapsed() < Duration::from_secs(3), "{endpoints:?} took {:?}", start.elapsed());
    };
    let hole = format!("https://{HOLE}:2379");
    ends(&[&hole], 3, "no answer to the connection request");
    ends(&[&hole, "https://127.77.0.11:2379"], 1, "live-unreachable");
    ends(&["http://127.77.0.11:2379"], 1, "live-plain-http");
    // The metrics listener speaks HTTP.
    ends(&["https://127.77.0.11:2381"], 1, "live-plain-http");
    ends(&["https://127.77.0.11:2379"], 0, "live-votes");
    ends(&["ftp://x"], 2, "is no endpoint");
}

/// The member list against the declaration; what is printed is pasted.
fn membership(registry: &mut Registry) {
    // etcd changes no members until all have been connected for five seconds.
    until("one voter more", || {
        let words = ["member", "add", "extra", "--peer-urls=https://127.77.0.99:2380"];
        let said = registry.etcdctl_at("127.77.0.11", &words);
        if said.code == Some(0) { Ok(()) } else { Err(said.all()) }
    });
    let found = registry.finds("one voter more", "lis1", &[], &[("live-member-extra", "https://127.77.0.99:2380")]);
    registry.paste(&the(&found, "live-member-extra"), usize::MAX);
    registry.mended("one voter more");

    let id = member_id(registry, "por1");
    registry.etcdctl(&["member", "update", &id, "--peer-urls=https://127.77.0.22:2380"]);
    let found = registry.finds(
        "another peer URL",
        "lis1",
        &[],
        &[(
            "live-member-moved",
            "is at https://127.77.0.22:2380 in the registry, declared at https://127.77.0.12:2380",
        )],
    );
    registry.paste(&the(&found, "live-member-moved"), usize::MAX);
    registry.mended("another peer URL");

    registry.stop("por1");
    registry.edit("por1", &[("name: \"por1\"", "name: \"porto\""), (",por1=", ",porto=")]);
    registry.start("por1");
    registry.finds("another name", "por1", &[], &[("live-member-renamed", "calls itself `porto`")]);
    registry.stop("por1");
    registry.edit("por1", &[("name: \"porto\"", "name: \"por1\""), (",porto=", ",por1=")]);
    registry.start("por1");
    registry.mended("another name");
}

/// A member is lost and replaced, by what each state's next step prints.
fn replacement(registry: &mut Registry) {
    // Of a member that runs: nothing, and on request the whole sequence.
    let found = registry.finds("all is well", "por1", &[], &[]);
    assert!(the(&found, "live-next-step").notes.is_empty(), "{found:#?}");
    let found = registry.finds("all is well", "por1", &["--replace"], &[]);
    let steps = registry.paste(&the(&found, "live-next-step"), usize::MAX);
    registry.mended("the whole replacement");
    until("its id is a new one", || {
        let found = registry.findings("lis1", &[])?;
        found.iter().find(|f| f.code == "live-member-rejoined").map(|_| ()).ok_or(format!("{found:#?}"))
    });

    // It is down, its data are gone, and somebody removed it: it is as good as new.
    registry.stop("por1");
    let found = registry.finds("down", "por1", &[], &[("live-unreachable", "127.77.0.12")]);
    let (next, id) = (the(&found, "live-next-step"), member_id(registry, "por1"));
    let printed: Vec<&String> = next.notes.iter().filter(|n| n.starts_with(|c: char| c.is_ascii_digit())).collect();
    let removal = printed.iter().position(|n| n.contains("member remove")).unwrap() + 1;
    assert!(printed[removal - 1].contains(&id) && printed.len() == steps, "{next:#?}");
    registry.paste(&next, removal);
    registry.finds("removed", "lis1", &[], &[("live-member-missing", "por1"), ("live-unreachable", "127.77.0.12")]);
    let gone = [
        ("live-member-missing", "por1"),
        ("live-unreachable", "127.77.0.12"),
        ("live-wrong-state", "is not in the member list"),
    ];
    let next = the(&registry.finds("removed", "por1", &[], &gone), "live-next-step");
    let addition = next.notes.iter().position(|n| n.contains("member add")).unwrap() + 1;
    registry.paste(&next, addition);
    let added = [
        ("live-member-learner", "has no vote"),
        ("live-member-unstarted", "has never been started"),
        ("live-unreachable", "127.77.0.12"),
        ("live-wrong-state", "was added to a registry that lives"),
    ];
    // The rest of the first sequence and what is printed now are the same work; the latter is done.
    let found = registry.finds("added", "por1", &[], &added);
    registry.empty("por1");
    let next = the(&found, "live-next-step");
    let start = next.notes.iter().position(|n| n.contains("enable --now")).unwrap() + 1;
    registry.paste(&next, start);
    let found = registry.finds("a learner", "lis1", &[], &[("live-member-learner", "has no vote")]);
    let learner = the(&found, "live-member-learner");
    registry.paste(&learner, usize::MAX);
    registry.mended("the replacement step by step");
}

/// Quota and corruption; what is printed is pasted.
fn data(registry: &mut Registry) {
    let size: u64 = {
        let status = registry.etcdctl_at("127.77.0.12", &["endpoint", "status", "--write-out=json"]).exits(0).stdout;
        let number = status.split("\"dbSize\":").nth(1).and_then(|t| t.split([',', '}']).next()).unwrap().to_owned();
        number.parse().unwrap()
    };
    let quota = |bytes: u64| format!("quota-backend-bytes: {bytes}");
    registry.stop("por1");
    registry.edit("por1", &[(&quota(2 << 30), &quota(size + size / 10))]);
    registry.start("por1");
    registry.finds("nearly full", "lis1", &[], &[("live-quota-near", "https://127.77.0.12:2379")]);
    let large = "x".repeat(size.try_into().unwrap());
    until("full", || {
        let said = registry.etcdctl_at("127.77.0.12", &["put", "large", &large]);
        if said.stderr.contains("space exceeded") { Ok(()) } else { Err(said.all()) }
    });
    let found = registry.finds("full", "lis1", &[], &[("live-alarm-nospace", "por1")]);
    registry.stop("por1");
    registry.edit("por1", &[(&quota(size + size / 10), &quota(2 << 30))]);
    registry.start("por1");
    registry.paste(&the(&found, "live-alarm-nospace"), usize::MAX);
    registry.mended("full");
    registry.etcdctl(&["put", "small", "x"]);

    // One value is another one on one member's disk; bbolt's pages have no checksum.
    registry.etcdctl(&["put", "canary", "a-value-that-was-written"]);
    registry.mended("a write");
    registry.end("por1");
    let file = registry.file("por1", "data/member/snap/db");
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> = (0..bytes.len()).filter(|n| bytes[*n..].starts_with(b"a-value-that-was")).collect();
    assert!(!places.is_empty(), "the value is in the file");
    for place in places {
        bytes[place] = b'b';
    }
    std::fs::write(&file, bytes).unwrap();
    registry.start("por1");
    let found = registry.finds("corrupt", "lis1", &[], &[("live-alarm-corrupt", "por1")]);
    registry.paste(&the(&found, "live-alarm-corrupt"), usize::MAX);
    registry.stop("por1");
    let gone = [
        ("live-member-missing", "por1"),
        ("live-unreachable", "127.77.0.12"),
        ("live-wrong-state", "is not in the member list"),
    ];
    let found = registry.finds("removed", "por1", &[], &gone);
    registry.paste(&the(&found, "live-next-step"), usize::MAX);
    registry.mended("corrupt");
    assert_eq!(registry.etcdctl(&["get", "canary", "--print-value-only"]).trim(), "a-value-that-was-written");
}

/// A listener that is open to everybody, and members that belong to another cluster.
fn strangers_and_other_clusters(registry: &mut Registry) {
    registry.stop("por1");
    let whole = registry.configuration("por1");
    let (before, client) = whole.split_once("client-transport-security:").unwrap();
    let (client, peer) = client.split_once("peer-transport-security:").unwrap();
    let open: String = client.lines().filter(|l| !l.contains("trusted-ca")).map(|l| l.to_owned() + "\n").collect();
    let open = open.replace("client-cert-auth: true", "client-cert-auth: false");
    registry.configure("por1", &format!("{before}client-transport-security:{open}peer-transport-security:{peer}"));
    registry.start("por1");
    registry.finds("open to everybody", "lis1", &[], &[("live-stranger-let-in", "client-cert-auth")]);
    registry.stop("por1");
    registry.configure("por1", &whole);

    // Started alone, by etcd's defaults or nearly so, behind the right certificate.
    let kept = registry.file("por1", "kept-data");
    std::fs::rename(registry.file("por1", "data"), &kept).unwrap();
    let line = |key: &str| whole.lines().find(|l| l.starts_with(key)).unwrap().to_owned();
    let (advertise, listen) = (line("initial-advertise-peer-urls: "), line("listen-peer-urls: "));
    let (cluster, state) = (line("initial-cluster: "), line("initial-cluster-state: "));
    for (token, code) in [("etcd-cluster", "live-cluster-lone-default"), ("harbour-g2", "live-cluster-foreign")] {
        registry.edit(
            "por1",
            &[
                (&advertise, "initial-advertise-peer-urls: \"http://localhost:2380\""),
                (&listen, "listen-peer-urls: \"http://127.0.0.1:2380\""),
                (&cluster, "initial-cluster: \"por1=http://localhost:2380\""),
                (&state, "initial-cluster-state: \"new\""),
                ("\"harbour-g1\"", &format!("\"{token}\"")),
            ],
        );
        registry.start("por1");
        registry.finds(code, "lis1", &[], &[(code, "127.77.0.12"), ("live-cluster-split", "2 different clusters")]);
        registry.stop("por1");
        registry.empty("por1");
        registry.configure("por1", &whole);
    }
    std::fs::rename(&kept, registry.file("por1", "data")).unwrap();
    registry.start("por1");
    registry.mended("other clusters");
}

/// No quorum, then nobody.
fn the_end(registry: &mut Registry) {
    registry.stop("por1");
    registry.stop("mad1");
    // A leader goes on calling itself one until an election timeout has passed without a majority.
    let found = registry.finds(
        "no quorum",
        "lis1",
        &[],
        &[
            ("live-unreachable", "127.77.0.13"),
            ("live-unreachable", "127.77.0.12"),
            ("live-no-leader", "127.77.0.11"),
            ("live-no-quorum", "there are no writes now"),
        ],
    );
    assert!(the(&found, "live-no-quorum").text.contains("bring back 1 of mad1 ("), "{found:#?}");
    // The data of the living one may be the only copy: nothing that is printed may cost it, nor remove anybody.
    for (node, _) in NODES {
        for more in [&[][..], &["--replace"]] {
            let said = registry.check(node, more).exits(1);
            said.does_not_say("rm -rf").does_not_say("member remove").does_not_say("systemctl stop");
        }
    }
    registry.stop("lis1");
    let said = registry.check("lis1", &[]).exits(3);
    said.says("no endpoint of the registry answers").says("https://127.77.0.13:2379: connection refused");
}

fn member_id(registry: &Registry, name: &str) -> String {
    let list = registry.etcdctl(&["member", "list"]);
    let line = list.lines().find(|l| l.contains(&format!(", {name}, "))).unwrap_or_else(|| panic!("{name}: {list}"));
    line.split(',').next().unwrap().to_owned()
}

fn copy_pair(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    for ending in ["crt", "key"] {
        std::fs::copy(from.with_extension(ending), to.with_extension(ending)).unwrap();
    }
}

/// Puts a relay before a member's peer port that holds everything back for 100 ms in each direction.
fn slow_down(registry: &mut Registry, node: &str) -> String {
    let whole = registry.configuration(node);
    let listen = whole.lines().find(|l| l.starts_with("listen-peer-urls: ")).unwrap();
    registry.edit(node, &[(listen, &listen.replace(":2380", ":2390"))]);
    let script = "
import asyncio, sys
async def pump(reader, writer):
    loop = asyncio.get_running_loop()
    last = loop.time()
    while data := await reader.read(65536):
        last = max(last, loop.time() + 0.1)
        loop.call_at(last, writer.write, data)
    loop.call_at(max(last, loop.time() + 0.1), writer.close)
async def serve(reader, writer):
    try:
        there = await asyncio.open_connection(sys.argv[1], 2390)
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer), return_exceptions=True)
async def main():
    async with await asyncio.start_server(serve, sys.argv[1], 2380) as server:
        await server.serve_forever()
asyncio.run(main())
";
    let address = NODES.iter().find(|(n, _)| *n == node).unwrap().1;
    registry.beside(&["python3", "-c", script, address]);
    whole
}

/// Takes the relay away, and lets all forget what they measured.
fn speed_up(registry: &mut Registry, node: &'static str, configuration: &str) {
    registry.end_others();
    registry.configure(node, configuration);
    for (node, _) in NODES {
        registry.stop(node);
    }
    registry.start_all();
    registry.mended("the long way");
}
