//! How systemd says that the node's units are.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Asks for the active state of units; what is wrong with each, in their order.
///
/// # Errors
/// When systemd does not say.
pub async fn ask(units: &[&str], patience: Duration) -> Result<Vec<Option<String>>, String> {
    let mut command = Command::new("systemctl");
    command.args(["show", "--property=LoadState", "--property=ActiveState", "--property=SubState", "--"]).args(units);
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).env("LC_ALL", "C");
    let output = match tokio::time::timeout(patience, command.output()).await {
        Err(_) => return Err(format!("systemctl does not answer within {} s", patience.as_secs())),
        Ok(Err(error)) => return Err(format!("systemctl cannot be run: {error}")),
        Ok(Ok(output)) => output,
    };
    let said = parse(&String::from_utf8_lossy(&output.stdout));
    if said.len() == units.len() { Ok(said) } else { Err(format!("systemctl ended with {}", output.status)) }
}

/// One block of `Key=value` lines per unit, an empty line between them (systemctl(1), `show`).
fn parse(text: &str) -> Vec<Option<String>> {
    let blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    let one = |block: &str| {
        let of = |key: &str| {
            block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default().to_owned()
        };
        match (of("LoadState").as_str(), of("ActiveState").as_str(), of("SubState").as_str()) {
            (_, "active" | "reloading" | "refreshing", _) => None,
            ("not-found", ..) => Some("there is no such unit".to_owned()),
            ("masked", ..) => Some("is masked".to_owned()),
            (_, active, sub) if sub.is_empty() || sub == active => Some(format!("is {active}")),
            (_, active, sub) => Some(format!("is {active} ({sub})")),
        }
    };
    blocks.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemctl_shows() {
        let text = "LoadState=loaded\nActiveState=active\nSubState=exited\n\n\
                    LoadState=not-found\nActiveState=inactive\nSubState=dead\n\n\
                    LoadState=loaded\nActiveState=failed\nSubState=failed\n\n\
                    LoadState=loaded\nActiveState=activating\nSubState=auto-restart\n\n\
                    LoadState=masked\nActiveState=inactive\nSubState=dead\n";
        let want = [
            None,
            Some("there is no such unit"),
            Some("is failed"),
            Some("is activating (auto-restart)"),
            Some("is masked"),
        ];
        assert_eq!(parse(text), want.map(|said| said.map(str::to_owned)));
        assert_eq!(parse(""), []);
    }
}
