//! A statement on a user's table, resolved against the schema once, so that carrying it out is cheap.

use steelyard_cql::{ColumnSpec, ColumnType, put_bytes};

use crate::catalog::{Catalog, Refusal, Table, invalid};
use crate::statement::{Projection, Statement, Term};

/// Length of a made-up text cell: YCSB's default.
const FIELD_BYTES: usize = 100;

/// What to do with which table.
#[derive(Clone, Debug)]
pub enum Action {
    Put {
        key: Term,
        cells: Vec<(usize, Term)>,
    },
    Delete {
        key: Term,
    },
    Get {
        key: Term,
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
    /// Which marker is the key, for drivers that route by token.
    pub key_markers: Vec<u16>,
    pub made_up: MadeUp,
}

/// Cells of a row that was never written: those before the key, and those behind it.
#[derive(Clone, Debug, Default)]
pub struct MadeUp {
    before: Vec<u8>,
    with_key: bool,
    behind: Vec<u8>,
}

impl MadeUp {
    fn new(table: &Table, selected: &[usize]) -> Self {
        let mut made_up = Self::default();
        for at in selected {
            let part = if made_up.with_key {
                &mut made_up.behind
            } else {
                &mut made_up.before
            };
            if *at == table.key && !made_up.with_key {
                made_up.with_key = true;
            } else {
                match table.columns[*at].kind {
                    ColumnType::Int => put_bytes(part, &[0; 4]),
                    ColumnType::BigInt => put_bytes(part, &[0; 8]),
                    _ => put_bytes(part, &[b'x'; FIELD_BYTES]),
                }
            }
        }
        made_up
    }

    /// Append the row of `key`.
    #[inline]
    pub fn put(&self, key: &[u8], body: &mut Vec<u8>) {
        body.extend_from_slice(&self.before);
        if self.with_key {
            put_bytes(body, key);
            body.extend_from_slice(&self.behind);
        }
    }
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
        let mut bound = Bound::default();
        plan.action = match statement {
            Statement::Put { cells, key, .. } => put(table, cells, key.as_ref(), &mut bound)?,
            Statement::Delete { key, .. } => Action::Delete {
                key: key_term(table, key, &mut bound)?,
            },
            Statement::Select {
                projection,
                equal,
                from_token,
                limit,
                ..
            } => {
                plan.project(table, projection)?;
                select(
                    table,
                    projection,
                    equal,
                    from_token.as_ref(),
                    limit.as_ref(),
                    &mut bound,
                )?
            }
            _ => Action::Count,
        };
        bound.markers.sort_by_key(|(position, _)| *position);
        plan.markers = bound.markers.into_iter().map(|(_, spec)| spec).collect();
        plan.key_markers = bound
            .key
            .into_iter()
            .filter_map(|position| u16::try_from(position).ok())
            .collect();
        Ok(plan)
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
#[derive(Default)]
struct Bound {
    markers: Vec<(usize, ColumnSpec)>,
    key: Option<usize>,
}

impl Bound {
    fn note(&mut self, term: &Term, spec: ColumnSpec, is_key: bool) {
        if let Term::Marker(position) = term {
            self.markers.push((*position, spec));
            if is_key {
                self.key = Some(*position);
            }
        }
    }
}

fn put(
    table: &Table,
    cells: &[(String, Term)],
    key: Option<&(String, Term)>,
    bound: &mut Bound,
) -> Result<Action, Refusal> {
    let mut found = key.map(|key| key_term(table, key, bound)).transpose()?;
    let mut others = Vec::with_capacity(cells.len());
    for (name, term) in cells {
        let at = table.column(name)?;
        let is_key = at == table.key;
        bound.note(term, table.columns[at].clone(), is_key);
        if !is_key {
            others.push((at, term.clone()));
        } else if found.replace(term.clone()).is_some() {
            return Err(invalid(format!("PRIMARY KEY part {name} found in SET part")));
        }
    }
    let key = found.ok_or_else(|| invalid("Some partition key parts are missing"))?;
    Ok(Action::Put { key, cells: others })
}

fn key_term(table: &Table, (name, term): &(String, Term), bound: &mut Bound) -> Result<Term, Refusal> {
    let at = table.column(name)?;
    if at != table.key {
        return Err(invalid(format!(
            "the simulated cluster finds rows by their key only, not by {name}"
        )));
    }
    bound.note(term, table.columns[at].clone(), true);
    Ok(term.clone())
}

fn select(
    table: &Table,
    projection: &Projection,
    equal: &[(String, Term)],
    from: Option<&Term>,
    limit: Option<&Term>,
    bound: &mut Bound,
) -> Result<Action, Refusal> {
    let key = match equal {
        [] => None,
        [one] => Some(key_term(table, one, bound)?),
        _ => return Err(invalid("the simulated cluster finds rows by their key only")),
    };
    if let Some(from) = from {
        bound.note(from, table.columns[table.key].clone(), false);
    }
    if let Some(limit) = limit {
        bound.note(limit, spec_of(table, "[limit]", ColumnType::Int), false);
    }
    match (key, from) {
        (None, None) if *projection == Projection::Count => Ok(Action::Count),
        _ if *projection == Projection::Count => Err(invalid("the simulated cluster counts whole tables only")),
        (Some(key), None) => Ok(Action::Get { key }),
        (None, from) => Ok(Action::Scan {
            from: from.cloned(),
            limit: limit.cloned(),
        }),
        (Some(_), Some(_)) => Err(invalid("either a key or a token, not both")),
    }
}

fn spec_of(table: &Table, name: &str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec {
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        name: name.into(),
        kind,
    }
}
