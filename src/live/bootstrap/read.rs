//! Reading what a registry holds of what bootstrap writes. It only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use etcd_client::PermissionType;

use super::current::{Current, Permission, Stored};
use crate::etcd::ids::Id;
use crate::finding::Failure;
use crate::image::progress::Progress;
use crate::layout::Key;
use crate::layout::keys::WANT;
use crate::live::client::{Client, Item};
use crate::live::handshake::Trouble;

/// What etcd says to a log-in while authentication is off (`auth/store.go` ErrAuthNotEnabled), in every version. It has no
/// call for the question before 3.5.
const NOT_ENABLED: &str = "authentication is not enabled";

/// Reads it all; each call may take `timeout`.
///
/// # Errors
/// When a call is not answered, or refused: only operators may look at users.
pub fn read(client: &Client, timeout: Duration, progress: &dyn Progress) -> Result<Current, Failure> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |trouble: Trouble| not_read(&what, &trouble)
    };
    let soon = || Instant::now() + timeout;
    let cluster = client.with(soon(), async |mut c| c.status().await).map_err(failed("the cluster's id"))?;
    let cluster = cluster.header().map(|header| Id(header.cluster_id()));
    let stored = |key: Key| -> Result<Option<Stored>, Failure> {
        let item = client.item(&key.to_string(), soon()).map_err(failed(&key.to_string()))?;
        Ok(item.map(stored))
    };
    let (identity, schema) = (stored(Key::Identity)?, stored(Key::Schema)?);
    let want = client.items(WANT, timeout).map_err(failed(WANT))?;
    let want: BTreeMap<Vec<u8>, Stored> =
        want.items.into_iter().map(|item| (item.key.clone(), self::stored(item))).collect();
    let roles = client.with(soon(), async |mut c| c.role_list().await).map_err(failed("the roles"))?.roles().to_vec();
    let users = client.with(soon(), async |mut c| c.user_list().await).map_err(failed("the users"))?.users().to_vec();
    let step = progress.start("reading roles and users", Some((roles.len() + users.len()) as u64));
    let count = || step.advance(1);
    let roles = client
        .each(roles, timeout, count, |mut c, role| async move {
            let answer = c.role_get(role.clone()).await?;
            Ok((role, answer.permissions().iter().map(permission).collect()))
        })
        .map_err(failed("the roles"))?;
    let users = client
        .each(users, timeout, count, |mut c, user| async move {
            let answer = c.user_get(user.clone()).await?;
            Ok((user, answer.roles().iter().cloned().collect()))
        })
        .map_err(failed("the users"))?;
    let roles: BTreeMap<String, BTreeSet<Permission>> = roles.into_iter().collect();
    let authentication = authentication(client, soon()).map_err(failed("whether authentication is on"))?;
    Ok(Current { cluster, identity, schema, want, roles, users: users.into_iter().collect(), authentication })
}

/// Whether authentication is on: a log-in without password is refused in another way when it is.
///
/// # Errors
/// When it is not answered.
pub fn authentication(client: &Client, deadline: Instant) -> Result<bool, Trouble> {
    let login = client.with(deadline, async |c| c.auth_client().authenticate("root".into(), String::new()).await);
    match login {
        Ok(_) => Ok(true),
        Err(trouble) if trouble.kind.is_silence() => Err(trouble),
        Err(trouble) => Ok(!trouble.reason.contains(NOT_ENABLED)),
    }
}

fn stored(item: Item) -> Stored {
    Stored { value: item.value, revision: item.revision }
}

fn permission(permission: &etcd_client::Permission) -> Permission {
    let kind = permission.get_type();
    Permission {
        key: permission.key().to_vec(),
        end: permission.range_end().to_vec(),
        read: kind != PermissionType::Write as i32,
        write: kind != PermissionType::Read as i32,
    }
}

fn not_read(what: &str, trouble: &Trouble) -> Failure {
    let failure = Failure::new(format!("cannot read {what}: {}", trouble.reason));
    if trouble.reason.contains("permission denied") {
        failure.help(
            "authentication is on, and this certificate's common name is no user with the role `root`: use an operator's \
             certificate that was there at the last bootstrap",
        )
    } else {
        failure
    }
}
