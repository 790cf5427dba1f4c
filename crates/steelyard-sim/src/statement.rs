//! Parser of statements: the small part of CQL that clients of the simulated cluster use.

use steelyard_cql::{ColumnType, MAX_DEPTH};

use crate::membership::{Step, Way};
use crate::tokens::{Token, tokens};
use crate::types::column_type;

/// What is behind SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    All,
    Count,
    Columns(Vec<String>),
}

/// A value, or the place of one that is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// Bind marker by position.
    Marker(usize),
    Text(String),
    Number(i64),
}

/// What a light-weight transaction asks of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    NotExists,
    Exists,
    Holds(Vec<(String, Term)>),
}

/// How a clustering column is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    AtMost,
    AtLeast,
    Greater,
}

/// A table's name; the keyspace may be the connection's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub keyspace: Option<String>,
    pub table: String,
}

/// A parsed statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    Use(String),
    CreateKeyspace {
        keyspace: String,
        if_not_exists: bool,
        replication: Vec<(String, String)>,
    },
    CreateTable {
        name: Name,
        if_not_exists: bool,
        /// Columns of the partition key.
        key: Vec<String>,
        clustering: Vec<String>,
        columns: Vec<(String, ColumnType)>,
    },
    DropKeyspace {
        keyspace: String,
        if_exists: bool,
    },
    DropTable {
        name: Name,
        if_exists: bool,
    },
    Truncate(Name),
    /// What a node that joins or leaves says to the members.
    Membership(Step),
    /// The node is to leave the cluster.
    Leave,
    /// INSERT and UPDATE are the same in CQL.
    Put {
        name: Name,
        cells: Vec<(String, Term)>,
        /// What counters grow by.
        increments: Vec<(String, Term)>,
        key: Vec<(String, Term)>,
        condition: Option<Condition>,
    },
    Delete {
        name: Name,
        key: Vec<(String, Term)>,
        condition: Option<Condition>,
    },
    Select {
        name: Name,
        projection: Projection,
        equal: Vec<(String, Term)>,
        /// Bounds of clustering columns.
        bounds: Vec<(String, Comparison, Term)>,
        from_token: Option<Term>,
        limit: Option<Term>,
    },
}

/// Parse one statement. The error says what was expected, and what was read.
pub fn parse(text: &str) -> Result<Statement, String> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        markers: 0,
        depth: 0,
    };
    let verb = parser.word()?;
    match verb.as_str() {
        "use" => Ok(Statement::Use(parser.word()?)),
        "create" => parser.create(),
        "drop" => parser.drop(),
        "truncate" => {
            parser.maybe("table");
            parser.name().map(Statement::Truncate)
        }
        "joining" => parser.begin(Way::Joins),
        "leaving" => parser.begin(Way::Leaves),
        "down" => parser.begin(Way::Down),
        "streaming" => Ok(Statement::Membership(Step::Streams(true))),
        "streamed" => Ok(Statement::Membership(Step::Streams(false))),
        "switch" => {
            parser.expect("in")?;
            let in_us = parser.literal()?;
            let in_us = in_us
                .parse()
                .map_err(|_| format!("expected microseconds, not {in_us}"))?;
            Ok(Statement::Membership(Step::Switch(in_us)))
        }
        "leave" => Ok(Statement::Leave),
        "insert" => parser.insert(),
        "update" => parser.update(),
        "delete" => parser.delete(),
        "select" => parser.select(),
        other => Err(format!("the simulated cluster does not know {}", other.to_uppercase())),
    }
}

/// Whether the statement must be carried out by every node.
pub fn concerns_all_nodes(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateKeyspace { .. }
            | Statement::CreateTable { .. }
            | Statement::DropKeyspace { .. }
            | Statement::DropTable { .. }
            | Statement::Truncate(_)
    )
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    markers: usize,
    /// Column types that are open.
    depth: usize,
}

impl Parser {
    fn create(&mut self) -> Result<Statement, String> {
        if self.maybe("keyspace") || self.maybe("schema") {
            let if_not_exists = self.if_not_exists()?;
            let keyspace = self.word()?;
            let mut replication = Vec::new();
            if self.maybe("with") && self.maybe("replication") {
                self.symbol("=")?;
                self.symbol("{")?;
                replication = self.list("}", |parser| {
                    let name = parser.literal()?;
                    parser.symbol(":")?;
                    Ok((name, parser.literal()?))
                })?;
            }
            return Ok(Statement::CreateKeyspace {
                keyspace,
                if_not_exists,
                replication,
            });
        }
        if !self.maybe("table") && !self.maybe("columnfamily") {
            return Err(format!("CREATE KEYSPACE or CREATE TABLE, not {}", self.read()));
        }
        let if_not_exists = self.if_not_exists()?;
        let name = self.name()?;
        self.symbol("(")?;
        let (mut key, mut clustering) = (Vec::new(), Vec::new());
        let mut columns = Vec::new();
        self.list(")", |parser| {
            let column = parser.word()?;
            if column == "primary" {
                parser.expect("key")?;
                parser.symbol("(")?;
                key = if parser.maybe_symbol("(") {
                    parser.list(")", Self::word)?
                } else {
                    vec![parser.word()?]
                };
                if parser.maybe_symbol(",") {
                    clustering = parser.list(")", Self::word)?;
                    return Ok(());
                }
                return parser.symbol(")");
            }
            columns.push((column.clone(), parser.column_type()?));
            if parser.maybe("primary") {
                parser.expect("key")?;
                key = vec![column];
            }
            Ok(())
        })?;
        // Options (WITH compression, compaction, ...) mean nothing here.
        if key.is_empty() {
            return Err("a table needs a PRIMARY KEY".into());
        }
        for part in key.iter().chain(&clustering) {
            if !columns.iter().any(|(column, _)| column == part) {
                return Err(format!("the key {part} is not a column"));
            }
        }
        Ok(Statement::CreateTable {
            name,
            if_not_exists,
            key,
            clustering,
            columns,
        })
    }

