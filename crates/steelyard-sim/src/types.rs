//! Names of the types that columns have.

use steelyard_cql::ColumnType;

const TYPES: [(&str, ColumnType); 21] = [
    ("ascii", ColumnType::Ascii),
    ("bigint", ColumnType::BigInt),
    ("blob", ColumnType::Blob),
    ("boolean", ColumnType::Boolean),
    ("counter", ColumnType::Counter),
    ("date", ColumnType::Date),
    ("decimal", ColumnType::Decimal),
    ("double", ColumnType::Double),
    ("duration", ColumnType::Duration),
    ("float", ColumnType::Float),
    ("inet", ColumnType::Inet),
    ("int", ColumnType::Int),
    ("smallint", ColumnType::SmallInt),
    ("text", ColumnType::Text),
    ("time", ColumnType::Time),
    ("timestamp", ColumnType::Timestamp),
    ("timeuuid", ColumnType::TimeUuid),
    ("tinyint", ColumnType::TinyInt),
    ("uuid", ColumnType::Uuid),
    ("varchar", ColumnType::Text),
    ("varint", ColumnType::VarInt),
];

/// The type of that name. Errors: none that a column can have.
pub fn column_type(name: &str) -> Result<ColumnType, String> {
    let entry = TYPES.into_iter().find(|(other, _)| *other == name);
    entry
        .map(|(_, kind)| kind)
        .ok_or_else(|| format!("the simulated cluster has no columns of type {name}"))
}

/// The name by which system tables call a type.
pub fn type_name(kind: &ColumnType) -> String {
    match kind {
        ColumnType::List(of) => format!("list<{}>", type_name(of)),
        ColumnType::Set(of) => format!("set<{}>", type_name(of)),
        ColumnType::Map(key, value) => format!("map<{}, {}>", type_name(key), type_name(value)),
        ColumnType::Tuple(members) => {
            let members: Vec<String> = members.iter().map(type_name).collect();
            format!("frozen<tuple<{}>>", members.join(", "))
        }
        ColumnType::Custom(class) => class.clone(),
        other => {
            let entry = TYPES.into_iter().find(|(_, kind)| kind == other);
            entry.map_or_else(|| "text".into(), |(name, _)| name.into())
        }
    }
}
