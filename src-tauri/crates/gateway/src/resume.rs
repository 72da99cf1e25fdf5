//! How a bridge gets its sessions back: by a secret that only it and this process know.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use tabwarden_domain::PrincipalId;
use tokio_util::sync::CancellationToken;

/// The hash of a bridge's secret. The secret itself is kept nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// Takes 64 hexadecimal digits.
    pub fn read(hex: &str) -> Option<Self> {
        let right = hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        right.then(|| Self(Sha256::digest(hex.to_ascii_lowercase()).into()))
    }
}

/// The bridges that are here, or may come back.
#[derive(Default)]
pub(crate) struct Bridges(HashMap<Secret, Bridge>);

struct Bridge {
    principal: PrincipalId,
    /// Ends the bridge's connection; `None` while it has none.
    connection: Option<CancellationToken>,
}

impl Bridges {
    /// A bridge is here by a new connection. An older connection of the same bridge is ended. Says whose sessions are
    /// the bridge's; `fresh` if it was not known.
    pub fn arrive(
        &mut self,
        secret: Secret,
        fresh: PrincipalId,
        connection: CancellationToken,
        has_sessions: impl Fn(PrincipalId) -> bool,
    ) -> PrincipalId {
        self.0.retain(|_, bridge| bridge.connection.is_some() || has_sessions(bridge.principal));
        let bridge = self.0.entry(secret).or_insert(Bridge { principal: fresh, connection: None });
        if let Some(older) = bridge.connection.replace(connection) {
            older.cancel();
        }
        bridge.principal
    }

    /// A bridge's connection has ended. Says whose sessions now wait, unless the bridge is already back by another.
    pub fn leave(&mut self, secret: Secret, connection: &CancellationToken) -> Option<PrincipalId> {
        let bridge = self.0.get_mut(&secret)?;
        // A cancelled one was replaced: its successor holds the sessions.
        if connection.is_cancelled() {
            return None;
        }
        bridge.connection = None;
        Some(bridge.principal)
    }
}
