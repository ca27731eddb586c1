//! What `registry members` prints: a table and numbered steps for people, objects for programs.

use std::time::Duration;

use serde_json::json;

use crate::cli::{Global, Ui};
use crate::live::members::apply::Event;
use crate::live::members::look::Look;
use crate::live::members::plan::{Commands, Plan, Planned, Seen, Wanted, votes};
use crate::process::command::quote;

/// Prints.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    pub ui: &'a Ui,
    pub wanted: &'a Wanted,
    /// `fitout` with the options that find the same mesh.
    pub fitout: String,
}

/// `fitout` as it is typed to find the same mesh again.
pub(super) fn fitout(global: &Global) -> String {
    let mut words = vec!["fitout".to_owned()];
    if let Some(directory) = &global.directory {
        words.extend(["-C".to_owned(), quote(&directory.display().to_string())]);
    }
    if let Some(store) = &global.pki {
        words.extend(["--pki".to_owned(), quote(&store.display().to_string())]);
    }
    words.join(" ")
}

impl Printer<'_> {
    /// The living list.
    pub fn members(&self, look: &Look) {
        let nodes = look.nodes(self.wanted);
        let mut rows =
            vec![["ID", "NAME", "NODE", "SITE", "PEER URLS", "VOTE", "STATE", "VERSION", "DB SIZE"].map(str::to_owned)];
        for (seen, node) in look.seen.iter().zip(nodes) {
            let (member, answer) = (&seen.member, look.answers.get(&seen.member.id).map(|(_, answer)| answer));
            let site = node.and_then(|node| self.wanted.nodes.get(node)).map(|place| place.site.as_str());
            let version = answer.map(|a| a.version.clone());
            self.ui.object(&json!({"type": "member", "id": member.id, "name": member.name, "node": node, "site": site,
                "peer-urls": member.peer_urls, "client-urls": member.client_urls, "learner": member.learner,
                "leader": seen.leads, "state": seen.stand.words(), "version": version,
                "db-size": answer.map(|a| a.db_size), "raft-index": answer.map(|a| a.raft_index)}));
            let or = |text: Option<String>| text.filter(|t| !t.is_empty()).unwrap_or_else(|| "-".to_owned());
            rows.push([
                member.id.to_string(),
                or(Some(member.name.clone())),
                or(node.map(str::to_owned)),
                or(site.map(str::to_owned)),
                member.peer_urls.join(","),
                if member.learner { "learner" } else { "voter" }.to_owned(),
                state(seen),
                or(version),
                or(answer.map(|a| kib(a.db_size))),
            ]);
        }
        self.table(&rows);
    }

    fn table<const N: usize>(&self, rows: &[[String; N]]) {
        let mut widths = [0; N];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            self.ui.line(cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    /// What the declaration wants.
    pub fn wanted(&self) {
        let nodes: Vec<String> =
            self.wanted.nodes.iter().map(|(node, place)| format!("{node} ({})", place.site)).collect();
        let all = nodes.len();
        let what = match all {
            1 => "declared: one control plane".to_owned(),
            all => format!("declared: {all} voters, of which {} must live", all / 2 + 1),
        };
        self.ui.line(format!("\n{what}: {}", nodes.join(", ")));
    }

    /// The steps.
    pub fn plan(&self, plan: &Plan, applies: bool) {
        let commands = Commands { fitout: self.fitout.clone() };
        if !plan.steps.is_empty() {
            let how = if applies {
                "steps, which are taken now one at a time:".to_owned()
            } else {
                format!(
                    "steps; `{} registry members --apply` takes them one at a time. By hand, after `eval \"$({} registry \
                     env)\"`:",
                    self.fitout, self.fitout
                )
            };
            self.ui.line(how);
        }
        for (n, planned) in plan.steps.iter().enumerate() {
            let typed: Vec<String> = commands.of(&planned.step).iter().map(ToString::to_string).collect();
            self.ui.object(&object(n + 1, planned, &typed, "planned"));
            self.ui.line(format!("{}. {}", n + 1, planned.step));
            self.ui.line(format!("     {}", votes(planned.before, planned.after)));
            if let Some(warning) = &planned.warning {
                self.ui.line(format!("     warning: {warning}"));
            }
            for command in typed.iter().filter(|_| !applies || planned.step.is_for_operator()) {
                self.ui.line(format!("     {command}"));
            }
        }
        if let Some(blocked) = &plan.blocked {
            let step = blocked
                .step
                .as_ref()
                .map_or_else(|| "nothing can be changed now".to_owned(), |step| format!("not possible now: {step}"));
            self.ui.line(format!("{step}\n     because {}\n     help: {}", blocked.why, blocked.help));
        }
    }

    /// How it stands at the end.
    pub fn end(&self, plan: &Plan) {
        let blocked = plan.blocked.as_ref().map(|b| json!({"why": b.why, "help": b.help}));
        let wanted: Vec<_> = self
            .wanted
            .nodes
            .iter()
            .map(|(node, place)| json!({"node": node, "site": place.site, "peer-url": place.peer_url}))
            .collect();
        self.ui.object(&json!({"type": "members", "as-declared": plan.is_done(), "wanted": wanted,
            "steps": plan.steps.len(), "blocked": blocked}));
        let text = match (plan.is_done(), plan.steps.len()) {
            (true, _) => "the members are as declared".to_owned(),
            (false, 0) => "the members are not as declared".to_owned(),
            (false, 1) => "the members are not as declared: one step is left".to_owned(),
            (false, n) => format!("the members are not as declared: {n} steps are left"),
        };
        self.ui.verdict("members", &text, plan.is_done());
        self.ui.line(text);
    }

    /// What happens while they are carried out.
    pub fn event(&self, event: &Event<'_>) {
        match event {
            Event::Begins(n, planned) => self.ui.status(format!("{n}. {}", planned.step)),
            Event::WaitsFor(n, planned, wait) => {
                self.ui.status(format!("{n}. for you: {}{}", planned.step, long(*wait)))
            }
            Event::Waits(why) => self.ui.status(format!("   waiting: {why}")),
            Event::Done(n, planned) => {
                self.ui.object(&object(*n, planned, &[], "done"));
                self.ui.status(format!("{n}. done"));
            }
        }
    }
}

fn long(wait: Duration) -> String {
    match wait.as_secs() {
        0 => String::new(),
        seconds => format!(" (waiting up to {seconds} s; ^C stops, and the command goes on from here when run again)"),
    }
}

fn object(n: usize, planned: &Planned, commands: &[String], state: &str) -> serde_json::Value {
    json!({"type": "member-step", "n": n, "kind": planned.step.kind(), "node": planned.step.node(),
        "text": planned.step.to_string(), "for-operator": planned.step.is_for_operator(), "state": state,
        "votes-before": planned.before, "votes-after": planned.after, "warning": planned.warning, "commands": commands})
}

fn state(seen: &Seen) -> String {
    let words = seen.stand.words();
    if seen.leads && seen.stand.counts() { "leads".to_owned() } else { words.to_owned() }
}

/// `1.5 MiB`.
fn kib(bytes: u64) -> String {
    let tenth = bytes.saturating_mul(10) / (1 << 20);
    if tenth >= 10 { format!("{}.{} MiB", tenth / 10, tenth % 10) } else { format!("{} KiB", bytes >> 10) }
}
