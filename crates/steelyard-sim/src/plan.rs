//! Query plans: a statement on a user's table, resolved against the schema once, so that carrying it out is cheap.

use std::borrow::Cow;

use steelyard_cql::{ColumnSpec, ColumnType, put_bytes};
use steelyard_workload::ycsb::null_value;

use crate::catalog::{Catalog, Table};
use crate::refusal::{Refusal, invalid};
use crate::statement::{self, Comparison, Projection, Statement, Term};

/// What a light-weight transaction asks of the row.
#[derive(Clone, Debug)]
pub enum Condition {
    NotExists,
    Exists,
    Holds(Vec<(usize, Term)>),
}

/// What to do with which table. `key` has the primary key's values, in its order.
#[derive(Clone, Debug)]
pub enum Action {
    Put {
        key: Vec<Term>,
        cells: Vec<(usize, Term)>,
        increments: Vec<(usize, Term)>,
        condition: Option<Condition>,
    },
    /// Of one row, or of all whose key begins so.
    Delete {
        key: Vec<Term>,
        condition: Option<Condition>,
    },
    /// Rows of one partition.
    Get {
        key: Vec<Term>,
        bounds: Vec<(usize, Comparison, Term)>,
        limit: Option<Term>,
    },
    /// From the token of `from` on; without it from the beginning.
    Scan {
        from: Option<Term>,
        limit: Option<Term>,
    },
    Count,
}

/// An action and everything that answers need.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Index in the catalogue.
    pub table: usize,
    pub action: Action,
    /// Indices of the columns that are asked for.
    pub selected: Vec<usize>,
    pub columns: Vec<ColumnSpec>,
    pub markers: Vec<ColumnSpec>,
    /// Which markers are the partition key, for drivers that route by token.
    pub key_markers: Vec<u16>,
    pub made_up: MadeUp,
}

/// Cells of a row that was never written.
#[derive(Clone, Debug, Default)]
pub struct MadeUp {
    /// Bytes, then the cell of that column of the key, or what stands for it where it was not asked for.
    before: Vec<(Vec<u8>, usize, Vec<u8>)>,
    behind: Vec<u8>,
}

impl MadeUp {
    fn new(table: &Table, selected: &[usize]) -> Self {
        let mut made_up = Self::default();
        for at in selected {
            let mut cell = Vec::new();
            made_up_cell(&table.columns[*at], &mut cell);
            if *at < table.key_columns() {
                let bytes = std::mem::take(&mut made_up.behind);
                made_up.before.push((bytes, *at, cell));
            } else {
                put_bytes(&mut made_up.behind, &cell);
            }
        }
        made_up
    }

