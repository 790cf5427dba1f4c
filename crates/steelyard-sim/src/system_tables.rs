//! System tables, as drivers query them when they connect: system.local, system.peers, system.peers_v2 and system_schema.*.

use std::net::IpAddr;

use steelyard_cql::{ColumnSpec, ColumnType, Value, response};

use crate::catalog::Catalog;
use crate::queue::Queue;
use crate::refusal::{Refusal, invalid};
use crate::ring::{Member, Ring};
use crate::statement::{Name, Projection, Term};
use crate::types::type_name;

/// Drivers choose their behaviour by this; it says what is imitated.
pub const RELEASE: &str = "4.0.0-steelyard-sim";
/// Columns of the schema's tables that have no rows here; drivers ask for them by name.
const EMPTY_COLUMNS: [&str; 8] = [
    "keyspace_name",
    "table_name",
    "column_name",
    "index_name",
    "trigger_name",
    "view_name",
    "base_table_name",
    "type_name",
];
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// A SELECT from a system table, as it was parsed.
pub struct Question<'a> {
    pub name: &'a Name,
    pub default_keyspace: Option<&'a str>,
    pub projection: &'a Projection,
    pub equal: &'a [(String, Term)],
}

impl Question<'_> {
    fn keyspace(&self) -> &str {
        self.name
            .keyspace
            .as_deref()
            .or(self.default_keyspace)
            .unwrap_or_default()
    }

    /// Whether it is for a table here.
    pub fn is_system(&self) -> bool {
        matches!(
            self.keyspace(),
            "system" | "system_schema" | "system_virtual_schema" | "system_views"
        )
    }
}

/// What the tables are about.
pub struct State<'a> {
    pub ring: &'a Ring,
    pub catalog: &'a Catalog,
    pub queue: Option<&'a Queue>,
    /// Statements that made the schema, with their keyspaces.
    pub schema: &'a [(String, String)],
    pub now_ns: u64,
}

/// One cell: its value as bytes with a length, and the text that WHERE compares with.
struct Cell {
    name: &'static str,
    kind: ColumnType,
    bytes: Vec<u8>,
    comparable: Option<String>,
}

type Row = Vec<Cell>;

/// Answer it. Tables that exist but hold nothing here (types, indexes, views) have no rows.
pub fn select(
    question: &Question<'_>,
    state: &State<'_>,
    (version, stream): (u8, i16),
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let (example, rows) = table(question, state)?;
    let position = |wanted: &String| {
        let position = example.iter().position(|cell| cell.name == wanted);
        position.ok_or_else(|| {
            invalid(format!(
                "Undefined column name {wanted} in the simulated cluster's {}",
                question.name.table
            ))
        })
    };
    let mut rows: Vec<&Row> = rows.iter().collect();
    for (column, term) in question.equal {
        let at = position(column)?;
        let Term::Text(wanted) = term else {
            return Err(invalid("system tables are asked with 'text' only"));
        };
        rows.retain(|row| row[at].comparable.as_ref() == Some(wanted));
    }
    let spec = |name: &str, kind: &ColumnType| ColumnSpec {
        keyspace: question.keyspace().into(),
        table: question.name.table.as_str().into(),
        name: name.into(),
        kind: kind.clone(),
    };
    let selected: Vec<usize> = match question.projection {
        Projection::All => (0..example.len()).collect(),
        Projection::Columns(names) => names.iter().map(position).collect::<Result<_, _>>()?,
        Projection::Count => {
            let columns = [spec("count", &ColumnType::BigInt)];
            let count = Value::BigInt(i64::try_from(rows.len()).unwrap_or(i64::MAX));
            response::rows(out, version, stream, response::Columns::Named(&columns), 1, |body| {
                count.put(body)
            });
            return Ok(());
        }
    };
    let columns: Vec<ColumnSpec> = selected
        .iter()
        .map(|at| spec(example[*at].name, &example[*at].kind))
        .collect();
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    response::rows(
        out,
        version,
        stream,
        response::Columns::Named(&columns),
        count,
        |body| {
            for row in rows {
                selected.iter().for_each(|at| body.extend_from_slice(&row[*at].bytes));
            }
        },
    );
    Ok(())
}

