//! `fitout registry members` and `fitout build --join` on real registries: members are replaced, come, go and move, and what
//! was written is there afterwards. Every node runs what its own image says.

mod cluster;

use std::process::Stdio;

use crate::common::{Debian, Said, run, until};
use cluster::{Cluster, Node};

const THREE: [Node; 3] = [("one", 1), ("two", 2), ("three", 3)];

/// Builds the image that joins, and starts the node with it.
fn join(cluster: &mut Cluster, node: &str) {
    cluster.fitout(&["build", "--node", node, "--join"]).exits(0).says(&format!("{node} joins "));
    cluster.unpack(node);
    cluster.start(node);
}

/// What is said of an image that joins, before its node is started.
fn proven(cluster: &Cluster, node: &str) {
    let image = format!("dist/{node}.tar.gz");
    let said = cluster.fitout(&["verify", "-C", ".", "dist/one.tar.gz", &image]).exits(0);
    said.says(&format!("{image}: node {node}: as declared"));
    // What check says before its first start: wait, and start it; nothing is wrong with the image.
    let said = cluster.fitout(&["check", "--timeout", "2", &image]);
    let said = said.does_not_say("live-wrong-state").does_not_say("live-join-stale").says("waits for its first start");
    said.says(&format!("on {node}: `systemctl enable --now mesh-registry.target`")).does_not_say("sed -i");
}

/// Takes all steps, and starts what is to be started; gives the nodes in their order.
fn apply(cluster: &mut Cluster, options: &[&str]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    loop {
        let said = cluster.members(&[&["--apply", "--wait", "0"], options].concat());
        if said.code == Some(0) {
            return joined;
        }
        let said = said.exits(3).says("stopped after 0 s of waiting");
        let waits = said.stderr.split("stopped after 0 s of waiting: build ").nth(1).map(str::to_owned);
        let node = waits.as_deref().and_then(|text| text.split("'s image").next()).unwrap_or_else(|| {
            panic!("it waits for something else: {}\n{}", said.all(), cluster.logs());
        });
        assert!(!joined.iter().any(|n| n == node), "{node} was started and still waits: {}", cluster.logs());
        join(cluster, node);
        joined.push(node.to_owned());
        until("it has started", || {
            let all = cluster.objects("member", &[]);
            let there = all.iter().any(|m| m["node"] == *node && m["state"] == "serves");
            if there { Ok(()) } else { Err(format!("{all:#?}\n{}", cluster.logs())) }
        });
    }
}

/// All members are as declared, `check` says so too, and every acknowledged key is on every node.
fn whole(cluster: &Cluster, nodes: &[Node], keys: &std::collections::BTreeSet<String>) {
    cluster.members(&[]).exits(0).says("the members are as declared");
    for (node, byte) in nodes {
        let there = cluster.keys(*byte, "w/");
        let lost: Vec<_> = keys.difference(&there).collect();
        assert!(lost.is_empty() && !keys.is_empty(), "{node} lacks {lost:?} of {}", keys.len());
    }
}

/// Turns etcd's access control on, as `fitout registry bootstrap` does: operators have the role root, nodes are users.
fn protect(cluster: &Cluster) {
    let commands: [&[&str]; 5] = [
        &["user", "add", "root", "--no-password"],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "operator:anna", "--no-password"],
        &["user", "grant-role", "operator:anna", "root"],
        &["auth", "enable"],
    ];
    for command in commands {
        cluster.etcdctl(1, command).exits(0);
    }
}

fn started(debian: Debian, nodes: &[Node]) -> Cluster {
    let mut cluster = Cluster::new(debian, nodes);
    // Outside of the namespace, where Debian's mirror can be reached: the base may have to be made.
    run(&cluster.mesh(), &["build"]).exits(0);
    for (node, _) in nodes {
        cluster.unpack(node);
        cluster.start(node);
    }
    cluster.writes(nodes[0].1, "w/first", "1");
    cluster
}

