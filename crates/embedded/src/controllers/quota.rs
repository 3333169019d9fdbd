//! Keeps the status of ResourceQuotas: how much of what they limit by number there is.

use super::{
    Next,
    hands::{Hands, Key, QUOTAS},
};

/// Brings a quota's status up to date.
pub fn sync(hands: &mut Hands, key: &Key) -> Next {
    let Some(quota) = hands.get(&QUOTAS, key) else { return Next::Idle };
    let status = hands.store.quota_status(&quota);
    if Some(&status) != quota.value.get("status") && hands.update_status(&QUOTAS, &quota, status).is_err() {
        return Next::Retry;
    }
    Next::Idle
}