/// A row that names the columns, and the rows.
fn table(question: &Question<'_>, state: &State<'_>) -> Result<(Row, Vec<Row>), Refusal> {
    let (ring, catalog) = (state.ring, state.catalog);
    let schema = catalog.version();
    Ok(match (question.keyspace(), question.name.table.as_str()) {
        ("system", "local") => (local(ring.own(), schema), vec![local(ring.own(), schema)]),
        ("system", "peers") => (
            peer(ring.own(), schema),
            ring.peers().map(|member| peer(member, schema)).collect(),
        ),
        ("system", "peers_v2") => (
            peer_v2(ring.own(), schema),
            ring.peers().map(|member| peer_v2(member, schema)).collect(),
        ),
        ("system_schema", "keyspaces") => {
            let rows = catalog
                .keyspaces
                .iter()
                .map(|keyspace| keyspace_row(&keyspace.name, &keyspace.replication));
            (keyspace_row("", &[]), rows.collect())
        }
        ("system_schema", "tables") => {
            let rows = catalog.tables().map(|table| table_row(&table.keyspace, &table.name));
            (table_row("", ""), rows.collect())
        }
        ("system_schema", "columns") => {
            let rows = catalog.tables().flat_map(|table| {
                table
                    .columns
                    .iter()
                    .enumerate()
                    .map(|(at, column)| column_row(column, table.role(at)))
            });
            (column_row(&nameless(), ("regular", -1)), rows.collect())
        }
        ("system_views", "simulated_load") => {
            let rows = state.queue.map(|queue| load_row(queue, ring, state.now_ns));
            let example = vec![
                bigint("busy_server_ns", 0),
                bigint("operations", 0),
                bigint("bursts", 0),
                int("servers", 0),
                int("nodes", 0),
            ];
            (example, rows.into_iter().collect())
        }
        ("system_views", "simulated_schema") => {
            let row = |(keyspace, statement): &(String, String)| {
                vec![text("keyspace_name", keyspace), text("statement", statement)]
            };
            let rows = state.schema.iter().map(row).collect();
            (row(&(String::new(), String::new())), rows)
        }
        ("system_schema" | "system_virtual_schema", _) => {
            (EMPTY_COLUMNS.iter().map(|name| text(name, "")).collect(), Vec::new())
        }
        (keyspace, table) => return Err(invalid(format!("unconfigured table {keyspace}.{table}"))),
    })
}

fn local(own: &Member, schema: [u8; 16]) -> Row {
    let (ip, port) = (own.address.ip(), own.address.port());
    let mut row = vec![
        text("key", "local"),
        text("bootstrapped", "COMPLETED"),
        inet("broadcast_address", ip),
        int("broadcast_port", port.into()),
        text("cluster_name", "Steelyard's simulated cluster"),
        text("cql_version", "3.4.5"),
        inet("listen_address", ip),
        text("native_protocol_version", "4"),
        text("partitioner", PARTITIONER),
        inet("rpc_address", ip),
        int("rpc_port", port.into()),
    ];
    row.extend(common(own, schema));
    row
}

fn peer(member: &Member, schema: [u8; 16]) -> Row {
    let ip = member.address.ip();
    let mut row = vec![inet("peer", ip), inet("preferred_ip", ip), inet("rpc_address", ip)];
    row.extend(common(member, schema));
    row
}

fn peer_v2(member: &Member, schema: [u8; 16]) -> Row {
    let (ip, port) = (member.address.ip(), member.address.port());
    let mut row = vec![
        inet("peer", ip),
        int("peer_port", port.into()),
        inet("native_address", ip),
        int("native_port", port.into()),
        inet("preferred_ip", ip),
        int("preferred_port", port.into()),
    ];
    row.extend(common(member, schema));
    row
}