    fn drop(&mut self) -> Result<Statement, String> {
        let keyspace = self.maybe("keyspace");
        if !keyspace {
            self.expect("table")?;
        }
        let if_exists = self.maybe("if") && self.maybe("exists");
        Ok(if keyspace {
            Statement::DropKeyspace {
                keyspace: self.word()?,
                if_exists,
            }
        } else {
            Statement::DropTable {
                name: self.name()?,
                if_exists,
            }
        })
    }

    fn insert(&mut self) -> Result<Statement, String> {
        self.expect("into")?;
        let name = self.name()?;
        self.symbol("(")?;
        let columns = self.list(")", Self::word)?;
        self.expect("values")?;
        self.symbol("(")?;
        let values = self.list(")", Self::term)?;
        if columns.len() != values.len() {
            return Err(format!("{} columns but {} values", columns.len(), values.len()));
        }
        let condition = self.if_not_exists()?.then_some(Condition::NotExists);
        self.end()?;
        Ok(Statement::Put {
            name,
            cells: columns.into_iter().zip(values).collect(),
            increments: Vec::new(),
            key: Vec::new(),
            condition,
        })
    }

    fn update(&mut self) -> Result<Statement, String> {
        let name = self.name()?;
        self.expect("set")?;
        let (mut cells, mut increments) = (Vec::new(), Vec::new());
        loop {
            let column = self.word()?;
            self.symbol("=")?;
            if self.maybe(&column) {
                self.symbol("+")?;
                increments.push((column, self.term()?));
            } else {
                cells.push((column, self.term()?));
            }
            if !self.maybe_symbol(",") {
                break;
            }
        }
        self.expect("where")?;
        let key = self.equalities()?;
        let condition = self.condition()?;
        self.end()?;
        Ok(Statement::Put {
            name,
            cells,
            increments,
            key,
            condition,
        })
    }

    fn delete(&mut self) -> Result<Statement, String> {
        self.expect("from")?;
        let name = self.name()?;
        self.expect("where")?;
        let key = self.equalities()?;
        let condition = self.condition()?;
        self.end()?;
        Ok(Statement::Delete { name, key, condition })
    }

    fn condition(&mut self) -> Result<Option<Condition>, String> {
        Ok(match self.maybe("if") {
            false => None,
            true if self.maybe("exists") => Some(Condition::Exists),
            true => Some(Condition::Holds(self.equalities()?)),
        })
    }

    fn equalities(&mut self) -> Result<Vec<(String, Term)>, String> {
        let mut all = vec![self.equality()?];
        while self.maybe("and") {
            all.push(self.equality()?);
        }
        Ok(all)
    }

    fn select(&mut self) -> Result<Statement, String> {
        self.maybe("json");
        let projection = self.projection()?;
        let name = self.name()?;
        let (mut equal, mut bounds, mut from_token, mut limit) = (Vec::new(), Vec::new(), None, None);
        if self.maybe("where") {
            loop {
                if self.maybe("token") {
                    self.symbol("(")?;
                    self.word()?;
                    self.symbol(")")?;
                    self.symbol(">=")?;
                    self.expect("token")?;
                    self.symbol("(")?;
                    from_token = Some(self.term()?);
                    self.symbol(")")?;
                } else {
                    let column = self.word()?;
                    match self.comparison()? {
                        None => equal.push((column, self.term()?)),
                        Some(comparison) => bounds.push((column, comparison, self.term()?)),
                    }
                }
                if !self.maybe("and") {
                    break;
                }
            }
        }
        if self.maybe("limit") {
            limit = Some(self.term()?);
        }
        if self.maybe("allow") {
            self.expect("filtering")?;
        }
        self.end()?;
        Ok(Statement::Select {
            name,
            projection,
            equal,
            bounds,
            from_token,
            limit,
        })
    }

    /// None: equality.
    fn comparison(&mut self) -> Result<Option<Comparison>, String> {
        for (symbol, comparison) in [
            ("<", Comparison::Less),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            (">", Comparison::Greater),
        ] {
            if self.maybe_symbol(symbol) {
                return Ok(Some(comparison));
            }
        }
        self.symbol("=").map(|()| None)
    }

