//! Catalog: keyspaces, tables and, where rows are kept, the rows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use steelyard_cql::{ColumnSpec, ColumnType, code};
use steelyard_workload::murmur3;

use crate::refusal::{Refusal, invalid};
use crate::ring;
use crate::statement::{Name, Statement};

/// Rows that one node remembers at most; a write above that is refused as overload.
pub const MOST_ROWS: usize = 5_000_000;

/// Cells by column, those of the key included.
pub type Row = Vec<Option<Box<[u8]>>>;

/// Token, partition key, and clustering columns such that their bytes sort as their values do.
pub type RowKey = (i64, Box<[u8]>, Box<[u8]>);

#[derive(Debug)]
pub struct Table {
    pub keyspace: String,
    pub name: String,
    /// The partition key's, the clustering columns, the others by name: as Cassandra orders them for `SELECT *`.
    pub columns: Vec<ColumnSpec>,
    /// Indices of the partition key's columns.
    pub partition: Vec<usize>,
    pub clustering: Vec<usize>,
    /// In the order of tokens, as scans see them.
    pub rows: BTreeMap<RowKey, Row>,
}

impl Table {
    pub fn column(&self, name: &str) -> Result<usize, Refusal> {
        let position = self.columns.iter().position(|column| column.name == name);
        position.ok_or_else(|| {
            invalid(format!(
                "Undefined column name {name} in table {}.{}",
                self.keyspace, self.name
            ))
        })
    }

    /// Set cells of a row, which comes into being if it is not there.
    pub fn put(&mut self, key: RowKey, cells: impl Iterator<Item = (usize, Option<Box<[u8]>>)>) -> Result<(), Refusal> {
        let full = self.rows.len() >= MOST_ROWS;
        if full && !self.rows.contains_key(&key) {
            let message = format!("the simulated cluster stores at most {MOST_ROWS} rows per node");
            return Err(Refusal {
                code: code::OVERLOADED,
                message,
            });
        }
        let row = self.rows.entry(key).or_insert_with(|| vec![None; self.columns.len()]);
        for (column, cell) in cells {
            row[column] = cell;
        }
        Ok(())
    }

    /// Columns of the primary key: the first ones.
    pub fn key_columns(&self) -> usize {
        self.partition.len() + self.clustering.len()
    }

    /// How system tables call a column's part in the key, and its position in that.
    pub fn role(&self, column: usize) -> (&'static str, i32) {
        match column.checked_sub(self.partition.len()) {
            None => ("partition_key", column as i32),
            Some(position) if position < self.clustering.len() => ("clustering", position as i32),
            Some(_) => ("regular", -1),
        }
    }

    /// Rows of a partition whose first clustering columns are those of the key.
    pub fn partition<'a>(&'a self, key: &[Cow<'_, [u8]>]) -> impl Iterator<Item = &'a Row> + use<'a> {
        let first = row_key(self, key);
        let (token, partition, prefix) = first.clone();
        self.rows
            .range((Bound::Included(first), Bound::Unbounded))
            .take_while(move |((other, key, clustering), _)| {
                *other == token && *key == partition && clustering.starts_with(&prefix)
            })
            .map(|(_, row)| row)
    }

    /// Forgets the rows whose key begins as `key`, of which `columns` were given.
    pub fn delete(&mut self, key: &RowKey, columns: usize) {
        if columns == self.key_columns() {
            self.rows.remove(key);
            return;
        }
        let (token, partition, prefix) = key;
        self.rows.retain(|(other, key, clustering), _| {
            other != token || key != partition || !clustering.starts_with(prefix)
        });
    }
}

