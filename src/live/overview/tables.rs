//! The overview for people.

use super::{Overview, Standing};
use crate::layout::values::Part;
use crate::layout::{Label, Time};
use crate::live::words::table;

/// Certificates that end in more days than this are only counted.
const SOON_DAYS: i64 = 60;

/// All tables.
pub fn render(all: &Overview, now: Time) -> String {
    let tables = [
        head(all),
        sites(all, now),
        nodes(all, now),
        services(all, now),
        claims(all, now),
        certificates(all, now),
        backups(all, now),
        bad(all),
    ];
    let tables: Vec<String> = tables.into_iter().filter(|table| !table.is_empty()).collect();
    tables.join("\n")
}

fn head(all: &Overview) -> String {
    let Some(identity) = &all.identity else {
        return "the registry has no identity: it was not bootstrapped (`fitout registry bootstrap`)\n".to_owned();
    };
    let restored = identity.restored_from.as_ref().map_or(String::new(), |from| {
        format!(", restored from revision {} of generation {}", from.revision, from.generation)
    });
    format!(
        "mesh {}, generation {} since {}{restored}, cluster {}\n",
        identity.mesh, identity.generation, identity.born, identity.cluster_id
    )
}

fn sites(all: &Overview, now: Time) -> String {
    let row = |site: &Label| {
        let of = |name: &Label| all.nodes.get(name).and_then(|n| n.want.as_ref()).is_some_and(|w| w.site == *site);
        let nodes: Vec<&Label> = all.nodes.keys().filter(|name| of(name)).collect();
        let here = nodes.iter().filter(|name| all.standing(&all.nodes[**name], now).0.lives()).count();
        let kind = all.sites.get(site).map_or("-".to_owned(), |site| site.kind.to_string());
        vec![site.to_string(), kind, nodes.len().to_string(), here.to_string()]
    };
    table(&["SITE", "KIND", "NODES", "HERE"], &all.sites.keys().map(row).collect::<Vec<_>>())
}

fn nodes(all: &Overview, now: Time) -> String {
    let rows = all.nodes.iter().map(|(name, node)| {
        let (standing, why) = all.standing(node, now);
        let (site, part) = match &node.want {
            Some(want) => (want.site.to_string(), want.part.to_string()),
            None => ("-".to_owned(), "not declared".to_owned()),
        };
        let since = node.live.here.as_ref().map_or("-".to_owned(), |here| here.since.to_string());
        vec![name.to_string(), site, part, standing.as_str().to_owned(), since, why]
    });
    table(&["NODE", "SITE", "PART", "STATE", "SINCE", "WHY"], &rows.collect::<Vec<_>>())
}

fn services(all: &Overview, now: Time) -> String {
    let mut names: Vec<&Label> =
        all.services.keys().chain(all.nodes.values().flat_map(|n| n.live.services.keys())).collect();
    names.sort();
    names.dedup();
    let rows = names.into_iter().map(|name| {
        let offers = |ready: bool| {
            let lives = |node: &super::Node| all.standing(node, now).0.lives();
            let nodes = all.nodes.iter().filter(move |(_, node)| {
                lives(node) && node.live.services.get(name).is_some_and(|offer| offer.ready == ready)
            });
            nodes.map(|(node, _)| node.to_string()).collect::<Vec<_>>()
        };
        let (ready, waiting) = (offers(true), offers(false));
        let declared =
            all.nodes.values().filter(|n| n.want.as_ref().is_some_and(|w| w.services.contains_key(name))).count();
        let least = all.services.get(name).map_or(0, |want| usize::from(want.least_count.get()));
        let state = match ready.len() {
            0 if least == 0 => "not declared",
            n if n < least => "down",
            n if n < declared => "fewer",
            _ => "ok",
        };
        let list = |nodes: &[String]| if nodes.is_empty() { "-".to_owned() } else { nodes.join(", ") };
        vec![
            name.to_string(),
            state.to_owned(),
            format!("{} of {declared}", ready.len()),
            least.to_string(),
            list(&ready),
            list(&waiting),
        ]
    });
    table(&["SERVICE", "STATE", "READY", "LEAST", "ON", "NOT READY ON"], &rows.collect::<Vec<_>>())
}

