//! Carrying the changes out. Keys in transactions that compare identity and what the plan has seen; users and roles one
//! request each, some at a time: etcd has no transaction for them. Authentication comes last, so that an interruption locks
//! nobody out.

use std::time::{Duration, Instant};

use etcd_client::{Compare, CompareOp, PermissionType, RoleRevokePermissionOptions, Txn, TxnOp, UserAddOptions};

use super::change::Change;
use super::current::{Current, Permission};
use crate::finding::Failure;
use crate::image::progress::{Progress, Step};
use crate::layout::Key;
use crate::live::client::Client;
use crate::live::handshake::Trouble;

/// Writes of one transaction: etcd takes 128 comparisons and as many operations (`DefaultMaxTxnOps` of its
/// `embed/config.go`), and 1.5 MiB in all.
const CHUNK: usize = 100;

/// Carries the changes of a plan out. `current` is what it was made from; each request may take `timeout`.
///
/// # Errors
/// When a request is refused or not answered, or the registry has changed meanwhile. What is done is done: another plan has
/// what is left.
pub fn apply(
    changes: &[Change],
    current: &Current,
    client: &Client,
    timeout: Duration,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let step = progress.start("writing the registry", Some(changes.len() as u64));
    let work = Work { client, timeout, step: &*step };
    let mut identity = current.identity.as_ref().map(|stored| stored.revision);
    if let Some(Change::Create { identity: value, schema, .. }) = changes.first() {
        identity = Some(work.create(value, schema)?);
    }
    if let Some(identity) = identity {
        work.keys(changes, identity)?;
    }
    work.access(changes)
}

struct Work<'a> {
    client: &'a Client,
    timeout: Duration,
    step: &'a dyn Step,
}

impl Work<'_> {
    fn soon(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Identity and schema in one transaction; gives the revision.
    fn create(&self, identity: &str, schema: &str) -> Result<i64, Failure> {
        let key = Key::Identity.to_string();
        let absent = [Compare::create_revision(key.clone(), CompareOp::Equal, 0)];
        let puts = [TxnOp::put(key, identity, None), TxnOp::put(Key::Schema.to_string(), schema, None)];
        let txn = Txn::new().when(absent).and_then(puts);
        let answer =
            self.client.with(self.soon(), async |mut c| c.txn(txn).await).map_err(|t| stopped("identity", &t))?;
        self.step.advance(1);
        match answer.header() {
            Some(header) if answer.succeeded() => Ok(header.revision()),
            _ => Err(changed()),
        }
    }

    /// Every key, as long as identity and the keys themselves are what the plan has seen.
    fn keys(&self, changes: &[Change], identity: i64) -> Result<(), Failure> {
        let writes: Vec<(Compare, TxnOp)> = changes.iter().filter_map(write).collect();
        for chunk in writes.chunks(CHUNK) {
            let same = Compare::mod_revision(Key::Identity.to_string(), CompareOp::Equal, identity);
            let compares: Vec<Compare> = std::iter::once(same).chain(chunk.iter().map(|(c, _)| c.clone())).collect();
            let operations: Vec<TxnOp> = chunk.iter().map(|(_, operation)| operation.clone()).collect();
            let txn = Txn::new().when(compares).and_then(operations);
            let answer = self.client.with(self.soon(), async |mut c| c.txn(txn).await);
            if !answer.map_err(|t| stopped("the keys of /mesh/want/", &t))?.succeeded() {
                return Err(changed());
            }
            self.step.advance(chunk.len() as u64);
        }
        Ok(())
    }

    /// Users and roles, kind by kind in the order of the plan, and authentication.
    fn access(&self, changes: &[Change]) -> Result<(), Failure> {
        let of = |pick: fn(&Change) -> Option<Call>| changes.iter().filter_map(pick).collect::<Vec<Call>>();
        self.calls(
            "removing users",
            of(|c| match c {
                Change::RemoveUser(user) => Some(Call::RemoveUser(user.clone())),
                _ => None,
            }),
        )?;
        self.calls(
            "taking roles from users",
            of(|c| match c {
                Change::TakeRole { user, role } => Some(Call::TakeRole(user.clone(), role.clone())),
                _ => None,
            }),
        )?;
        self.calls(
            "removing roles",
            of(|c| match c {
                Change::RemoveRole(role) => Some(Call::RemoveRole(role.clone())),
                _ => None,
            }),
        )?;
        self.calls(
            "revoking permissions",
            of(|c| match c {
                Change::Revoke { role, permission } => Some(Call::Revoke(role.clone(), permission.clone())),
                _ => None,
            }),
        )?;
        self.calls(
            "making roles",
            of(|c| match c {
                Change::AddRole { role, .. } => Some(Call::AddRole(role.clone())),
                _ => None,
            }),
        )?;
        let grants = changes.iter().flat_map(grants).collect();
        self.calls("granting permissions", grants)?;
        self.calls(
            "making users",
            of(|c| match c {
                Change::AddUser { user, .. } => Some(Call::AddUser(user.clone())),
                _ => None,
            }),
        )?;
        self.calls(
            "giving users their roles",
            of(|c| match c {
                Change::AddUser { user, role } | Change::GiveRole { user, role } => {
                    Some(Call::GiveRole(user.clone(), role.clone()))
                }
                _ => None,
            }),
        )?;
        if changes.contains(&Change::EnableAuthentication) {
            let enabled = self.client.with(self.soon(), async |mut c| c.auth_enable().await);
            enabled.map_err(|t| stopped("turning authentication on", &t))?;
            self.step.advance(1);
        }
        Ok(())
    }

    fn calls(&self, what: &str, calls: Vec<Call>) -> Result<(), Failure> {
        if calls.is_empty() {
            return Ok(());
        }
        // A user is counted when it has its role, a role when it is made.
        let counts = !calls.iter().all(|call| matches!(call, Call::Grant(..) | Call::AddUser(_)));
        let done = || self.step.advance(u64::from(counts));
        let all = self.client.each(calls, self.timeout, done, |c, call| call.carry_out(c));
        all.map(|_| ()).map_err(|trouble| stopped(what, &trouble))
    }
}

