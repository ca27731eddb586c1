//! The grammar as a table, and that it has one spelling for each key.

use proptest::prelude::*;

use super::*;

#[test]
fn every_form_of_key_parses() {
    let cases: &[(&str, &str, bool)] = &[
        // key                                                           writer      lease
        ("/mesh/identity", "operator", false),
        ("/mesh/schema", "operator", false),
        ("/mesh/want/site/lisbon", "operator", false),
        ("/mesh/want/node/lis1", "operator", false),
        ("/mesh/want/quorum", "operator", false),
        ("/mesh/want/service/postgres", "operator", false),
        ("/mesh/want/data/orders", "operator", false),
        ("/mesh/claim/orders/lisbon", "claimant", false),
        ("/mesh/live/lis1/here", "lis1", true),
        ("/mesh/live/lis1/health", "lis1", true),
        ("/mesh/live/lis1/service/postgres", "lis1", true),
        ("/mesh/ops/lis1/cert/server", "lis1", false),
        ("/mesh/ops/lis1/cert/public-www", "lis1", false),
        ("/mesh/ops/lis1/backup/2026-11-30T10:53:00Z-00000000000004d2", "lis1", false),
    ];
    for (text, writer, lease) in cases {
        let key = Key::parse(text.as_bytes()).unwrap();
        let by = match key.writer() {
            Writer::Operator => "operator",
            Writer::Claimant => "claimant",
            Writer::Node(node) => node.as_str(),
        };
        assert_eq!((key.to_string().as_str(), by, key.needs_lease()), (*text, *writer, *lease));
    }
}

#[test]
fn anything_else_is_told_why() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "it is outside of `/mesh/`"),
        (b"/mesh", "it is outside of `/mesh/`"),
        (b"/meshes/x", "it is outside of `/mesh/`"),
        (b"mesh/identity", "it is outside of `/mesh/`"),
        (b"\xff/mesh/", "it is outside of `/mesh/`"),
        (b"/mesh/\xff", "its bytes are not UTF-8"),
        (b"/mesh/", "schema 1 has no key of this form"),
        (b"/mesh/identity/", "schema 1 has no key of this form"),
        (b"/mesh//identity", "schema 1 has no key of this form"),
        (b"/mesh/live/lis1", "schema 1 has no key of this form"),
        (b"/mesh/live/lis1/", "schema 1 has no key of this form"),
        (b"/mesh/live/lis1/service", "schema 1 has no key of this form"),
        (b"/mesh/claim/orders/lisbon/x", "schema 1 has no key of this form"),
        (b"/mesh/want/quorum/x", "schema 1 has no key of this form"),
        (b"/mesh/want/Node/x", "schema 1 has no key of this form"),
        (b"/mesh/want/node/Lis1", "`Lis1` is no name: lower-case letters, digits and inner hyphens, at most 63"),
        (b"/mesh/want/node/", "`` is no name: lower-case letters, digits and inner hyphens, at most 63"),
        (b"/mesh/live//here", "`` is no name: lower-case letters, digits and inner hyphens, at most 63"),
        (
            b"/mesh/ops/a/cert/root",
            "`root` is no use of a certificate: `peer`, `server`, `client`, or `public-` and a name",
        ),
        (
            b"/mesh/ops/a/cert/public-",
            "`public-` is no use of a certificate: `peer`, `server`, `client`, or `public-` and a name",
        ),
        (
            b"/mesh/ops/a/backup/2026-11-30-4d2",
            "`2026-11-30-4d2` is no backup's name: a time and a revision, as `2026-11-30T10:53:00Z-00000000000004d2`",
        ),
    ];
    for (bytes, says) in cases {
        assert_eq!(Key::parse(bytes).unwrap_err().to_string(), *says, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_prefix_ends_where_the_next_name_begins() {
    let a1: Label = "a1".parse().unwrap();
    let (from, to) = (live_of(&a1), end_of(&live_of(&a1)));
    assert_eq!((from.as_str(), to.as_str()), ("/mesh/live/a1/", "/mesh/live/a10"));
    let within = |key: &str| (from.as_str()..to.as_str()).contains(&key);
    assert!(within("/mesh/live/a1/here") && !within("/mesh/live/a10/here") && !within("/mesh/live/a1"));
    assert_eq!(end_of(ROOT), "/mesh0");
    assert_eq!(ops_of(&a1), "/mesh/ops/a1/");
}

prop_compose! {
    fn label()(text in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?") -> Label {
        text.parse().unwrap()
    }
}

fn key() -> impl Strategy<Value = Key> {
    let time = (-62_167_219_200_i64..=253_402_300_799)
        .prop_map(|s| Time::of(time::OffsetDateTime::from_unix_timestamp(s).unwrap()));
    let purpose = prop_oneof![
        Just(CertificateUse::Peer),
        Just(CertificateUse::Server),
        Just(CertificateUse::Client),
        label().prop_map(CertificateUse::Public),
    ];
    prop_oneof![
        Just(Key::Identity),
        Just(Key::Schema),
        Just(Key::WantQuorum),
        label().prop_map(Key::WantSite),
        label().prop_map(Key::WantNode),
        label().prop_map(Key::WantService),
        label().prop_map(Key::WantData),
        (label(), label()).prop_map(|(set, site)| Key::Claim { set, site }),
        label().prop_map(Key::Here),
        label().prop_map(Key::Health),
        (label(), label()).prop_map(|(node, service)| Key::Service { node, service }),
        (label(), purpose).prop_map(|(node, purpose)| Key::Certificate { node, purpose }),
        (label(), time, any::<u64>()).prop_map(|(node, time, revision)| Key::Backup {
            node,
            time,
            revision: HexId(revision)
        }),
    ]
}

proptest! {
    #[test]
    fn every_key_comes_back(key in key()) {
        prop_assert_eq!(Key::parse(key.to_string().as_bytes()), Ok(key));
    }

    /// What parses has one spelling: bytes near the grammar, and any bytes below the root.
    #[test]
    fn what_parses_renders_to_the_same_bytes(
        near in "/mesh/(want|live|ops|claim|identity)(/(node|site|a1|here|cert|backup|server|public-x|[a-zA-Z0-9_.:-]{0,70})){0,4}/?",
        any in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for bytes in [near.into_bytes(), [ROOT.as_bytes(), &any].concat(), any] {
            if let Ok(key) = Key::parse(&bytes) {
                prop_assert_eq!(key.to_string().into_bytes(), bytes);
            }
        }
    }
}
