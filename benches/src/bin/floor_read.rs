//! The floor of `show`: opens the same database and reads one row. `floor_read DATABASE ID`.
#![expect(clippy::print_stdout, reason = "the row is what this program is for")]

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (database, id) = arguments
        .next()
        .zip(arguments.next())
        .context("usage: floor_read DATABASE ID")?;
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let sql =
        "SELECT i.id, e.status, e.reason_code FROM entity_ids i JOIN entities e ON e.entity = i.entity WHERE i.id = ?1";
    let (id, status, reason): (String, String, String) =
        connection.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    println!("{id} {status} {reason}");
    Ok(())
}