/// One request about users and roles.
enum Call {
    RemoveUser(String),
    TakeRole(String, String),
    RemoveRole(String),
    Revoke(String, Permission),
    AddRole(String),
    Grant(String, Permission),
    AddUser(String),
    GiveRole(String, String),
}

impl Call {
    async fn carry_out(self, mut client: etcd_client::Client) -> Result<(), etcd_client::Error> {
        match self {
            Call::RemoveUser(user) => client.user_delete(user).await.map(|_| ()),
            Call::TakeRole(user, role) => client.user_revoke_role(user, role).await.map(|_| ()),
            Call::RemoveRole(role) => client.role_delete(role).await.map(|_| ()),
            Call::Revoke(role, permission) => {
                let range = RoleRevokePermissionOptions::new().with_range_end(permission.end);
                client.role_revoke_permission(role, permission.key, Some(range)).await.map(|_| ())
            }
            Call::AddRole(role) => client.role_add(role).await.map(|_| ()),
            Call::Grant(role, permission) => {
                let kind = match (permission.read, permission.write) {
                    (true, true) => PermissionType::Readwrite,
                    (false, true) => PermissionType::Write,
                    _ => PermissionType::Read,
                };
                let granted = etcd_client::Permission::new(kind, permission.key).with_range_end(permission.end);
                client.role_grant_permission(role, granted).await.map(|_| ())
            }
            Call::AddUser(user) => {
                client.user_add(user, "", Some(UserAddOptions::new().with_no_pwd())).await.map(|_| ())
            }
            Call::GiveRole(user, role) => client.user_grant_role(user, role).await.map(|_| ()),
        }
    }
}

fn grants(change: &Change) -> Vec<Call> {
    match change {
        Change::AddRole { role, permissions } => {
            permissions.iter().map(|permission| Call::Grant(role.clone(), permission.clone())).collect()
        }
        Change::Grant { role, permission } => vec![Call::Grant(role.clone(), permission.clone())],
        _ => Vec::new(),
    }
}

/// A write with what must be so before it.
fn write(change: &Change) -> Option<(Compare, TxnOp)> {
    match change {
        Change::Put { key, value, old } => {
            let key = key.to_string();
            let revision = old.as_ref().map_or(0, |(_, revision)| *revision);
            let same = Compare::mod_revision(key.clone(), CompareOp::Equal, revision);
            Some((same, TxnOp::put(key, value.as_str(), None)))
        }
        Change::Delete { key, revision } => {
            let same = Compare::mod_revision(key.clone(), CompareOp::Equal, *revision);
            Some((same, TxnOp::delete(key.clone(), None)))
        }
        _ => None,
    }
}

const AGAIN: &str = "run it again: it plans and does what is left";

fn stopped(what: &str, trouble: &Trouble) -> Failure {
    Failure::new(format!("stopped at {what}: {}", trouble.reason)).help(AGAIN)
}

fn changed() -> Failure {
    Failure::new("somebody has written the registry since this plan was made; nothing of the rest was written")
        .help(AGAIN)
}