/// Where a row lies whose key has these values; of clustering columns that are not given nothing is said.
pub fn row_key(table: &Table, key: &[Cow<'_, [u8]>]) -> RowKey {
    let (partition, clustering) = key.split_at(table.partition.len().min(key.len()));
    let partition = partition_bytes(partition);
    let parts = table.clustering.iter().zip(clustering);
    let clustering: Vec<u8> = parts
        .flat_map(|(column, part)| sortable(&table.columns[*column].kind, part))
        .collect();
    (murmur3::token(&partition), partition, clustering.into())
}

/// A partition key as Cassandra composes it: one value as it is, several each with its length before and a zero behind it.
pub fn partition_bytes(parts: &[Cow<'_, [u8]>]) -> Box<[u8]> {
    match parts {
        [only] => Box::from(&**only),
        many => many
            .iter()
            .flat_map(|part| [&(part.len() as u16).to_be_bytes(), &**part, &[0]].concat())
            .collect(),
    }
}

/// Bytes that sort as values of the type do, none the beginning of another's.
pub fn sortable(kind: &ColumnType, value: &[u8]) -> Vec<u8> {
    let mut bytes = value.to_vec();
    match kind {
        ColumnType::TinyInt
        | ColumnType::SmallInt
        | ColumnType::Int
        | ColumnType::BigInt
        | ColumnType::Timestamp
        | ColumnType::Time => {
            // The sign's bit the other way round.
            if let Some(first) = bytes.first_mut() {
                *first ^= 0x80;
            }
            bytes
        }
        _ => {
            let mut escaped: Vec<u8> = bytes
                .into_iter()
                .flat_map(|byte| std::iter::once(byte).chain((byte == 0).then_some(0xFF)))
                .collect();
            escaped.extend_from_slice(&[0, 0]);
            escaped
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    pub name: String,
    pub replication: Vec<(String, String)>,
}

/// What a change of the schema amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `CREATED` or `DROPPED`, keyspace, table.
    Schema(&'static str, String, Option<String>),
    /// It was so already.
    Nothing,
    Truncated,
}

/// The node's schema. Tables keep their index forever, so that prepared statements can name them by it.
#[derive(Debug, Default)]
pub struct Catalog {
    pub keyspaces: Vec<Keyspace>,
    tables: Vec<Option<Table>>,
}

impl Catalog {
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().flatten()
    }

    pub fn table(&self, index: usize) -> Result<&Table, Refusal> {
        self.tables
            .get(index)
            .and_then(Option::as_ref)
            .ok_or_else(|| invalid("the table was dropped"))
    }

    pub fn table_mut(&mut self, index: usize) -> Result<&mut Table, Refusal> {
        self.tables
            .get_mut(index)
            .and_then(Option::as_mut)
            .ok_or_else(|| invalid("the table was dropped"))
    }

    pub fn has_keyspace(&self, name: &str) -> bool {
        self.keyspaces.iter().any(|keyspace| keyspace.name == name)
    }

    /// Index of a table by name; `default` is the keyspace of the connection.
    pub fn find(&self, name: &Name, default: Option<&str>) -> Result<usize, Refusal> {
        let keyspace = keyspace_of(name, default)?;
        let same = |table: &Table| table.keyspace == keyspace && table.name == name.table;
        let position = self.tables.iter().position(|table| table.as_ref().is_some_and(same));
        position.ok_or_else(|| invalid(format!("unconfigured table {keyspace}.{}", name.table)))
    }

    /// The same on every node that has the same schema.
    pub fn version(&self) -> [u8; 16] {
        let tables: Vec<_> = self
            .tables()
            .map(|table| (&table.keyspace, &table.name, &table.columns))
            .collect();
        ring::uuid(&format!("{:?} {tables:?}", self.keyspaces))
    }

    /// Carry out a statement that changes the schema, or TRUNCATE.
    pub fn change(&mut self, statement: &Statement, default: Option<&str>) -> Result<Change, Refusal> {
        match statement {
            Statement::CreateKeyspace {
                keyspace,
                if_not_exists,
                replication,
            } => {
                if self.has_keyspace(keyspace) {
                    return exists(*if_not_exists, keyspace, "");
                }
                self.keyspaces.push(Keyspace {
                    name: keyspace.clone(),
                    replication: replication.clone(),
                });
                Ok(Change::Schema("CREATED", keyspace.clone(), None))
            }
            Statement::CreateTable {
                name,
                if_not_exists,
                key,
                clustering,
                columns,
            } => {
                let keyspace = keyspace_of(name, default)?;
                if !self.has_keyspace(&keyspace) {
                    return Err(invalid(format!("Keyspace {keyspace} does not exist")));
                }
                if self.find(name, default).is_ok() {
                    return exists(*if_not_exists, &keyspace, &name.table);
                }
                self.tables
                    .push(Some(new_table(&keyspace, &name.table, (key, clustering), columns)));
                Ok(Change::Schema("CREATED", keyspace, Some(name.table.clone())))
            }
            Statement::DropKeyspace { keyspace, if_exists } => {
                if !self.has_keyspace(keyspace) {
                    return missing(*if_exists, keyspace);
                }
                self.keyspaces.retain(|other| other.name != *keyspace);
                for table in &mut self.tables {
                    table.take_if(|table| table.keyspace == *keyspace);
                }
                Ok(Change::Schema("DROPPED", keyspace.clone(), None))
            }
            Statement::DropTable { name, if_exists } => match self.find(name, default) {
                Ok(index) => {
                    self.tables[index] = None;
                    Ok(Change::Schema(
                        "DROPPED",
                        keyspace_of(name, default)?,
                        Some(name.table.clone()),
                    ))
                }
                Err(_) => missing(*if_exists, &name.table),
            },
            Statement::Truncate(name) => {
                let index = self.find(name, default)?;
                self.table_mut(index)?.rows.clear();
                Ok(Change::Truncated)
            }
            _ => Err(invalid("this statement does not change the schema")),
        }
    }
}

fn keyspace_of(name: &Name, default: Option<&str>) -> Result<String, Refusal> {
    let keyspace = name.keyspace.as_deref().or(default);
    keyspace.map(str::to_owned).ok_or_else(|| {
        invalid("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename")
    })
}

fn new_table(
    keyspace: &str,
    name: &str,
    (key, clustering): (&[String], &[String]),
    columns: &[(String, ColumnType)],
) -> Table {
    let spec = |(column, kind): &(String, ColumnType)| ColumnSpec {
        keyspace: keyspace.into(),
        table: name.into(),
        name: column.clone(),
        kind: kind.clone(),
    };
    let mut columns: Vec<ColumnSpec> = columns.iter().map(spec).collect();
    let position = |column: &ColumnSpec| key.iter().chain(clustering).position(|part| *part == column.name);
    columns.sort_by_key(|column| (position(column).unwrap_or(usize::MAX), column.name.clone()));
    Table {
        keyspace: keyspace.into(),
        name: name.into(),
        columns,
        partition: (0..key.len()).collect(),
        clustering: (key.len()..key.len() + clustering.len()).collect(),
        rows: BTreeMap::new(),
    }
}

fn exists(tolerated: bool, keyspace: &str, table: &str) -> Result<Change, Refusal> {
    if tolerated {
        return Ok(Change::Nothing);
    }
    Err(Refusal {
        code: code::ALREADY_EXISTS,
        message: format!("{keyspace} {table} exists already"),
    })
}

fn missing(tolerated: bool, name: &str) -> Result<Change, Refusal> {
    if tolerated {
        Ok(Change::Nothing)
    } else {
        Err(invalid(format!("{name} does not exist")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    fn change(catalog: &mut Catalog, text: &str) -> Result<Change, Refusal> {
        catalog.change(&parse(text).unwrap(), Some("ks"))
    }

    #[test]
    fn schema_comes_and_goes() {
        let mut catalog = Catalog::default();
        let empty = catalog.version();
        assert!(
            change(&mut catalog, "CREATE TABLE t (k text PRIMARY KEY)")
                .is_err_and(|e| e.message.contains("ks does not"))
        );
        change(&mut catalog, "CREATE KEYSPACE ks").unwrap();
        assert_eq!(
            change(&mut catalog, "CREATE TABLE t (b text, k text PRIMARY KEY, a text)"),
            Ok(Change::Schema("CREATED", "ks".into(), Some("t".into())))
        );
        assert_ne!(catalog.version(), empty);
        let index = catalog
            .find(
                &Name {
                    keyspace: None,
                    table: "t".into(),
                },
                Some("ks"),
            )
            .unwrap();
        let names: Vec<_> = catalog
            .table(index)
            .unwrap()
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(names, ["k", "a", "b"]);
        assert_eq!(
            change(&mut catalog, "CREATE TABLE t (k text PRIMARY KEY)")
                .unwrap_err()
                .code,
            code::ALREADY_EXISTS
        );
        assert_eq!(
            change(&mut catalog, "CREATE TABLE IF NOT EXISTS t (k text PRIMARY KEY)"),
            Ok(Change::Nothing)
        );
        change(&mut catalog, "DROP KEYSPACE ks").unwrap();
        assert!(catalog.table(index).is_err());
        assert_eq!(catalog.version(), empty);
        assert_eq!(change(&mut catalog, "DROP TABLE IF EXISTS t"), Ok(Change::Nothing));
        assert!(change(&mut catalog, "DROP TABLE t").is_err());
    }

    #[test]
    fn rows_are_put_got_deleted_and_truncated() {
        let mut catalog = Catalog::default();
        change(&mut catalog, "CREATE KEYSPACE ks").unwrap();
        change(&mut catalog, "CREATE TABLE t (k text PRIMARY KEY, a text, b text)").unwrap();
        let table = catalog.table_mut(0).unwrap();
        let key_of = |table: &Table, key: &'static [u8]| row_key(table, &[Cow::Borrowed(key)]);
        let (x, y) = (key_of(table, b"x"), key_of(table, b"y"));
        table
            .put(x.clone(), [(1, Some(Box::from(*b"one")))].into_iter())
            .unwrap();
        table
            .put(x.clone(), [(2, Some(Box::from(*b"two")))].into_iter())
            .unwrap();
        table.put(y, std::iter::empty()).unwrap();
        assert_eq!(
            table.rows.get(&x),
            Some(&vec![None, Some(Box::from(*b"one")), Some(Box::from(*b"two"))])
        );
        table.delete(&x, 1);
        assert_eq!(table.rows.get(&x), None);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(change(&mut catalog, "TRUNCATE t"), Ok(Change::Truncated));
        assert_eq!(catalog.table(0).unwrap().rows.len(), 0);
    }
}
