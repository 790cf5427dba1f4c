//! Execution of a query plan, on the rows that a node keeps or without any.

use std::borrow::Cow;
use std::ops::Bound;

use steelyard_cql::request::Parameters;
use steelyard_cql::response::{self, Columns};
use steelyard_cql::{ColumnSpec, ColumnType, Value, code, put_bytes, put_null};
use steelyard_workload::murmur3;

use crate::catalog::{Catalog, Row, RowKey, Table, partition_bytes, row_key, sortable};
use crate::plan::{Action, Condition, Plan};
use crate::refusal::{Refusal, invalid};
use crate::statement::{Comparison, Term};

/// Rows of an answer, and bytes of made-up ones, however large the LIMIT.
const MOST_ROWS_ANSWERED: usize = 100_000;
const MOST_BYTES_MADE_UP: usize = 64 << 20;

type Frame = (u8, i16);
type Values<'a> = [Option<&'a [u8]>];

/// A write, and its answer. Without `remember` it is forgotten, and every condition holds.
pub fn write(
    catalog: &mut Catalog,
    remember: bool,
    plan: &Plan,
    parameters: &Parameters<'_>,
    (version, stream): Frame,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let values: Vec<Option<&[u8]>> = parameters.values.collect();
    let applied = !remember || apply(catalog, plan, &values)?;
    if plan.is_conditional() {
        let columns = [applied_column(catalog.table(plan.table)?)];
        response::rows(out, version, stream, Columns::Named(&columns), 1, |body| {
            Value::Boolean(applied).put(body);
        });
    } else {
        response::void(out, version, stream);
    }
    Ok(())
}

/// The one column that says whether a light-weight transaction was applied.
pub fn applied_column(table: &Table) -> ColumnSpec {
    ColumnSpec {
        keyspace: table.keyspace.as_str().into(),
        table: table.name.as_str().into(),
        name: "[applied]".into(),
        kind: ColumnType::Boolean,
    }
}

/// Changes rows. False: the condition did not hold.
pub fn apply(catalog: &mut Catalog, plan: &Plan, values: &Values<'_>) -> Result<bool, Refusal> {
    let table = catalog.table_mut(plan.table)?;
    let cell = |table: &Table, (column, term): &(usize, Term)| {
        let bytes = value(term, &table.columns[*column].kind, values)?;
        Ok::<_, Refusal>((*column, bytes.map(|bytes| Box::from(&*bytes))))
    };
    match &plan.action {
        Action::Put {
            key,
            cells,
            increments,
            condition,
        } => {
            let key = key_values(table, key, values)?;
            let at = row_key(table, &key);
            if !holds(table.rows.get(&at), condition.as_ref(), |part| cell(table, part))? {
                return Ok(false);
            }
            let mut put: Vec<_> = cells.iter().map(|part| cell(table, part)).collect::<Result<_, _>>()?;
            for part in increments {
                let (column, added) = cell(table, part)?;
                let before = table.rows.get(&at).and_then(|row| row[column].as_deref());
                let sum = number(before).wrapping_add(number(added.as_deref()));
                put.push((column, Some(Box::from(sum.to_be_bytes()))));
            }
            put.extend((0..).zip(key.iter().map(|part| Some(Box::from(&**part)))));
            table.put(at, put.into_iter())?;
            Ok(true)
        }
        Action::Delete { key, condition } => {
            let key = key_values(table, key, values)?;
            let at = row_key(table, &key);
            if !holds(table.rows.get(&at), condition.as_ref(), |part| cell(table, part))? {
                return Ok(false);
            }
            table.delete(&at, key.len());
            Ok(true)
        }
        _ => Err(invalid("only writes can be in a batch")),
    }
}

fn number(bytes: Option<&[u8]>) -> i64 {
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, i64::from_be_bytes)
}

fn holds(
    row: Option<&Row>,
    condition: Option<&Condition>,
    cell: impl Fn(&(usize, Term)) -> Result<(usize, Option<Box<[u8]>>), Refusal>,
) -> Result<bool, Refusal> {
    Ok(match condition {
        None => true,
        Some(Condition::NotExists) => row.is_none(),
        Some(Condition::Exists) => row.is_some(),
        Some(Condition::Holds(parts)) => {
            for part in parts {
                let (column, wanted) = cell(part)?;
                if row.is_none_or(|row| row[column] != wanted) {
                    return Ok(false);
                }
            }
            true
        }
    })
}