/// What all tables of members say.
fn common(member: &Member, schema: [u8; 16]) -> Row {
    let token = member.token.to_string();
    let tokens = Value::List(vec![Value::Text(&token)]);
    vec![
        text("data_center", "datacenter1"),
        cell("host_id", ColumnType::Uuid, &Value::Uuid(member.host_id)),
        text("rack", "rack1"),
        text("release_version", RELEASE),
        cell("schema_version", ColumnType::Uuid, &Value::Uuid(schema)),
        cell("tokens", ColumnType::Set(Box::new(ColumnType::Text)), &tokens),
    ]
}

/// What the node has worked since its start; a cluster's nodes are those of the law.
fn load_row(queue: &Queue, ring: &Ring, now_ns: u64) -> Row {
    vec![
        bigint("busy_server_ns", queue.busy_ns(now_ns)),
        bigint("operations", queue.count()),
        bigint("bursts", queue.bursts()),
        int("servers", i32::try_from(queue.servers()).unwrap_or(i32::MAX)),
        int("nodes", i32::try_from(ring.size()).unwrap_or(i32::MAX)),
    ]
}

fn keyspace_row(name: &str, replication: &[(String, String)]) -> Row {
    let map = replication
        .iter()
        .map(|(key, value)| (Value::Text(key), Value::Text(value)))
        .collect();
    let kind = ColumnType::Map(Box::new(ColumnType::Text), Box::new(ColumnType::Text));
    vec![
        text("keyspace_name", name),
        cell("durable_writes", ColumnType::Boolean, &Value::Boolean(true)),
        cell("replication", kind, &Value::Map(map)),
    ]
}

fn table_row(keyspace: &str, name: &str) -> Row {
    let id = crate::ring::uuid(&format!("{keyspace}.{name}"));
    let flags = Value::List(vec![Value::Text("compound")]);
    vec![
        text("keyspace_name", keyspace),
        text("table_name", name),
        cell("id", ColumnType::Uuid, &Value::Uuid(id)),
        text("comment", ""),
        cell("flags", ColumnType::Set(Box::new(ColumnType::Text)), &flags),
    ]
}

fn column_row(column: &ColumnSpec, (kind, position): (&str, i32)) -> Row {
    vec![
        text("keyspace_name", &column.keyspace),
        text("table_name", &column.table),
        text("column_name", &column.name),
        text("clustering_order", if kind == "clustering" { "asc" } else { "none" }),
        cell(
            "column_name_bytes",
            ColumnType::Blob,
            &Value::Blob(column.name.as_bytes()),
        ),
        text("kind", kind),
        int("position", position),
        text("type", &type_name(&column.kind)),
    ]
}

fn nameless() -> ColumnSpec {
    ColumnSpec {
        keyspace: "".into(),
        table: "".into(),
        name: String::new(),
        kind: ColumnType::Text,
    }
}

fn cell(name: &'static str, kind: ColumnType, value: &Value<'_>) -> Cell {
    let mut bytes = Vec::new();
    value.put(&mut bytes);
    let comparable = match value {
        Value::Text(text) => Some((*text).to_owned()),
        Value::Inet(address) => Some(address.to_string()),
        _ => None,
    };
    Cell {
        name,
        kind,
        bytes,
        comparable,
    }
}

fn text(name: &'static str, value: &str) -> Cell {
    cell(name, ColumnType::Text, &Value::Text(value))
}

fn inet(name: &'static str, address: IpAddr) -> Cell {
    cell(name, ColumnType::Inet, &Value::Inet(address))
}

fn bigint(name: &'static str, value: u64) -> Cell {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    cell(name, ColumnType::BigInt, &Value::BigInt(value))
}

fn int(name: &'static str, value: i32) -> Cell {
    cell(name, ColumnType::Int, &Value::Int(value))
}