    /// Append the row whose key begins so.
    #[inline]
    pub fn put(&self, key: &[Cow<'_, [u8]>], body: &mut Vec<u8>) {
        for (bytes, column, cell) in &self.before {
            body.extend_from_slice(bytes);
            put_bytes(body, key.get(*column).map_or(cell, |part| part));
        }
        body.extend_from_slice(&self.behind);
    }
}

fn made_up_cell(column: &ColumnSpec, out: &mut Vec<u8>) {
    let zeros = match &column.kind {
        ColumnType::Boolean | ColumnType::TinyInt | ColumnType::VarInt => 1,
        ColumnType::SmallInt => 2,
        ColumnType::Duration => 3,
        ColumnType::Int | ColumnType::Float | ColumnType::Inet => 4,
        // Entries: none.
        ColumnType::List(_) | ColumnType::Set(_) | ColumnType::Map(..) => 4,
        ColumnType::Decimal => 5,
        ColumnType::BigInt | ColumnType::Counter | ColumnType::Double => 8,
        ColumnType::Timestamp | ColumnType::Time => 8,
        ColumnType::Uuid | ColumnType::TimeUuid => 16,
        ColumnType::Date => return out.extend_from_slice(&(1_u32 << 31).to_be_bytes()),
        ColumnType::Tuple(_) | ColumnType::Udt { .. } | ColumnType::Custom(_) => 0,
        ColumnType::Text | ColumnType::Ascii | ColumnType::Blob => {
            // What a load of YCSB's key 0 expects of its fields.
            let field = column.name.strip_prefix("field").and_then(|number| number.parse().ok());
            return out.extend_from_slice(&null_value(field.unwrap_or(0)));
        }
    };
    out.resize(zeros, 0);
}

impl Plan {
    /// Resolve INSERT, UPDATE, DELETE or SELECT.
    pub fn new(statement: &Statement, catalog: &Catalog, keyspace: Option<&str>) -> Result<Self, Refusal> {
        let name = match statement {
            Statement::Put { name, .. } | Statement::Delete { name, .. } | Statement::Select { name, .. } => name,
            _ => return Err(invalid("only INSERT, UPDATE, DELETE and SELECT can be prepared")),
        };
        let index = catalog.find(name, keyspace)?;
        let table = catalog.table(index)?;
        let mut plan = Self {
            table: index,
            action: Action::Count,
            selected: Vec::new(),
            columns: Vec::new(),
            markers: Vec::new(),
            key_markers: Vec::new(),
            made_up: MadeUp::default(),
        };
        let mut bound = Bound::new(table);
        plan.action = match statement {
            Statement::Put { .. } => put(table, statement, &mut bound)?,
            Statement::Delete { key, condition, .. } => Action::Delete {
                key: key_terms(table, key, &mut bound)?,
                condition: resolved(table, condition.as_ref(), &mut bound)?,
            },
            Statement::Select { projection, .. } => {
                plan.project(table, projection)?;
                select(table, statement, &mut bound)?
            }
            _ => Action::Count,
        };
        bound.markers.sort_by_key(|(position, _)| *position);
        plan.markers = bound.markers.into_iter().map(|(_, spec)| spec).collect();
        // Of a key that is not bound as a whole no driver can know the token.
        let key: Option<Vec<u16>> = bound.key.into_iter().collect();
        plan.key_markers = key.unwrap_or_default();
        Ok(plan)
    }

    /// Whether the answer says if it was applied.
    pub fn is_conditional(&self) -> bool {
        matches!(
            &self.action,
            Action::Put { condition: Some(_), .. } | Action::Delete { condition: Some(_), .. }
        )
    }

    fn project(&mut self, table: &Table, projection: &Projection) -> Result<(), Refusal> {
        self.selected = match projection {
            Projection::All => (0..table.columns.len()).collect(),
            Projection::Columns(names) => names.iter().map(|name| table.column(name)).collect::<Result<_, _>>()?,
            Projection::Count => {
                self.columns = vec![spec_of(table, "count", ColumnType::BigInt)];
                return Ok(());
            }
        };
        self.columns = self.selected.iter().map(|at| table.columns[*at].clone()).collect();
        self.made_up = MadeUp::new(table, &self.selected);
        Ok(())
    }
}

/// Bind markers as they are met.
struct Bound {
    markers: Vec<(usize, ColumnSpec)>,
    /// Of each column of the partition key.
    key: Vec<Option<u16>>,
}

impl Bound {
    fn new(table: &Table) -> Self {
        Self {
            markers: Vec::new(),
            key: vec![None; table.partition.len()],
        }
    }

    fn note(&mut self, term: &Term, spec: ColumnSpec) {
        if let Term::Marker(position) = term {
            self.markers.push((*position, spec));
        }
    }

