//! What is read, what is refused and why, and that a rewrite keeps what it does not know.

use super::*;
use crate::layout::keys::Key;

/// One good value for each kind of key.
pub(crate) const GOOD: &[(&str, &str)] = &[
    (
        "/mesh/identity",
        r#"{"v":1,"mesh":"harbour","uuid":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","generation":2,"token":"harbour-g2","cluster_id":"00ab2993bab74d3e","born":"2026-11-30T10:53:00Z","restored_from":{"sha256":"5c1f00000000000000000000000000000000000000000000000000000000beef","revision":1234,"generation":1,"time":"2026-11-30T10:00:00Z"}}"#,
    ),
    ("/mesh/schema", r#"{"v":1,"schema":1,"least_reader":1,"least_writer":1,"written_by":"fitout 0.1.0"}"#),
    ("/mesh/want/site/lisbon", r#"{"v":1,"kind":"data","round_trip_ms":{"madrid":12,"porto":30}}"#),
    (
        "/mesh/want/node/lis1",
        r#"{"v":1,"site":"lisbon","part":"voter","address":"10.77.0.11","image":"5c1f00000000000000000000000000000000000000000000000000000000beef","services":{"postgres":{"port":5432,"data_set":"orders"},"web":{"port":443}}}"#,
    ),
    ("/mesh/want/quorum", r#"{"v":1,"topology":"quorum","voters":["lis1","mad1","por1"],"arbiters":["mad1"]}"#),
    ("/mesh/want/service/postgres", r#"{"v":1,"port":5432,"protocol":"tcp","least_count":1,"spread":"site"}"#),
    (
        "/mesh/want/data/orders",
        r#"{"v":1,"replicas":2,"spread":"site","nodes":["lis1","por1"],"never_on":["arbiter"]}"#,
    ),
    ("/mesh/claim/orders/lisbon", r#"{"v":1,"node":"lis1","since":"2026-11-30T10:53:00Z","generation":1}"#),
    (
        "/mesh/live/lis1/here",
        r#"{"v":1,"boot_id":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","image":"5c1f00000000000000000000000000000000000000000000000000000000beef","generation":1,"member_id":"b71f75320dc06a6c","since":"2026-11-30T10:53:00Z","agent":"mesh-agent 0.1.0"}"#,
    ),
    (
        "/mesh/live/lis1/health",
        r#"{"v":1,"state":"warn","checks":{"backup":{"state":"warn","text":"the last is 26 h old"},"etcd":{"state":"ok"}},"at":"2026-11-30T10:53:00Z"}"#,
    ),
    (
        "/mesh/live/lis1/service/postgres",
        r#"{"v":1,"host":"10.77.0.11","port":5432,"priority":10,"weight":100,"ready":true}"#,
    ),
    (
        "/mesh/ops/lis1/cert/server",
        r#"{"v":1,"serial":"4f0011","not_after":"2031-11-30T10:53:00Z","fingerprint_sha256":"5c1f00000000000000000000000000000000000000000000000000000000beef","subject":"lis1"}"#,
    ),
    (
        "/mesh/ops/lis1/backup/2026-11-30T10:53:00Z-00000000000004d2",
        r#"{"v":1,"sha256":"5c1f00000000000000000000000000000000000000000000000000000000beef","size_bytes":20512,"revision":1234,"generation":1,"rehearsed_at":"2026-11-30T11:00:00Z"}"#,
    ),
];

/// A change of a good value, and why it is refused.
#[rustfmt::skip]
pub(crate) const REFUSED: &[(&str, &str, &str, &str)] = &[
    // key, what is replaced, by what, why
    ("/mesh/schema", r#""v":1,"#, "", "`v` is missing"),
    ("/mesh/schema", r#""v":1"#, r#""v":2"#, "the value is of version 2, not 1"),
    ("/mesh/schema", r#""v":1"#, r#""v":"1""#, "`v` is a text, not a whole number"),
    ("/mesh/schema", r#""schema":1"#, r#""schema":0"#, "`schema` is 0, not a whole number from 1 to 4294967295"),
    ("/mesh/schema", r#""schema":1"#, r#""schema":1.5"#, "`schema` is 1.5, not a whole number from 1 to 4294967295"),
    ("/mesh/schema", r#""schema":1"#, r#""schema":-1"#, "`schema` is -1, not a whole number from 1 to 4294967295"),
    ("/mesh/schema", r#""schema":1"#, r#""schema":null"#, "`schema` is null, not a whole number"),
    ("/mesh/schema", r#""fitout 0.1.0""#, r#"["fitout"]"#, "`written_by` is a list, not a text"),
    ("/mesh/identity", r#""harbour""#, r#""Harbour""#, "`mesh` is wrong: `Harbour` is no name: lower-case letters, digits and inner hyphens, at most 63"),
    ("/mesh/identity", r#""00ab2993bab74d3e""#, r#""ab2993bab74d3e""#, "`cluster_id` is wrong: `ab2993bab74d3e` is no id: 16 lower-case hex digits"),
    ("/mesh/identity", r#""00ab2993bab74d3e""#, "12", "`cluster_id` is a number, not a text"),
    ("/mesh/identity", "2026-11-30T10:53:00Z", "2026-11-30T10:53:00+01:00", "`born` is wrong: `2026-11-30T10:53:00+01:00` is no time: RFC 3339 in UTC and whole seconds, as `2026-11-30T10:53:00Z`"),
    ("/mesh/identity", "6f1c2f0e-", "6f1c2f0e", "`uuid` is wrong: `6f1c2f0e8d3b-4f7a-9c55-0a1b2c3d4e5f` is no UUID: 8-4-4-4-12 lower-case hex digits"),
    ("/mesh/identity", r#""revision":1234"#, r#""revision":9007199254740992"#, "`restored_from.revision` is 9007199254740992, not a whole number from 0 to 9007199254740991"),
    ("/mesh/identity", r#","revision":1234"#, "", "`restored_from.revision` is missing"),
    ("/mesh/want/site/lisbon", r#""data""#, r#""Data""#, "`kind` is `Data`, not one of `data`, `arbiter`"),
    ("/mesh/want/site/lisbon", r#""porto":30"#, r#""porto":"30ms""#, "`round_trip_ms.porto` is a text, not a whole number"),
    ("/mesh/want/site/lisbon", r#""porto":30"#, r#""PORTO":30"#, "`round_trip_ms` has a wrong key: `PORTO` is no name: lower-case letters, digits and inner hyphens, at most 63"),
    ("/mesh/want/site/lisbon", r#"{"madrid":12,"porto":30}"#, "[12,30]", "`round_trip_ms` is a list, not an object"),
    ("/mesh/want/node/lis1", "10.77.0.11", "10.77.0.256", "`address` is wrong: `10.77.0.256` is no IPv4 or IPv6 address"),
    ("/mesh/want/node/lis1", "5432", "65536", "`services.postgres.port` is 65536, not a whole number from 1 to 65535"),
    ("/mesh/want/node/lis1", r#"{"port":443}"#, "443", "`services.web` is a number, not an object"),
    ("/mesh/want/quorum", r#""mad1","por1"]"#, r#"3]"#, "`voters.1` is a number, not a text"),
    ("/mesh/live/lis1/service/postgres", "true", r#""yes""#, "`ready` is a text, not true or false"),
    ("/mesh/ops/lis1/cert/server", "4f0011", "4f:00:11", "`serial` is wrong: `4f:00:11` is no serial number: 2 to 40 lower-case hex digits, two for each octet"),
    ("/mesh/ops/lis1/cert/server", "5c1f", "sha256:5c1f", "`fingerprint_sha256` is wrong: `sha256:5c1f00000000000000000000000000000000000000000000000000000000beef` is no SHA-256: 64 lower-case hex digits"),
];

pub(crate) fn good(key: &str) -> &'static str {
    GOOD.iter().find(|(of, _)| *of == key).unwrap().1
}

fn key(text: &str) -> Key {
    Key::parse(text.as_bytes()).unwrap()
}

#[test]
fn every_kind_of_value_is_read_and_written_the_same() {
    let mut kinds = std::collections::BTreeSet::new();
    for (at, text) in GOOD {
        let value = Value::decode(&key(at), text.as_bytes()).unwrap_or_else(|e| panic!("{at}: {e}"));
        assert_eq!(value.encode().as_deref(), Ok(*text));
        assert!(value.to_json().get("v").is_none());
        kinds.insert(schema_name(&key(at)));
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), schemas().into_keys().collect::<Vec<_>>());
}

#[test]
fn each_fault_is_named() {
    for (at, old, new, says) in REFUSED {
        let text = good(at);
        assert!(text.contains(old), "{at} has no {old}");
        let error = Value::decode(&key(at), text.replace(old, new).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), *says);
    }
}

#[test]
fn what_is_no_value_at_all_is_refused() {
    let deep = "[".repeat(4000);
    let junk = vec![b'{'; 1 << 20];
    let cases: &[(&[u8], &str)] = &[
        (b"", "the value is not JSON: EOF while parsing a value at line 1 column 0"),
        (b"hello", "the value is not JSON: expected value at line 1 column 1"),
        (b"{}", "`v` is missing"),
        (b"[]", "the value is a list, not an object"),
        (b"null", "the value is null, not an object"),
        (b"12", "the value is a number, not an object"),
        (b"\"{}\"", "the value is a text, not an object"),
        (b"{\"v\":\xff}", "the value is not UTF-8 from byte 5 on"),
        (b"{\"v\":1} x", "the value is not JSON: trailing characters at line 1 column 9"),
        (deep.as_bytes(), "the value is not JSON: recursion limit exceeded at line 1 column 128"),
        (&junk, "the value has 1048576 bytes, more than 8192"),
    ];
    for (bytes, says) in cases {
        for (at, _) in GOOD {
            assert_eq!(Value::decode(&key(at), bytes).unwrap_err().to_string(), *says, "{at}");
        }
    }
}

#[test]
fn unknown_fields_stay_at_every_depth() {
    let text = r#"{"v":1,"site":"a","part":"client","address":"fd00::1","services":{"web":{"port":80,"tls":{"x":[1,null]}}},"rack":"r1","later":{"a":1.50}}"#;
    let value = decode::<WantNode>(text.as_bytes()).unwrap();
    assert_eq!(encode(&value).as_deref(), Ok(text.replace("1.50", "1.5").as_str()));
}

#[test]
fn what_is_known_wins_over_the_unknown() {
    let mut schema = decode::<Schema>(good("/mesh/schema").as_bytes()).unwrap();
    schema.extra.insert("schema".into(), 7.into());
    schema.extra.insert("v".into(), 7.into());
    assert_eq!(encode(&schema).as_deref(), Ok(good("/mesh/schema")));
}

#[test]
fn a_number_may_be_written_as_a_float() {
    let text = good("/mesh/schema").replace(r#""schema":1,"#, r#""schema":1.0,"#).replace(r#""v":1,"#, r#""v":1.0,"#);
    assert_eq!(decode::<Schema>(text.as_bytes()).unwrap().schema.get(), 1);
}

#[test]
fn a_backup_is_of_the_revision_in_its_key() {
    let at = key("/mesh/ops/lis1/backup/2026-11-30T10:53:00Z-00000000000004d3");
    let text = good("/mesh/ops/lis1/backup/2026-11-30T10:53:00Z-00000000000004d2");
    let error = Value::decode(&at, text.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "`revision` is 1234, and the key says 1235");
}

#[test]
fn too_large_is_not_written() {
    let mut schema = decode::<Schema>(good("/mesh/schema").as_bytes()).unwrap();
    let length = encode(&schema).unwrap().len();
    schema.written_by += &"x".repeat(LARGEST_VALUE - length);
    assert_eq!(encode(&schema).unwrap().len(), LARGEST_VALUE);
    schema.written_by.push('x');
    assert_eq!(encode(&schema), Err(ValueError::TooLarge(LARGEST_VALUE + 1)));
}

proptest::proptest! {
    /// No bytes make the decoder panic.
    #[test]
    fn junk_is_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        for (at, text) in GOOD {
            let _ = Value::decode(&key(at), &bytes);
            let cut = text.as_bytes().iter().chain(&bytes).copied().collect::<Vec<u8>>();
            let _ = Value::decode(&key(at), &cut[..cut.len().min(bytes.len() * 3)]);
        }
    }
}
