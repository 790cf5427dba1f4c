//! Validation of answers: whether a row holds what was written to it.

use steelyard_cql::{Reader, put_bytes};

use super::cql_type::CqlType;
use super::value_source::{Execution, ValueSource};

/// Whether a cell holds the value of `source`; `scratch` is overwritten.
pub(super) fn holds(source: &ValueSource, at: &Execution, cell: Option<&[u8]>, scratch: &mut Vec<u8>) -> bool {
    if source.is_any() {
        return true;
    }
    scratch.clear();
    let not_null = source.put_expected(at, cell, scratch);
    match cell {
        Some(cell) if not_null => scratch.as_slice() == cell || same(&source.cql_type, scratch, cell),
        Some(_) => false,
        // A collection without entries is no cell at all.
        None => !not_null || is_empty(&source.cql_type, scratch),
    }
}

fn is_empty(cql_type: &CqlType, bytes: &[u8]) -> bool {
    let collection = matches!(cql_type, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..));
    collection && bytes.starts_with(&[0; 4])
}

/// Whether two values are the same though their sets and maps may be in other orders.
fn same(cql_type: &CqlType, left: &[u8], right: &[u8]) -> bool {
    if !has_order_of_its_own(cql_type) || left.len() != right.len() {
        return false;
    }
    let (left, right) = (sorted(cql_type, left), sorted(cql_type, right));
    left.is_some() && left == right
}

/// Whether Cassandra may give entries in another order than they were written in.
fn has_order_of_its_own(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Set(_) | CqlType::Map(..) => true,
        _ => cql_type.inner().into_iter().any(has_order_of_its_own),
    }
}

/// The value with the entries of all its sets and maps in the order of their bytes; None if it is no such value.
fn sorted(cql_type: &CqlType, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(bytes);
    let mut out = Vec::with_capacity(bytes.len());
    match cql_type {
        CqlType::List(of) | CqlType::Set(of) => {
            let count = reader.int().ok()?;
            out.extend_from_slice(&count.to_be_bytes());
            let mut entries: Vec<Vec<u8>> = (0..count).map(|_| entry(of, &mut reader)).collect::<Option<_>>()?;
            if matches!(cql_type, CqlType::Set(_)) {
                entries.sort_unstable();
            }
            entries.iter().for_each(|entry| out.extend_from_slice(entry));
        }
        CqlType::Map(key, value) => {
            let count = reader.int().ok()?;
            out.extend_from_slice(&count.to_be_bytes());
            let pair = |_| Some((entry(key, &mut reader)?, entry(value, &mut reader)?));
            let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..count).map(pair).collect::<Option<_>>()?;
            pairs.sort_unstable();
            for (key, value) in pairs {
                out.extend_from_slice(&key);
                out.extend_from_slice(&value);
            }
        }
        CqlType::Tuple(members) => {
            for member in members {
                out.extend_from_slice(&entry(member, &mut reader)?);
            }
        }
        CqlType::Native(_) | CqlType::Vector(..) => return Some(bytes.to_vec()),
    }
    reader.is_empty().then_some(out)
}

/// One value within another, with its length.
fn entry(cql_type: &CqlType, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match reader.bytes().ok()? {
        Some(bytes) => put_bytes(&mut out, &sorted(cql_type, bytes)?),
        None => steelyard_cql::put_null(&mut out),
    }
    Some(out)
}