    /// Notes a column's value; the token follows from those of the partition key.
    fn note_column(&mut self, table: &Table, term: &Term, at: usize) {
        self.note(term, table.columns[at].clone());
        if let (Term::Marker(position), Some(entry)) = (term, self.key.get_mut(at)) {
            *entry = u16::try_from(*position).ok();
        }
    }
}

fn put(table: &Table, statement: &Statement, bound: &mut Bound) -> Result<Action, Refusal> {
    let Statement::Put {
        cells,
        increments,
        key,
        condition,
        ..
    } = statement
    else {
        return Ok(Action::Count);
    };
    let mut parts: Vec<(String, Term)> = key.clone();
    let mut others = Vec::with_capacity(cells.len());
    for (name, term) in cells {
        let at = table.column(name)?;
        if at >= table.key_columns() {
            bound.note_column(table, term, at);
            others.push((at, term.clone()));
        } else if key.is_empty() {
            parts.push((name.clone(), term.clone()));
        } else {
            return Err(invalid(format!("PRIMARY KEY part {name} found in SET part")));
        }
    }
    let increments = columns(table, increments, bound)?;
    let key = key_terms(table, &parts, bound)?;
    if key.len() < table.key_columns() {
        return Err(invalid("Some clustering keys are missing"));
    }
    Ok(Action::Put {
        key,
        cells: others,
        increments,
        condition: resolved(table, condition.as_ref(), bound)?,
    })
}

fn columns(table: &Table, cells: &[(String, Term)], bound: &mut Bound) -> Result<Vec<(usize, Term)>, Refusal> {
    cells
        .iter()
        .map(|(name, term)| {
            let at = table.column(name)?;
            bound.note_column(table, term, at);
            Ok((at, term.clone()))
        })
        .collect()
}

fn resolved(
    table: &Table,
    condition: Option<&statement::Condition>,
    bound: &mut Bound,
) -> Result<Option<Condition>, Refusal> {
    Ok(match condition {
        None => None,
        Some(statement::Condition::NotExists) => Some(Condition::NotExists),
        Some(statement::Condition::Exists) => Some(Condition::Exists),
        Some(statement::Condition::Holds(cells)) => Some(Condition::Holds(columns(table, cells, bound)?)),
    })
}

/// Values of the primary key's first columns: of the partition key at least, and without a gap.
fn key_terms(table: &Table, equal: &[(String, Term)], bound: &mut Bound) -> Result<Vec<Term>, Refusal> {
    let mut terms: Vec<Option<Term>> = vec![None; table.key_columns()];
    for (name, term) in equal {
        let at = table.column(name)?;
        let Some(entry) = terms.get_mut(at) else {
            return Err(invalid(format!(
                "the simulated cluster finds rows only by their key, not by {name}"
            )));
        };
        bound.note_column(table, term, at);
        *entry = Some(term.clone());
    }
    let given = terms.iter().flatten().count();
    let terms: Vec<Term> = terms.into_iter().map_while(|term| term).collect();
    if terms.len() < table.partition.len() {
        return Err(invalid("Some partition key parts are missing"));
    }
    if terms.len() < given {
        return Err(invalid("a clustering column before one that is given is missing"));
    }
    Ok(terms)
}

fn select(table: &Table, statement: &Statement, bound: &mut Bound) -> Result<Action, Refusal> {
    let Statement::Select {
        projection,
        equal,
        bounds,
        from_token,
        limit,
        ..
    } = statement
    else {
        return Ok(Action::Count);
    };
    let key = if equal.is_empty() {
        None
    } else {
        Some(key_terms(table, equal, bound)?)
    };
    let mut ends = Vec::new();
    for (name, comparison, term) in bounds {
        let at = table.column(name)?;
        if !table.clustering.contains(&at) {
            return Err(invalid(format!(
                "the simulated cluster supports bounds of clustering columns only, not of {name}"
            )));
        }
        bound.note_column(table, term, at);
        ends.push((at, *comparison, term.clone()));
    }
    if let Some(from) = from_token {
        bound.note(from, table.columns[table.partition[0]].clone());
    }
    if let Some(limit) = limit {
        bound.note(limit, spec_of(table, "[limit]", ColumnType::Int));
    }
    match (key, from_token) {
        (None, None) if *projection == Projection::Count && ends.is_empty() => Ok(Action::Count),
        _ if *projection == Projection::Count => Err(invalid("the simulated cluster counts whole tables only")),
        (Some(key), None) => Ok(Action::Get {
            key,
            bounds: ends,
            limit: limit.clone(),
        }),
        (None, _) if !ends.is_empty() => Err(invalid("bounds need a partition key")),
        (None, from) => Ok(Action::Scan {
            from: from.clone(),
            limit: limit.clone(),
        }),
        (Some(_), Some(_)) => Err(invalid("either a key or a token, not both")),
    }
}

fn spec_of(table: &Table, name: &str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec {
        keyspace: table.keyspace.as_str().into(),
        table: table.name.as_str().into(),
        name: name.into(),
        kind,
    }
}