/// A read, and its answer.
pub fn read(
    catalog: &Catalog,
    remember: bool,
    plan: &Plan,
    parameters: &Parameters<'_>,
    frame: Frame,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let table = catalog.table(plan.table)?;
    let values: Vec<Option<&[u8]>> = parameters.values.collect();
    let most = |limit: &Option<Term>| match limit {
        Some(limit) => Ok(limit_of(limit, &values)?.min(MOST_ROWS_ANSWERED)),
        None => Ok(MOST_ROWS_ANSWERED),
    };
    let columns = if parameters.skip_metadata {
        Columns::Counted(plan.columns.len())
    } else {
        Columns::Named(&plan.columns)
    };
    let (version, stream) = frame;
    match &plan.action {
        Action::Get { key, bounds, limit } => {
            let key = key_values(table, key, &values)?;
            if !remember {
                // Without bounds of its own nothing says how many rows a partition has.
                response::rows(out, version, stream, columns, 1, |body| plan.made_up.put(&key, body));
                return Ok(());
            }
            let within = within(table, bounds, &values)?;
            let rows = table.partition(&key).filter(|row| within(row)).take(most(limit)?);
            put_page(rows, plan, parameters, columns, frame, out);
        }
        Action::Scan { from, limit } => {
            let from = from
                .as_ref()
                .map(|from| value(from, &table.columns[table.partition[0]].kind, &values).and_then(required))
                .transpose()?;
            if remember {
                let first = from.map_or(Bound::Unbounded, |key| {
                    let key = partition_bytes(std::slice::from_ref(&key));
                    Bound::Included((murmur3::token(&key), Box::default(), Box::default()))
                });
                let rows = table.rows.range::<RowKey, _>((first, Bound::Unbounded));
                put_page(
                    rows.map(|(_, row)| row).take(most(limit)?),
                    plan,
                    parameters,
                    columns,
                    frame,
                    out,
                );
            } else {
                // Without a beginning nothing says how many there should be.
                let count = if from.is_some() { most(limit)? } else { 0 };
                let mut row = Vec::new();
                plan.made_up.put(&[from.unwrap_or_default()], &mut row);
                let count = count.min(MOST_BYTES_MADE_UP / row.len().max(1));
                response::rows(out, version, stream, columns, count_of(count), |body| {
                    (0..count).for_each(|_| body.extend_from_slice(&row));
                });
            }
        }
        _ => {
            let count = Value::BigInt(i64::from(count_of(table.rows.len())));
            response::rows(out, version, stream, columns, 1, |body| count.put(body));
        }
    }
    Ok(())
}

/// The rows of one page; its paging state is how many rows have been given.
fn put_page<'a>(
    rows: impl Iterator<Item = &'a Row>,
    plan: &Plan,
    parameters: &Parameters<'_>,
    columns: Columns<'_>,
    (version, stream): Frame,
    out: &mut Vec<u8>,
) {
    let given = parameters
        .paging_state
        .and_then(|state| state.try_into().ok())
        .map_or(0, u32::from_be_bytes);
    let size = parameters.page_size.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size > 0).unwrap_or(usize::MAX);
    let mut rows = rows.skip(given as usize);
    let page: Vec<&Row> = rows.by_ref().take(size).collect();
    let state = given.saturating_add(count_of(page.len())).to_be_bytes();
    let state = rows.next().map(|_| &state[..]);
    response::page(out, version, stream, columns, count_of(page.len()), state, |body| {
        for row in page {
            for at in &plan.selected {
                match row[*at].as_deref() {
                    Some(cell) => put_bytes(body, cell),
                    None => put_null(body),
                }
            }
        }
    });
}

/// Whether a row lies within the bounds of clustering columns.
fn within<'a>(
    table: &'a Table,
    bounds: &'a [(usize, Comparison, Term)],
    values: &Values<'_>,
) -> Result<impl Fn(&Row) -> bool + 'a, Refusal> {
    let mut ends = Vec::with_capacity(bounds.len());
    for (column, comparison, term) in bounds {
        let kind = &table.columns[*column].kind;
        let end = required(value(term, kind, values)?)?;
        ends.push((*column, *comparison, sortable(kind, &end)));
    }
    Ok(move |row: &Row| {
        ends.iter().all(|(column, comparison, end)| {
            let cell = row[*column].as_deref().unwrap_or_default();
            let order = sortable(&table.columns[*column].kind, cell).cmp(end);
            match comparison {
                Comparison::Less => order.is_lt(),
                Comparison::AtMost => order.is_le(),
                Comparison::AtLeast => order.is_ge(),
                Comparison::Greater => order.is_gt(),
            }
        })
    })
}

/// Values of the key's first columns.
fn key_values<'a>(table: &Table, key: &'a [Term], values: &Values<'a>) -> Result<Vec<Cow<'a, [u8]>>, Refusal> {
    let kinds = table.columns.iter().map(|column| &column.kind);
    key.iter()
        .zip(kinds)
        .map(|(term, kind)| value(term, kind, values).and_then(required))
        .collect()
}

fn required(value: Option<Cow<'_, [u8]>>) -> Result<Cow<'_, [u8]>, Refusal> {
    value.ok_or_else(|| invalid("a key cannot be null"))
}

/// The bytes that a term stands for in a column of type `kind`.
fn value<'a>(term: &'a Term, kind: &ColumnType, values: &Values<'a>) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
    match (term, kind) {
        (Term::Marker(position), _) => Ok(values.get(*position).copied().flatten().map(Cow::Borrowed)),
        (Term::Text(text), ColumnType::Text | ColumnType::Ascii) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
        (Term::Number(number), ColumnType::BigInt | ColumnType::Counter | ColumnType::Timestamp) => {
            Ok(Some(Cow::Owned(number.to_be_bytes().to_vec())))
        }
        (Term::Number(number), ColumnType::Int) => {
            let number = i32::try_from(*number).map_err(|_| invalid(format!("{number} is not an int")))?;
            Ok(Some(Cow::Owned(number.to_be_bytes().to_vec())))
        }
        (term, kind) => Err(invalid(format!("{term:?} does not fit a column of type {kind:?}"))),
    }
}

fn limit_of(term: &Term, values: &Values<'_>) -> Result<usize, Refusal> {
    let bytes = required(value(term, &ColumnType::Int, values)?)?;
    let number = bytes.as_ref().try_into().map(i32::from_be_bytes);
    let number = number
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| invalid("LIMIT must be strictly positive"))?;
    usize::try_from(number).map_err(|_| Refusal {
        code: code::INVALID,
        message: "LIMIT must be strictly positive".into(),
    })
}

fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
