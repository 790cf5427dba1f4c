//! YCSB's statements, as its CQL binding has them, with named columns.

use std::sync::Arc;

use steelyard_wire::{Action, Cql, Order, Ycsb};

use super::requests::{Request, Statement};
use super::value_source::ValueSource;
use steelyard_workload::ycsb::{Kind, identifier};

/// The statements that an order's operations execute, and the requests of each kind's steps.
pub(super) fn requests(order: &Order, target: &Cql, workload: &Ycsb) -> (Vec<Statement>, Vec<Vec<Request>>) {
    let mut builder = StatementBuilder::new(order, target, workload);
    let (loads, shares) = (order.action == Action::Load, workload.proportions);
    let read = builder.reads(loads && (order.read_again_s.is_some() || shares.read + shares.read_modify_write > 0.0));
    let update = builder.updates(loads && shares.update + shares.read_modify_write > 0.0);
    let insert = builder.insert(!loads || shares.insert > 0.0);
    let scan = builder.scans(loads && shares.scan > 0.0);
    let kinds = Kind::ALL.map(|kind| match kind {
        Kind::Read => vec![read.clone()],
        Kind::Update => vec![update.clone()],
        Kind::Insert => vec![insert.clone()],
        Kind::Scan => vec![scan.clone()],
        Kind::ReadModifyWrite => vec![read.clone(), update.clone()],
    });
    (builder.statements, kinds.to_vec())
}

struct StatementBuilder<'a> {
    workload: &'a Ycsb,
    ycsb: Arc<Ycsb>,
    seed: u64,
    /// Whether rows that were read are looked at.
    compares: bool,
    table: String,
    key: String,
    fields: Vec<String>,
    statements: Vec<Statement>,
}

impl<'a> StatementBuilder<'a> {
    fn new(order: &Order, target: &Cql, workload: &'a Ycsb) -> Self {
        Self {
            workload,
            ycsb: Arc::new(workload.clone()),
            seed: order.seed,
            compares: order.read_again_s.is_some() || workload.validate_fraction > 0.0,
            table: format!("{}.{}", identifier(&target.keyspace), identifier(&target.table)),
            key: identifier(&target.key),
            fields: workload.fields.iter().map(|field| identifier(field)).collect(),
            statements: Vec::new(),
        }
    }

    fn reads(&mut self, wanted: bool) -> Request {
        let (table, key) = (self.table.clone(), self.key.clone());
        self.group(wanted, self.workload.read_all_fields, |builder, columns, numbers| {
            let cql = format!("SELECT {} FROM {table} WHERE {key} = ?", columns.join(", "));
            let mut statement = builder.statement(Kind::Read, cql, vec![ValueSource::ycsb_key(&builder.ycsb)], 0);
            statement.wants_row = true;
            statement.expect = builder.expected(numbers);
            statement
        })
    }

    fn updates(&mut self, wanted: bool) -> Request {
        let (table, key) = (self.table.clone(), self.key.clone());
        self.group(wanted, self.workload.write_all_fields, |builder, columns, numbers| {
            let sets: Vec<String> = columns.iter().map(|field| format!("{field} = ?")).collect();
            let cql = format!("UPDATE {table} SET {} WHERE {key} = ?", sets.join(", "));
            let mut values = builder.values(numbers);
            values.push(ValueSource::ycsb_key(&builder.ycsb));
            let at = values.len() as u16 - 1;
            builder.statement(Kind::Update, cql, values, at)
        })
    }

    fn insert(&mut self, wanted: bool) -> Request {
        let (table, key) = (self.table.clone(), self.key.clone());
        self.group(wanted, true, |builder, columns, numbers| {
            let markers = vec!["?"; columns.len() + 1].join(", ");
            let cql = format!("INSERT INTO {table} ({key}, {}) VALUES ({markers})", columns.join(", "));
            let mut values = vec![ValueSource::ycsb_key(&builder.ycsb)];
            values.extend(builder.values(numbers));
            builder.statement(Kind::Insert, cql, values, 0)
        })
    }

    fn scans(&mut self, wanted: bool) -> Request {
        let (table, key) = (self.table.clone(), self.key.clone());
        self.group(wanted, self.workload.read_all_fields, |builder, columns, numbers| {
            let columns = columns.join(", ");
            let cql = format!("SELECT {columns} FROM {table} WHERE token({key}) >= token(?) LIMIT ?");
            let values = vec![ValueSource::ycsb_key(&builder.ycsb), ValueSource::ycsb_scan_length()];
            let mut statement = builder.statement(Kind::Scan, cql, values, 0);
            statement.expect = builder.expected(numbers);
            statement
        })
    }

    /// One statement for all fields, or one for each. What no operation of the order executes is not prepared.
    fn group(
        &mut self,
        wanted: bool,
        whole: bool,
        make: impl Fn(&Self, &[String], std::ops::Range<u32>) -> Statement,
    ) -> Request {
        let first = self.statements.len();
        let count = self.fields.len();
        let parts = if whole { 1 } else { count };
        if wanted {
            for part in 0..parts {
                let fields = if whole { 0..count } else { part..part + 1 };
                let numbers = fields.start as u32..fields.end as u32;
                let statement = make(self, &self.fields[fields], numbers);
                self.statements.push(statement);
            }
        }
        Request::Execute {
            statement: first,
            per_field: !whole,
        }
    }

    fn values(&self, fields: std::ops::Range<u32>) -> Vec<ValueSource> {
        fields
            .map(|field| ValueSource::ycsb_field(&self.ycsb, self.seed, field))
            .collect()
    }

