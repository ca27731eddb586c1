//! The announcer: what is put, and every way in which it cannot be.

use std::collections::BTreeSet;

use super::errors::show;
use crate::finding::Finding;
use crate::overlay::elf;
use crate::overlay::program::{self, VERSION};
use crate::overlay::testing::*;
use crate::tree::Entry;

/// The rules of programs.
pub(super) fn fired() -> BTreeSet<&'static str> {
    cases().iter().flat_map(|(_, program, _)| judged(program)).map(|finding| finding.code).collect()
}

fn judged(program: &program::Found) -> Vec<Finding> {
    let mut found = Vec::new();
    program::judge(Some(program), &base(), &mut found);
    found
}

type Case = (&'static str, program::Found, Vec<String>);

fn cases() -> Vec<Case> {
    let good = AGENT.as_bytes();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.to_vec();
        change(&mut bytes);
        agent(&bytes)
    };
    let at = "/usr/bin/mesh-agent";
    // The program of these tests: linked with a libc, which the small base does not have.
    let mut real = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let linked = elf::parse(&real).unwrap();
    real.extend_from_slice(&AGENT.as_bytes()[64..]);
    let mut lacks = Vec::new();
    if linked.architecture == Ok("amd64") && linked.interpreter.is_some() {
        lacks.push(format!("overlay-program-libraries {at}: the base lacks what it is linked with"));
    }
    vec![
        ("good", agent(good), Vec::new()),
        (
            "not there",
            program::Found { content: Err("No such file".into()), ..agent(b"") },
            vec![format!("overlay-program-missing {at}: there is no mesh-agent to put into the images: No such file")],
        ),
        (
            "a script",
            agent(b"#!/bin/sh\n"),
            vec![format!("overlay-program-machine {at}: is no program of Linux (ELF)")],
        ),
        (
            "another machine",
            with(&|bytes| bytes[0x12] = 183),
            vec![format!("overlay-program-machine {at}: is for arm64, and the base is for amd64")],
        ),
        (
            "a machine without a name, and another version",
            with(&|bytes| {
                bytes[0x12] = 9;
                let end = bytes.len() - 1;
                bytes.splice(end.., b"-next;".iter().copied());
            }),
            vec![
                format!("overlay-program-machine {at}: is for machine number 9, and the base is for amd64"),
                format!("overlay-program-version {at}: is version {VERSION}-next, and this is fitout {VERSION}"),
            ],
        ),
        (
            "another program",
            with(&|bytes| bytes.truncate(64)),
            vec![format!("overlay-program-version {at}: is not mesh-agent: it does not say its version")],
        ),
        ("a linked one", agent(&real), lacks),
    ]
}

#[test]
fn what_cannot_be_put_is_said() {
    for (name, program, want) in cases() {
        assert_eq!(show(&judged(&program)), want, "{name}");
    }
}

#[test]
fn a_linked_one_needs_its_loader_libraries_and_their_versions() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let linked = elf::parse(&own).unwrap();
    let Some(loader) = &linked.interpreter else { return };
    let mut whole = own.clone();
    whole.extend_from_slice(&AGENT.as_bytes()[64..]);
    let mut tree = base();
    let path = |text: &str| super::path(text);
    tree.insert(path(loader), Entry::file(*b"", 0o755));
    for library in &linked.libraries {
        let versions =
            linked.versions.iter().filter(|(of, _)| of == library).map(|(_, version)| format!("\0{version}\0"));
        let content: String = versions.collect();
        tree.insert(path(&format!("/usr/lib/x86_64-linux-gnu/{library}")), Entry::file(content.into_bytes(), 0o644));
    }
    let notes = |tree: &crate::tree::Tree| {
        let mut found = Vec::new();
        program::judge(Some(&agent(&whole)), tree, &mut found);
        found.into_iter().flat_map(|finding| finding.notes).collect::<Vec<_>>()
    };
    assert_eq!(notes(&tree), [""; 0]);
    let libc = path("/usr/lib/x86_64-linux-gnu/libc.so.6");
    tree.insert(libc.clone(), Entry::file(*b"\0GLIBC_2.1\0", 0o644));
    let notes_old = notes(&tree);
    assert!(notes_old.iter().any(|note| note.starts_with("GLIBC_2.") && note.ends_with("of the library libc.so.6")));
    tree.remove(&libc);
    assert!(notes(&tree).contains(&"the library libc.so.6".to_owned()));
    tree.remove(&path(loader));
    assert!(notes(&tree).contains(&format!("the loader {loader}")));
}
