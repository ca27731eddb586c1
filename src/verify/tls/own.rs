//! What one image proves by itself.

use time::OffsetDateTime;

use super::access;
use super::config::{PATH, https_host, is_unspecified};
use super::facts::{Node, Pair};
use super::{SOON, rules};
use crate::finding::Finding;
use crate::pki::Use;
use crate::pki::inspect::{Certificate, Dates, date};
use crate::pki::profiles::{LEAF_USAGE, bits, usage_words};
use crate::tree::TreePath;

/// All rules about one image.
pub(super) fn check(node: &Node<'_>, now: OffsetDateTime, out: &mut Vec<Finding>) {
    for pair in &node.pairs {
        readable(node, pair, out);
        authorities(node, pair, out);
        let Some(certificate) = &pair.certificate else { continue };
        belongs(node, pair, certificate, out);
        for defect in &certificate.defects {
            out.push(rules::MALFORMED.finding(node.at(&pair.certificate_path), defect.clone()));
        }
        usages(node, pair, certificate, out);
        owner(node, pair, certificate, out);
        names(node, pair, certificate, out);
        let signers = pair.authorities.iter().filter(|a| certificate.is_signed_by(a));
        dates(node, &pair.certificate_path, "the certificate", certificate, now, out);
        for signer in signers {
            dates(node, &pair.authority_path, &format!("the authority `{}`", signer.subject), signer, now, out);
        }
    }
    one_authority(node, out);
}

/// Key and authority belong to the certificate.
fn belongs(node: &Node<'_>, pair: &Pair, certificate: &Certificate, out: &mut Vec<Finding>) {
    if pair.key.as_ref().is_some_and(|key| key.public != certificate.public_key) {
        out.push(
            rules::KEY
                .finding(node.at(&pair.key_path), format!("it does not belong to {}", pair.certificate_path))
                .help("build the image again from the store"),
        );
    }
    if !pair.authorities.is_empty() && !pair.authorities.iter().any(|a| certificate.is_signed_by(a)) {
        let trusted: Vec<&str> = pair.authorities.iter().map(|a| a.subject.as_str()).collect();
        out.push(
            rules::CHAIN
                .finding(
                    node.at(&pair.certificate_path),
                    format!("it is not signed by the authority in {}", pair.authority_path),
                )
                .note(format!("issuer: {}; trusted: {}", certificate.issuer, trusted.join(", ")))
                .help("build the image again from one store"),
        );
    }
}

fn authorities(node: &Node<'_>, pair: &Pair, out: &mut Vec<Finding>) {
    for authority in &pair.authorities {
        let mut wrong: Vec<String> = authority.defects.clone();
        if !authority.is_ca {
            wrong.push("its basic constraints do not say that it is an authority".to_owned());
        }
        if authority.key_usage.is_none_or(|usage| usage & bits::CERT_SIGN == 0) {
            wrong.push("its key usage does not allow signing certificates".to_owned());
        }
        for what in wrong {
            let message = format!("`{}`: {what}", authority.subject);
            out.push(rules::AUTHORITY.finding(node.at(&pair.authority_path), message));
        }
    }
}

/// The peer port trusts nobody of the client port's authorities.
fn one_authority(node: &Node<'_>, out: &mut Vec<Finding>) {
    let Some(peer) = node.pair(Use::Peer) else { return };
    let others = node.pairs.iter().filter(|pair| pair.purpose != Use::Peer).flat_map(|pair| &pair.authorities);
    let mut both: Vec<&Certificate> =
        others.filter(|other| peer.authorities.iter().any(|a| a.public_key == other.public_key)).collect();
    both.dedup_by_key(|authority| authority.public_key);
    for authority in both.into_iter().take(1) {
        let message = format!("`{}` is trusted on the client port too", authority.subject);
        out.push(rules::ONE_AUTHORITY.finding(node.at(&peer.authority_path), message));
    }
}