    /// Of the first row: a scan's is that of its key.
    fn expected(&self, fields: std::ops::Range<u32>) -> Vec<ValueSource> {
        if self.compares { self.values(fields) } else { Vec::new() }
    }

    fn statement(&self, kind: Kind, cql: String, values: Vec<ValueSource>, key: u16) -> Statement {
        Statement::plain(
            kind.name(),
            cql,
            values,
            key,
            matches!(kind, Kind::Update | Kind::Insert),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Requests;
    use steelyard_workload::operation::Operation;

    fn requests(change: impl FnOnce(&mut Order)) -> Requests {
        let mut order: Order = serde_json::from_str(include_str!("../../../../schema/order.example.json")).unwrap();
        order.work.ycsb_mut().unwrap().fields.truncate(2);
        change(&mut order);
        Requests::of(&order).unwrap()
    }

    fn texts(requests: &Requests) -> Vec<&str> {
        requests
            .statements
            .iter()
            .map(|statement| statement.cql.as_str())
            .collect()
    }

    fn first(requests: &Requests, kind: Kind, field: u32) -> usize {
        let operation = Operation {
            kind: kind as u16,
            field,
            ..Operation::default()
        };
        requests.first(requests.request(requests.request_number(&operation)), &operation)
    }

    #[test]
    fn only_what_the_order_needs_is_prepared() {
        let load = requests(|_| {});
        assert_eq!(
            texts(&load),
            [
                "SELECT field0, field1 FROM ycsb.usertable WHERE y_id = ?",
                "UPDATE ycsb.usertable SET field0 = ? WHERE y_id = ?",
                "UPDATE ycsb.usertable SET field1 = ? WHERE y_id = ?",
            ]
        );
        assert_eq!(first(&load, Kind::Read, 1), 0);
        assert_eq!(first(&load, Kind::Update, 1), 2);
        let populate = requests(|order| order.action = Action::Populate);
        assert_eq!(
            texts(&populate),
            ["INSERT INTO ycsb.usertable (y_id, field0, field1) VALUES (?, ?, ?)"]
        );
        assert_eq!(first(&populate, Kind::Insert, 1), 0);
    }

    #[test]
    fn single_fields_have_statements_of_their_own() {
        let compiled = requests(|order| {
            let ycsb = order.work.ycsb_mut().unwrap();
            (ycsb.read_all_fields, ycsb.write_all_fields) = (false, true);
            ycsb.proportions.scan = 1.0;
            order.target.cql_mut().unwrap().table = "User\"Table".into();
        });
        assert_eq!(
            texts(&compiled)[first(&compiled, Kind::Scan, 1)],
            "SELECT field1 FROM ycsb.\"User\"\"Table\" WHERE token(y_id) >= token(?) LIMIT ?"
        );
        assert_eq!(
            texts(&compiled)[first(&compiled, Kind::Update, 1)],
            "UPDATE ycsb.\"User\"\"Table\" SET field0 = ?, field1 = ? WHERE y_id = ?"
        );
    }

    #[test]
    fn rows_are_compared_by_what_their_values_say() {
        let compiled = |seed| {
            requests(|order| {
                order.seed = seed;
                let ycsb = order.work.ycsb_mut().unwrap();
                (ycsb.validate_fraction, ycsb.proportions.scan) = (1.0, 0.1);
            })
        };
        let (writer, reader) = (compiled(1), compiled(2));
        let at = |key| Operation {
            index: 99,
            key,
            ..Operation::default()
        };
        let mut cell = Vec::new();
        writer.statements[first(&writer, Kind::Update, 1)].values[0].put(&writer.at(&at(3)), &mut cell);
        for kind in [Kind::Read, Kind::Scan] {
            let statement = &reader.statements[first(&reader, kind, 0)];
            let holds =
                |key, column, cell: Option<&[u8]>| statement.holds(&reader.at(&at(key)), column, cell, &mut Vec::new());
            assert!(statement.compared() == 2 && holds(3, 1, Some(&cell)));
            assert!(!holds(3, 0, Some(&cell)) && !holds(4, 1, Some(&cell)));
            // Only what the fill has written must be whole.
            assert!(!holds(3, 1, None) && holds(10_000, 1, None));
            for byte in 0..cell.len() {
                let mut wrong = cell.clone();
                wrong[byte] ^= 1;
                assert!(!holds(3, 1, Some(&wrong)), "{byte}");
            }
        }
        let scan = |key| Operation {
            scan_length: 5,
            ..at(key)
        };
        assert!(reader.is_compared(&at(10_000)) && reader.is_compared(&scan(3)) && !reader.is_compared(&scan(10_000)));
        assert!(!requests(|_| {}).is_compared(&at(3)));
    }

    #[test]
    fn values_are_ycsbs() {
        let compiled = requests(|order| {
            order.action = Action::Populate;
            order.work.ycsb_mut().unwrap().field_length = 7;
        });
        let at = compiled.at(&Operation {
            key: 3,
            ..Operation::default()
        });
        let mut bytes = Vec::new();
        compiled.statements[0]
            .values
            .iter()
            .for_each(|value| value.put_value(&at, &mut bytes));
        assert!(bytes[4..].starts_with(b"user"));
        let name = bytes[3] as usize;
        assert_eq!(bytes.len(), 4 + name + 2 * (4 + 7));
        assert_ne!(bytes[4 + name..][..11], bytes[4 + name + 11..]);
    }
}