    fn column_type(&mut self) -> Result<ColumnType, String> {
        let name = self.word()?;
        if !self.maybe_symbol("<") {
            return column_type(&name);
        }
        if name == "vector" {
            let of = self.word()?;
            self.symbol(",")?;
            let dimensions = self.literal()?;
            self.symbol(">")?;
            return Ok(ColumnType::Custom(format!(
                "org.apache.cassandra.db.marshal.VectorType({of},{dimensions})"
            )));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("types are nested more than {MAX_DEPTH} deep"));
        }
        let members = self.list(">", Self::column_type)?;
        self.depth -= 1;
        let mut members = members.into_iter();
        let (first, second, more) = (members.next(), members.next(), members.len() > 0);
        match (name.as_str(), first, second) {
            ("frozen", Some(of), None) => Ok(of),
            ("list", Some(of), None) => Ok(ColumnType::List(Box::new(of))),
            ("set", Some(of), None) => Ok(ColumnType::Set(Box::new(of))),
            ("map", Some(key), Some(value)) if !more => Ok(ColumnType::Map(Box::new(key), Box::new(value))),
            ("tuple", Some(first), second) => Ok(ColumnType::Tuple(
                std::iter::once(first).chain(second).chain(members).collect(),
            )),
            _ => Err(format!("the simulated cluster has no columns of type {name}")),
        }
    }

    fn projection(&mut self) -> Result<Projection, String> {
        if self.maybe_symbol("*") {
            self.expect("from")?;
            return Ok(Projection::All);
        }
        let first = self.word()?;
        if first == "count" && self.maybe_symbol("(") {
            while !self.maybe_symbol(")") {
                self.next().ok_or("COUNT(...) is not closed")?;
            }
            self.expect("from")?;
            return Ok(Projection::Count);
        }
        let mut columns = vec![first];
        while self.maybe_symbol(",") {
            columns.push(self.word()?);
        }
        self.expect("from")?;
        Ok(Projection::Columns(columns))
    }

    fn equality(&mut self) -> Result<(String, Term), String> {
        let column = self.word()?;
        self.symbol("=")?;
        Ok((column, self.term()?))
    }

    fn term(&mut self) -> Result<Term, String> {
        if self.maybe_symbol("?") {
            self.markers += 1;
            return Ok(Term::Marker(self.markers - 1));
        }
        let negative = self.maybe_symbol("-");
        match self.next() {
            Some(Token::Number(number)) => Ok(Term::Number(if negative { -number } else { number })),
            Some(Token::Text(text)) if !negative => Ok(Term::Text(text)),
            _ => Err(format!("expected ?, a number or 'text', not {}", self.back())),
        }
    }

    fn name(&mut self) -> Result<Name, String> {
        let first = self.word()?;
        if self.maybe_symbol(".") {
            return Ok(Name {
                keyspace: Some(first),
                table: self.word()?,
            });
        }
        Ok(Name {
            keyspace: None,
            table: first,
        })
    }

    /// Items between commas up to the closing symbol.
    fn list<T>(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = vec![item(self)?];
        while self.maybe_symbol(",") {
            items.push(item(self)?);
        }
        self.symbol(close)?;
        Ok(items)
    }

    fn literal(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Text(text)) => Ok(text),
            Some(Token::Number(number)) => Ok(number.to_string()),
            _ => Err(format!("expected a literal, not {}", self.back())),
        }
    }

    fn begin(&mut self, way: Way) -> Result<Statement, String> {
        let text = self.literal()?;
        let address = text
            .parse()
            .map_err(|_| format!("expected 'ADDRESS:PORT', not {text:?}"))?;
        Ok(Statement::Membership(Step::Begin(way, address)))
    }

    fn if_not_exists(&mut self) -> Result<bool, String> {
        if !self.maybe("if") {
            return Ok(false);
        }
        self.expect("not")?;
        self.expect("exists")?;
        Ok(true)
    }

    fn end(&mut self) -> Result<(), String> {
        while self.maybe_symbol(";") {}
        if self.at == self.tokens.len() {
            Ok(())
        } else {
            Err(format!("expected the end, not {}", self.read()))
        }
    }

    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn read(&self) -> String {
        self.tokens
            .get(self.at)
            .map_or_else(|| "the end".into(), |token| format!("{token:?}"))
    }

    fn back(&mut self) -> String {
        self.at -= 1;
        self.read()
    }

    fn word(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(format!("expected a name, not {}", self.back())),
        }
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let there = self.tokens.get(self.at) == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn maybe(&mut self, word: &str) -> bool {
        self.take(&Token::Word(word.into()))
    }

    fn maybe_symbol(&mut self, symbol: &'static str) -> bool {
        self.take(&Token::Symbol(symbol))
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.maybe(word) {
            Ok(())
        } else {
            Err(format!("expected {}, not {}", word.to_uppercase(), self.read()))
        }
    }

    fn symbol(&mut self, symbol: &'static str) -> Result<(), String> {
        if self.maybe_symbol(symbol) {
            Ok(())
        } else {
            Err(format!("expected {symbol:?}, not {}", self.read()))
        }
    }
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
