//! The statements of an order: YCSB's, as its CQL binding has them, with named columns.

use steelyard_load::ycsb::{Kind, Operation};
use steelyard_wire::{Action, Order};

/// Texts of the statements that an order needs, and which of them an operation executes.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    pub texts: Vec<String>,
    read: Group,
    update: Group,
    insert: Group,
    scan: Group,
}

/// Where a kind's statements lie: one for all fields, or one for each.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    per_field: bool,
}

impl Statements {
    pub fn new(order: &Order) -> Self {
        let table = format!("{}.{}", identifier(&order.keyspace), identifier(&order.table));
        let key = identifier(&order.key);
        let fields: Vec<String> = order.fields.iter().map(|field| identifier(field)).collect();
        let all = fields.join(", ");
        let markers = vec!["?"; fields.len() + 1].join(", ");
        let (loads, shares) = (order.action == Action::Load, order.workload.proportions);
        let mut texts = Vec::new();
        // Statements that no operation of the order executes are not prepared.
        let mut group = |wanted: bool, whole: bool, all: String, one: &dyn Fn(&String) -> String| {
            let group = Group {
                first: texts.len(),
                per_field: !whole,
            };
            match (wanted, whole) {
                (false, _) => {}
                (true, true) => texts.push(all),
                (true, false) => texts.extend(fields.iter().map(one)),
            }
            group
        };
        let (whole_read, whole_write) = (order.workload.read_all_fields, order.workload.write_all_fields);
        let read_of = |columns: &str| format!("SELECT {columns} FROM {table} WHERE {key} = ?");
        let reads = loads && shares.read + shares.read_modify_write > 0.0;
        let read = group(reads, whole_read, read_of(&all), &|field| read_of(field));
        let update_of = |sets: &str| format!("UPDATE {table} SET {sets} WHERE {key} = ?");
        let all_sets = fields
            .iter()
            .map(|field| format!("{field} = ?"))
            .collect::<Vec<_>>()
            .join(", ");
        let updates = loads && shares.update + shares.read_modify_write > 0.0;
        let update = group(updates, whole_write, update_of(&all_sets), &|field| {
            update_of(&format!("{field} = ?"))
        });
        let inserts = !loads || shares.insert > 0.0;
        let insert_of = format!("INSERT INTO {table} ({key}, {all}) VALUES ({markers})");
        let insert = group(inserts, true, insert_of, &String::clone);
        let scan_of = |columns: &str| format!("SELECT {columns} FROM {table} WHERE token({key}) >= token(?) LIMIT ?");
        let scans = loads && shares.scan > 0.0;
        let scan = group(scans, whole_read, scan_of(&all), &|field| scan_of(field));
        Self {
            texts,
            read,
            update,
            insert,
            scan,
        }
    }

    /// Index of the statement that an operation executes.
    #[inline]
    pub fn of(&self, operation: &Operation) -> usize {
        let group = match operation.kind {
            Kind::Read | Kind::ReadModifyWrite => self.read,
            Kind::Update => self.update,
            Kind::Insert => self.insert,
            Kind::Scan => self.scan,
        };
        if group.per_field {
            group.first + operation.field as usize
        } else {
            group.first
        }
    }
}

/// A name as CQL takes it: as it is where that is safe, else quoted.
fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(change: impl FnOnce(&mut Order)) -> Order {
        let mut order: Order = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
        order.fields.truncate(2);
        change(&mut order);
        order
    }

    fn operation(kind: Kind, field: u32) -> Operation {
        Operation {
            index: 0,
            kind,
            key: 0,
            field,
            scan_length: 0,
        }
    }

    #[test]
    fn only_what_the_order_needs_is_prepared() {
        let statements = Statements::new(&order(|_| {}));
        assert_eq!(
            statements.texts,
            [
                "SELECT field0, field1 FROM ycsb.usertable WHERE y_id = ?",
                "UPDATE ycsb.usertable SET field0 = ? WHERE y_id = ?",
                "UPDATE ycsb.usertable SET field1 = ? WHERE y_id = ?",
            ]
        );
        assert_eq!(statements.of(&operation(Kind::Read, 1)), 0);
        assert_eq!(statements.of(&operation(Kind::Update, 1)), 2);
        let populate = Statements::new(&order(|order| order.action = Action::Populate));
        assert_eq!(
            populate.texts,
            ["INSERT INTO ycsb.usertable (y_id, field0, field1) VALUES (?, ?, ?)"]
        );
        assert_eq!(populate.of(&operation(Kind::Insert, 1)), 0);
    }

    #[test]
    fn single_fields_have_statements_of_their_own() {
        let statements = Statements::new(&order(|order| {
            order.workload.read_all_fields = false;
            order.workload.write_all_fields = true;
            order.workload.proportions.scan = 1.0;
            order.table = "User\"Table".into();
        }));
        let scan = &statements.texts[statements.of(&operation(Kind::Scan, 1))];
        assert_eq!(
            scan,
            "SELECT field1 FROM ycsb.\"User\"\"Table\" WHERE token(y_id) >= token(?) LIMIT ?"
        );
        let update = &statements.texts[statements.of(&operation(Kind::Update, 1))];
        assert_eq!(
            update,
            "UPDATE ycsb.\"User\"\"Table\" SET field0 = ?, field1 = ? WHERE y_id = ?"
        );
    }
}
