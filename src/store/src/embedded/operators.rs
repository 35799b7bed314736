//! The people who operate the service.

use rusqlite::{Row, params};
use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::rows::{optional_time, parsed};
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::operators::Operators;
use crate::sealing::{open_operator, seal_operator};

const ADD: &str =
    "INSERT INTO operators (operator_id, token, created_at, box) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (operator_id) DO NOTHING";
const ALL: &str = "SELECT operator_id, revoked_at, box FROM operators ORDER BY created_at, operator_id";
pub(crate) const BY_TOKEN: &str = "SELECT operator_id, revoked_at, box FROM operators WHERE token = ?1";
const BY_ID: &str = "SELECT operator_id, revoked_at, box FROM operators WHERE operator_id = ?1";
const REVOKE: &str = "UPDATE operators SET revoked_at = coalesce(revoked_at, ?2) WHERE operator_id = ?1";

impl Operators for EmbeddedStore {
    fn add_operator(&self, operator: OperatorRecord, token: KeyDigest) -> StoreFuture<()> {
        self.write(0, move |db| {
            let sealed = seal_operator(&db.vault, &operator)?;
            db.change(ADD, params![operator.operator_id.as_str(), token.0, operator.created_at.millis(), sealed]).map(drop)
        })
    }

    fn operators(&self) -> StoreFuture<Vec<OperatorRecord>> {
        self.read(|db| db.all(ALL, [], |row| operator(db, row)))
    }

    fn find_operator(&self, token: KeyDigest) -> StoreFuture<Option<OperatorRecord>> {
        self.read(move |db| db.first(BY_TOKEN, [token.0], |row| operator(db, row)))
    }

    fn revoke_operator(&self, id: OperatorId, at: Timestamp) -> StoreFuture<Option<OperatorRecord>> {
        self.write(0, move |db| {
            db.change(REVOKE, params![id.as_str(), at.millis()])?;
            db.first(BY_ID, [id.as_str()], |row| operator(db, row))
        })
    }
}

fn operator(db: &Database, row: &Row<'_>) -> rusqlite::Result<OperatorRecord> {
    let record = open_operator(&db.vault, &parsed(row, 0)?, row.get::<_, Vec<u8>>(2)?)?;
    Ok(OperatorRecord { revoked_at: optional_time(row, 1)?, ..record })
}
