//! One machine: systemd-nspawn booting one node's image, and commands inside it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cgroup;
use super::wait::{self, Late};
use crate::declaration::Part;
use crate::finding::Failure;
use crate::process::{Command, Finished, Running};

/// systemd-nspawn with `--keep-unit` exits so when the machine wants to be started again (nspawn.c,
/// `EXIT_FORCE_RESTART`): its service manager would do it, here it is us.
const REBOOT: i32 = 133;

/// How long a command inside may take unless it says otherwise.
const COMMAND: Duration = Duration::from_secs(20);

/// A node's machine.
#[derive(Debug)]
pub struct Machine {
    /// Name of the node.
    pub node: String,
    /// Its part in the registry.
    pub part: Part,
    /// Its address.
    pub address: IpAddr,
    root: PathBuf,
    cgroup: PathBuf,
    namespace: String,
    running: Option<Running>,
    /// Output of systemd-nspawn of earlier boots.
    before: String,
}

impl Machine {
    /// A machine that is not booted yet. `group` is a control group of its own, made here; `namespace` the path of
    /// its network namespace.
    ///
    /// # Errors
    /// When the control group cannot be made.
    pub fn new(
        (node, part, address): (String, Part, IpAddr),
        root: PathBuf,
        group: PathBuf,
        namespace: String,
    ) -> Result<Machine, Failure> {
        let cgroup = Path::new(cgroup::MOUNT).join(group);
        std::fs::create_dir(&cgroup).map_err(|e| Failure::io("make the control group", &cgroup, &e))?;
        Ok(Machine { node, part, address, root, cgroup, namespace, running: None, before: String::new() })
    }

    /// Powers it on.
    ///
    /// # Errors
    /// When systemd-nspawn cannot be started.
    pub fn start(&mut self) -> Result<(), Failure> {
        // The shell enters the control group and becomes systemd-nspawn: every process of the machine is then in it.
        let enter = "echo 0 > \"$1\"/cgroup.procs && shift && exec \"$@\"";
        let nspawn = Command::new("sh")
            .args(["-c", enter, "sh"])
            .arg(&self.cgroup)
            .args(["systemd-nspawn", "--quiet", "--boot", "--keep-unit", "--register=no", "--settings=no"])
            .args(["--link-journal=no", "--resolv-conf=off", "--timezone=off", "--console=pipe"])
            .arg(format!("--machine={}", self.node))
            .arg(format!("--network-namespace-path={}", self.namespace))
            .arg("--directory")
            .arg(&self.root);
        self.running = Some(nspawn.spawn()?);
        Ok(())
    }

    /// Its init in our PID namespace, once it runs systemd.
    fn leader(&self) -> Result<u32, String> {
        let nspawn = self.running.as_ref().ok_or("it is powered off")?;
        if nspawn.ended() {
            return Err(format!("systemd-nspawn has ended: {}", nspawn.log().trim()));
        }
        let entries = std::fs::read_dir("/proc").map_err(|e| e.to_string())?;
        let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        // A process may end while we look: then it is not the one.
        let read = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/status")).ok();
        pids.filter_map(|pid| Some((pid, read(pid)?)))
            .find(|(_, status)| is_leader(status, nspawn.id()))
            .map(|(pid, _)| pid)
            .ok_or_else(|| "its init has not started".to_owned())
    }

    /// Runs a command inside, with a clean environment; its exit status is the caller's to judge.
    ///
    /// # Errors
    /// When the machine is off or the command does not end in time.
    pub fn run(&self, arguments: &[&str]) -> Result<Finished, Failure> {
        self.run_within(arguments, COMMAND)
    }