fn usages(node: &Node<'_>, pair: &Pair, certificate: &Certificate, out: &mut Vec<Finding>) {
    let list = |all: &[crate::pki::profiles::Extended]| {
        let words: Vec<String> = all.iter().map(ToString::to_string).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    let subject = node.at(&pair.certificate_path);
    let have = certificate.extended.as_deref().unwrap_or_default();
    let want = pair.purpose.extended();
    if have != want {
        let message =
            format!("extended key usage is {}; the profile `{}` has {}", list(have), pair.purpose, list(want));
        out.push(rules::USAGE.finding(&subject, message));
    }
    let usage = certificate.key_usage.unwrap_or(0);
    if usage != LEAF_USAGE {
        let message = format!("key usage is {}; every profile has {}", usage_words(usage), usage_words(LEAF_USAGE));
        out.push(rules::USAGE.finding(&subject, message));
    }
    if certificate.is_ca {
        out.push(rules::USAGE.finding(&subject, "it is an authority; a node's certificate never is"));
    }
}

/// It is this node's.
fn owner(node: &Node<'_>, pair: &Pair, certificate: &Certificate, out: &mut Vec<Finding>) {
    let subject = node.at(&pair.certificate_path);
    let name = certificate.common_name.as_deref().unwrap_or_default();
    let owner = match pair.purpose {
        Use::Client => name.strip_prefix("node:"),
        Use::Server | Use::Peer => Some(name),
    };
    match owner {
        Some(owner) if owner == node.name() => {}
        Some(owner) if !owner.is_empty() => {
            out.push(rules::FOREIGN.finding(subject, format!("it was issued for node `{owner}`")));
        }
        _ => {
            let want = match pair.purpose {
                Use::Client => format!("node:{}", node.name()),
                Use::Server | Use::Peer => node.name().to_owned(),
            };
            out.push(rules::USER.finding(subject, format!("its common name is `{name}`; `{want}` is wanted")));
        }
    }
}

/// It covers what others dial and what etcd listens on.
fn names(node: &Node<'_>, pair: &Pair, certificate: &Certificate, out: &mut Vec<Finding>) {
    let Some(config) = &node.config else { return };
    let mut urls: Vec<&str> = match pair.purpose {
        Use::Client => return,
        Use::Server => config.client_urls.iter().map(String::as_str).collect(),
        Use::Peer => config.peer_urls.iter().map(String::as_str).collect(),
    };
    if pair.purpose == Use::Peer {
        urls.extend(node.manifest.birth.peers.get(node.name()).map(String::as_str));
    }
    let mut seen: Vec<&str> = Vec::new();
    for url in urls {
        let Some(host) = https_host(url).filter(|host| !is_unspecified(host)) else { continue };
        if seen.contains(&host) {
            continue;
        }
        seen.push(host);
        if !certificate.covers(host) {
            let message = format!("it is valid for {}, not for {host} of `{url}`", certificate.names());
            out.push(
                rules::NAMES
                    .finding(node.at(&pair.certificate_path), message)
                    .help("run `fitout pki issue` after changing addresses or names, and build again"),
            );
        }
    }
}

fn dates(
    node: &Node<'_>,
    path: &TreePath,
    what: &str,
    certificate: &Certificate,
    now: OffsetDateTime,
    out: &mut Vec<Finding>,
) {
    let subject = node.at(path);
    let help = "run `fitout pki issue` and build again";
    match certificate.at(now) {
        Dates::Expired => {
            let message = format!("{what} has expired at {}", date(certificate.not_after));
            out.push(rules::EXPIRED.finding(subject, message).help(help));
        }
        Dates::NotYet => {
            let message = format!("{what} begins at {}, and it is {}", date(certificate.not_before), date(now));
            out.push(rules::NOT_YET.finding(subject, message).help("set the clock of this machine"));
        }
        Dates::Valid if certificate.not_after - now < SOON => {
            let days = (certificate.not_after - now).whole_days();
            let message = format!("{what} ends at {}, in {days} days", date(certificate.not_after));
            out.push(rules::SOON.finding(subject, message).help(help));
        }
        Dates::Valid => {}
    }
}

/// The key is its user's alone.
fn readable(node: &Node<'_>, pair: &Pair, out: &mut Vec<Finding>) {
    if pair.key.is_none() {
        return;
    }
    let name = match pair.purpose {
        Use::Client => "root",
        Use::Server | Use::Peer => "etcd",
    };
    let subject = node.at(&pair.key_path);
    let tree = &node.image.tree;
    let user = match access::user(tree, name) {
        Ok(user) => user,
        Err(why) => {
            out.push(rules::UNREADABLE.finding(subject, why));
            return;
        }
    };
    let known = access::hindrances(tree, &pair.key_path, &user);
    let message = |why: &String| format!("user `{name}` ({}) cannot read it: {why}", user.uid);
    out.extend(known.iter().map(|why| rules::UNREADABLE.finding(&subject, message(why))));
    let mut others = vec![pair.certificate_path.clone(), pair.authority_path.clone()];
    // Once for the two pairs of etcd.
    others.extend((pair.purpose == Use::Peer).then(|| TreePath::parse(PATH).unwrap_or_default()));
    for path in others {
        let new = access::hindrances(tree, &path, &user).into_iter().filter(|why| !known.contains(why));
        out.extend(new.map(|why| rules::FILE_UNREADABLE.finding(node.at(&path), message(&why))));
    }
    for why in access::openings(tree, &pair.key_path, &user) {
        out.push(rules::OPEN.finding(&subject, why));
    }
}