pub(super) fn holder_of(all: &Overview, set: &Label, site: &Label, now: Time) -> (Option<Label>, &'static str) {
    let Some(claim) = all.claims.get(&(set.clone(), site.clone())) else { return (None, "free") };
    let declared = all.claimants(set, site).contains(&&claim.node);
    let standing = all.nodes.get(&claim.node).map_or(Standing::Away, |node| all.standing(node, now).0);
    let state = match (declared, standing.lives()) {
        (false, _) => "not declared",
        (true, true) => "held",
        (true, false) => "held, its node is away",
    };
    (Some(claim.node.clone()), state)
}

/// The claims.
pub fn claims(all: &Overview, now: Time) -> String {
    let rows = all.places().into_iter().map(|(set, site)| {
        let (holder, state) = holder_of(all, &set, &site, now);
        let since =
            all.claims.get(&(set.clone(), site.clone())).map_or("-".to_owned(), |claim| claim.since.to_string());
        let may: Vec<&str> = all.claimants(&set, &site).into_iter().map(Label::as_str).collect();
        let may = if may.is_empty() { "-".to_owned() } else { may.join(", ") };
        let holder = holder.map_or("-".to_owned(), |node| node.to_string());
        vec![set.to_string(), site.to_string(), holder, state.to_owned(), since, may]
    });
    table(&["DATA SET", "SITE", "HELD BY", "STATE", "SINCE", "MAY CLAIM"], &rows.collect::<Vec<_>>())
}

fn certificates(all: &Overview, now: Time) -> String {
    let mut rows: Vec<(Time, Vec<String>)> = Vec::new();
    let mut later = 0;
    for (name, node) in &all.nodes {
        for (purpose, certificate) in &node.live.certificates {
            let days = certificate.not_after.since(now).div_euclid(86_400);
            if days > SOON_DAYS {
                later += 1;
                continue;
            }
            let row = vec![name.to_string(), purpose.to_string(), certificate.not_after.to_string(), days.to_string()];
            rows.push((certificate.not_after, row));
        }
    }
    rows.sort();
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let text = table(&["CERTIFICATE OF", "USE", "NOT AFTER", "DAYS"], &rows);
    match later {
        0 => text,
        _ => format!("{text}certificates that end in more than {SOON_DAYS} days: {later}\n"),
    }
}

/// The newest of each node.
fn backups(all: &Overview, now: Time) -> String {
    let newest = |(name, node): (&Label, &super::Node)| {
        let ((time, _), backup) = node.live.backups.last_key_value()?;
        let minutes = now.since(*time) / 60;
        let age = if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let rehearsed = backup.rehearsed_at.map_or("never".to_owned(), |at| at.to_string());
        let count = node.live.backups.len().to_string();
        Some(vec![name.to_string(), time.to_string(), age, backup.revision.to_string(), rehearsed, count])
    };
    let rows: Vec<Vec<String>> = all.nodes.iter().filter_map(newest).collect();
    let text = table(&["BACKUP OF", "NEWEST", "AGE", "REVISION", "REHEARSED", "ALL"], &rows);
    let votes = |node: &super::Node| node.want.as_ref().is_some_and(|want| want.part != Part::Client);
    if text.is_empty() && all.nodes.values().any(votes) {
        "no backup is known to the registry\n".to_owned()
    } else {
        text
    }
}

fn bad(all: &Overview) -> String {
    let rows: Vec<Vec<String>> = all.bad.iter().map(|(key, reason)| vec![key.clone(), reason.clone()]).collect();
    table(&["CANNOT BE UNDERSTOOD", "WHY"], &rows)
}