fn a_lost_voter_is_replaced(debian: Debian) {
    let mut cluster = started(debian, &THREE);
    cluster.members(&[]).exits(0).says("declared: 3 voters, of which 2 must live").says("leads");
    // A node that is lost is not taken for dead: it may come back.
    cluster.kill("three");
    cluster.lose("three");
    let said = cluster.members(&[]).exits(1).says("bring three back: nothing is heard of it");
    said.does_not_say("etcdctl member remove");
    let planned = cluster.members(&["--replace", "three"]).exits(1);
    planned
        .says("1. remove three (")
        .says("2 of 3 votes, 2 needed -> 2 of 2 votes, 2 needed; one more loss stops all writes");
    // Without a quorum nothing is done, and nothing is shown that could be.
    cluster.kill("two");
    let said = cluster.members(&["--replace", "three", "--apply", "--wait", "0"]).exits(1);
    said.says("nothing can be changed now").says("1 of 3 voters answer").does_not_say("member remove");
    cluster.unpack("two");
    cluster.start("two");
    cluster.writes(1, "w/second", "1");

    // Writes go on all the while; the command waits for the node, which is built and started beside it.
    let writer = cluster.writer(&[1, 2]);
    let mut command = cluster.within(env!("CARGO_BIN_EXE_fitout"), &["registry", "members", "--timeout", "2"]);
    command.args(["--replace", "three", "--apply", "--wait", "90"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().expect("the program starts");
    until("the node waits to be started", || {
        let all = cluster.objects("member", &[]);
        let waits = all.iter().any(|m| m["node"] == "three" && m["state"] == "never started");
        if waits { Ok(()) } else { Err(format!("{all:#?}\n{}", cluster.logs())) }
    });
    // The image as it was built with the registry is refused by check; the one that joins is not.
    let said = cluster.fitout(&["check", "--timeout", "2", "dist/three.tar.gz"]).exits(1);
    said.says("live-wrong-state").says("`fitout build --node NODE --join` makes an image that needs no change");
    cluster.fitout(&["build", "--node", "three", "--join"]).exits(0);
    proven(&cluster, "three");
    join(&mut cluster, "three");
    let said = Said::from(running.wait_with_output().expect("it ends"));
    let said = said.exits(0).says("for you: build three's image for the living list, ship it, and start it");
    said.says("promote three, once it is in sync").says("the members are as declared");
    let mut keys = writer.end();
    keys.extend(["w/first".to_owned(), "w/second".to_owned()]);
    whole(&cluster, &THREE, &keys);
    cluster.fitout(&["check", "dist/one.tar.gz", "dist/two.tar.gz", "dist/three.tar.gz"]).exits(0);

    // One that runs is replaced as well, as a voter at once: its data is given up. (The same on both versions.)
    if debian == Debian::Bookworm {
        return;
    }
    let joined = {
        cluster
            .members(&["--replace", "two", "--no-learner", "--apply", "--wait", "0"])
            .exits(3)
            .says("as a voter at once");
        until(
            "it ends by itself once it is removed",
            || if cluster.runs("two") { Err("it runs".into()) } else { Ok(()) },
        );
        cluster.lose("two");
        apply(&mut cluster, &["--no-learner"])
    };
    assert_eq!(joined, ["two"]);
    whole(&cluster, &THREE, &keys);
}

#[test]
fn a_lost_voter_is_replaced_on_trixie() {
    a_lost_voter_is_replaced(Debian::Trixie);
}

#[test]
fn a_lost_voter_is_replaced_on_bookworm() {
    a_lost_voter_is_replaced(Debian::Bookworm);
}

#[test]
fn one_becomes_three_becomes_five_becomes_three_and_moves() {
    let mut cluster = started(Debian::Trixie, &THREE[..1]);
    let lock = std::fs::read(cluster.mesh().join("fitout.lock")).unwrap();
    let writer = cluster.writer(&[1]);
    cluster.members(&[]).exits(0).says("declared: one control plane: one (s-one)");

    // From `single` to `quorum`.
    cluster.declare(&THREE);
    cluster.members(&["--no-learner"]).exits(1).says("add it as a learner: without `--no-learner`");
    let said = cluster.members(&[]).exits(1).says("1. add three at https://127.78.0.3:2380 as a learner");
    said.says("etcd 3.5.16 does not write the promotion").says("there is no other way from here");
    let early = cluster.fitout(&["build", "--node", "two"]).exits(2).says("overlay-not-born");
    early.says("the image is built with `--join`");
    cluster.fitout(&["why", "two", "/etc/etcd/etcd.yaml"]).exits(0).says("overlays/etcd/root");
    cluster.fitout(&["build", "--node", "two", "--join"]).exits(3).says("two is not in the member list yet");
    cluster.fitout(&["build", "--node", "edge", "--join"]).exits(2).says("join-client");
    cluster.fitout(&["build", "--node", "edge"]).exits(0).says("born-otherwise");
    assert_eq!(apply(&mut cluster, &[]), ["three", "two"]);
    assert_eq!(std::fs::read(cluster.mesh().join("fitout.lock")).unwrap(), lock, "the birth record stands for life");
    let mut keys = writer.end();
    whole(&cluster, &THREE, &keys);
    protect(&cluster);
    // All images: the first member as ever, those that came later for the living list.
    cluster.fitout(&["build", "--locked", "--join"]).exits(0).says("two joins ").does_not_say("one joins ");

    // To five: the first by what is printed, the second by `--apply`.
    let five = [THREE[0], THREE[1], THREE[2], ("four", 4), ("five", 5)];
    cluster.declare(&five);
    let writer = cluster.writer(&[1, 2, 3]);
    let steps = cluster.objects("member-step", &[]);
    assert_eq!(steps.len(), 6, "{steps:#?}");
    for step in &steps[..3] {
        assert_eq!(step["node"], "five");
        for command in step["commands"].as_array().unwrap() {
            cluster.paste(command.as_str().unwrap());
        }
    }
    let left = cluster.objects("member-step", &[]);
    assert!(left.len() == 3 && left[0]["node"] == "four", "five votes now: {left:#?}");
    assert_eq!(apply(&mut cluster, &[]), ["four"]);
    keys.extend(writer.end());
    whole(&cluster, &five, &keys);

    // Back to three; those that leave end by themselves.
    cluster.declare(&THREE);
    let said = cluster.members(&["--apply"]).exits(0);
    said.says("remove five (").says("remove four (");
    until("they end", || if cluster.runs("four") || cluster.runs("five") { Err(cluster.logs()) } else { Ok(()) });
    whole(&cluster, &THREE, &keys);

    // A voter gets another address, and keeps its data.
    let moved = [THREE[0], THREE[1], ("three", 33)];
    cluster.declare(&moved);
    cluster.fitout(&["build", "--node", "three", "--join"]).exits(3).says("and declared at https://127.78.0.33:2380");
    let said = cluster.members(&["--apply", "--wait", "0"]).exits(3);
    said.says("change the peer URL of three from https://127.78.0.3:2380 to https://127.78.0.33:2380");
    cluster.fitout(&["build", "--node", "three", "--join"]).exits(0);
    cluster.kill("three");
    cluster.unpack("three");
    cluster.start("three");
    until("it is back", || {
        let said = cluster.members(&[]);
        if said.code == Some(0) { Ok(()) } else { Err(format!("{}\n{}", said.all(), cluster.logs())) }
    });
    whole(&cluster, &moved, &keys);
}