    /// As [`Machine::run`], with another deadline.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_within(&self, arguments: &[&str], deadline: Duration) -> Result<Finished, Failure> {
        let leader = self.leader().map_err(|why| Failure::new(format!("{}: {why}", self.node)))?;
        Command::new("nsenter")
            .args(["--target", &leader.to_string(), "--all", "--"])
            .args(arguments)
            .clean_environment()
            .env("LANG", "C.UTF-8")
            .env("SYSTEMD_COLORS", "0")
            .env("SYSTEMD_PAGER", "")
            .deadline(deadline)
            .keep(4 << 20)
            .run()
            .map_err(|f| Failure { message: format!("{}: {}", self.node, f.message), help: f.help })
    }

    /// What `systemctl` says with these arguments, one line; its errors are answers too (`inactive` exits with 3).
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn systemctl(&self, arguments: &[&str]) -> Result<String, Failure> {
        let done = self.run(&[&["systemctl"], arguments].concat())?;
        let text = done.text();
        Ok(if text.trim().is_empty() { done.log.trim().to_owned() } else { text.trim().to_owned() })
    }

    /// Waits until `systemctl` with these arguments says one of `wanted`.
    ///
    /// # Errors
    /// When it does not in time.
    pub fn wait_for(&self, arguments: &[&str], wanted: &[&str], deadline: Duration) -> Result<String, Late> {
        let what = format!("{}: `systemctl {}` says {}", self.node, arguments.join(" "), wanted.join(" or "));
        wait::until(deadline, &what, || {
            let said = self.systemctl(arguments).map_err(|f| f.message)?;
            if wanted.contains(&said.as_str()) { Ok(said) } else { Err(format!("it says `{said}`")) }
        })
    }

    /// Reboots it as its administrator would, and powers it on again.
    ///
    /// # Errors
    /// When it does not go down, or cannot be started again.
    pub fn reboot(&mut self, deadline: Duration) -> Result<Result<(), Late>, Failure> {
        // The command is killed with the machine that it reboots.
        self.run(&["systemctl", "--no-block", "reboot"])?;
        let Some(running) = &self.running else { return Err(Failure::new(format!("{} is powered off", self.node))) };
        let down = wait::until(deadline, &format!("{} goes down for its reboot", self.node), || {
            if running.ended() { Ok(()) } else { Err("it is still up".to_owned()) }
        });
        if let Err(late) = down {
            return Ok(Err(late));
        }
        let status = self.power_off()?;
        if status.as_ref().and_then(|f| f.status.code()) != Some(REBOOT) {
            let why = status.map_or(String::new(), |f| crate::process::command::ending(f.status));
            return Err(Failure::new(format!("{}: systemd-nspawn {why} instead of asking for a restart", self.node)));
        }
        self.start()?;
        Ok(Ok(()))
    }

    /// Takes the power away.
    fn power_off(&mut self) -> Result<Option<Finished>, Failure> {
        let Some(running) = self.running.take() else { return Ok(None) };
        let finished = running.kill()?;
        self.before.push_str(&String::from_utf8_lossy(&finished.stdout));
        self.before.push_str(&finished.log);
        Ok(Some(finished))
    }

    /// Console and messages of systemd-nspawn.
    pub fn console(&self) -> String {
        let now = self.running.as_ref().map(|r| format!("{}{}", r.output(), r.log())).unwrap_or_default();
        format!("{}{now}", self.before)
    }
}

/// True for the process with PID 1 in a namespace below, whose parent is `parent`, once it is systemd: before that
/// it may still see our file system.
fn is_leader(status: &str, parent: u32) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim().to_owned();
    let pids: Vec<String> = field("NSpid:").split_whitespace().map(str::to_owned).collect();
    field("PPid:") == parent.to_string()
        && field("Name:") == "systemd"
        && pids.len() > 1
        && pids.last().is_some_and(|p| p == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_is_the_init_below_nspawn_once_it_is_systemd() {
        let cases = [
            ("Name:\tsystemd\nPPid:\t19\nNSpid:\t23\t1\n", true),
            ("Name:\tsystemd-nspawn\nPPid:\t19\nNSpid:\t23\t1\n", false),
            ("Name:\tsystemd\nPPid:\t18\nNSpid:\t23\t1\n", false),
            ("Name:\tsystemd\nPPid:\t19\nNSpid:\t23\n", false),
            ("Name:\tsystemd\nPPid:\t19\nNSpid:\t23\t2\n", false),
        ];
        for (status, want) in cases {
            assert_eq!(is_leader(status, 19), want, "{status}");
        }
    }
}
