//! `cql --every`: the same statements over one connection, a line of JSON at every interval.
//!
//! `{"t_s": 1790000000.0, "answers": [{"columns": ["name", "count"], "rows": [["keys", 12.5]]}, null]}`: an answer for each
//! statement, null for one that the server refuses or whose turn it is not. A connection that was lost gives `{"t_s": ..., "lost": "why"}` until it
//! is there again.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use steelyard_channel::Deadline;
use steelyard_client::blocking_connection::BlockingConnection;
use steelyard_client::error::ConnectionError;
use steelyard_cql::response::Rows;
use steelyard_cql::{Consistency, CqlError, Value};

use crate::cql_json::{Written, to_json};
use crate::ticks::{listened_to, until_next};
use crate::wall_clock::WallClock;

/// Longest text of an answer; longer ones are no answers of tables that are read every second.
const MOST_TEXT_BYTES: usize = 16 << 20;

/// What is read, and how often.
pub(crate) struct Wanted {
    pub clock: WallClock,
    pub interval_s: f64,
    /// Longest time for each answer.
    pub timeout: Duration,
    pub consistency: Consistency,
    /// How many of the last statements are executed in turn, one per interval.
    pub in_turn: usize,
    /// Columns whose increase per second is wanted in their place.
    pub rates: Vec<String>,
    /// Column and beginning of the texts of rows that are left out.
    pub without: Vec<(String, String)>,
}

/// A statement, and what its answer before counted.
struct Asked<'a> {
    statement: &'a str,
    refused: bool,
    before: Option<Counts>,
}

/// When an answer came, and the counting columns of each row.
struct Counts {
    at: Instant,
    rows: HashMap<String, Vec<Option<f64>>>,
}

/// Ends when standard output closes. A count has its first rate with the second answer.
pub(crate) fn run(
    connection: BlockingConnection,
    mut reopen: impl FnMut() -> Result<BlockingConnection, ConnectionError>,
    statements: &[&str],
    wanted: &Wanted,
) -> io::Result<()> {
    let mut asked: Vec<Asked<'_>> = statements
        .iter()
        .map(|statement| Asked {
            statement,
            refused: false,
            before: None,
        })
        .collect();
    let clock = wanted.clock;
    let mut open = Some(connection);
    let mut out = io::stdout().lock();
    let mut line = json!({"t_s": clock.now_s(), "connected": true});
    let mut turn = 0;
    loop {
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        if !listened_to(until_next(clock.now_s(), wanted.interval_s)) {
            return Ok(());
        }
        if open.is_none() {
            open = reopen().ok();
        }
        let t_s = clock.now_s();
        let asked_now = read(&mut open, &mut asked, wanted, turn);
        turn += 1;
        line = match asked_now {
            Ok(answers) => json!({"t_s": t_s, "answers": answers}),
            Err(why) => {
                eprintln!("steelyard-agent: {why}");
                json!({"t_s": t_s, "lost": why})
            }
        };
    }
}

/// An answer to each statement whose turn it is. Errors: there is no connection, or it is lost now.
fn read(
    open: &mut Option<BlockingConnection>,
    asked: &mut [Asked<'_>],
    wanted: &Wanted,
    turn: usize,
) -> Result<Vec<Json>, String> {
    let Some(connection) = open else {
        return Err("no connection".to_owned());
    };
    let always = asked.len().saturating_sub(wanted.in_turn);
    let due = |index: usize| index < always || turn % wanted.in_turn == index - always;
    let answers: Result<Vec<Json>, ConnectionError> = asked
        .iter_mut()
        .enumerate()
        .map(|(index, each)| {
            if due(index) {
                answer(connection, each, wanted)
            } else {
                Ok(Json::Null)
            }
        })
        .collect();
    answers.map_err(|error| {
        // A server that was started anew counts anew.
        *open = None;
        for each in asked {
            each.before = None;
        }
        error.to_string()
    })
}

fn answer(
    connection: &mut BlockingConnection,
    asked: &mut Asked<'_>,
    wanted: &Wanted,
) -> Result<Json, ConnectionError> {
    if asked.refused {
        return Ok(Json::Null);
    }
    let deadline = Deadline::new(connection.contact(), wanted.timeout);
    match connection.query(asked.statement, wanted.consistency) {
        Ok(None) => Ok(Json::Null),
        Ok(Some(rows)) => {
            let (table, counts) = table(rows, asked.before.as_ref(), wanted, &deadline)?;
            asked.before = Some(counts);
            Ok(table)
        }
        Err(ConnectionError::Server { message, .. }) => {
            eprintln!("steelyard-agent: {}: {message}", asked.statement);
            asked.refused = true;
            Ok(Json::Null)
        }
        Err(error) => Err(error),
    }
}

/// Columns and rows as JSON, with rates in the place of counts; and the counts, for the answer after this one.
fn table(
    mut rows: Rows<'_>,
    before: Option<&Counts>,
    wanted: &Wanted,
    deadline: &Deadline,
) -> Result<(Json, Counts), ConnectionError> {
    let names: Vec<String> = rows.columns.iter().map(|column| column.name.clone()).collect();
    let counting: Vec<usize> = (0..names.len())
        .filter(|at| wanted.rates.contains(&names[*at]))
        .collect();
    let without: Vec<(usize, &str)> = wanted
        .without
        .iter()
        .filter_map(|(column, beginning)| Some((names.iter().position(|name| name == column)?, beginning.as_str())))
        .collect();
    let at = Instant::now();
    let mut counts = HashMap::new();
    let mut shown = Vec::new();
    let mut room = Room { left: MOST_TEXT_BYTES };
    for _ in 0..rows.count {
        deadline.left()?;
        let values = rows
            .row()
            .map_err(|source| ConnectionError::broken(deadline.contact(), source))?;
        if without
            .iter()
            .any(|(place, beginning)| begins(&values[*place], beginning))
        {
            continue;
        }
        // What is measured first needs no memory, however long the names of its fields are.
        let fits = values
            .iter()
            .all(|value| serde_json::to_writer(&mut room, &Written(value)).is_ok());
        if !fits {
            return Err(ConnectionError::broken(
                deadline.contact(),
                CqlError::TooMany {
                    what: "bytes of an answer as text",
                    limit: MOST_TEXT_BYTES,
                },
            ));
        }
        let mut cells: Vec<Json> = values.iter().map(to_json).collect();
        if !counting.is_empty() {
            let key = key_of(&values);
            let now: Vec<Option<f64>> = counting.iter().map(|place| number(&values[*place])).collect();
            let earlier = before.and_then(|counts| Some((counts.at, counts.rows.get(&key)?)));
            for (index, place) in counting.iter().enumerate() {
                let rate = earlier
                    .and_then(|(then, row)| per_s(row[index]?, now[index]?, at.duration_since(then).as_secs_f64()));
                cells[*place] = json!(rate);
            }
            counts.insert(key, now);
        }
        shown.push(Json::Array(cells));
    }
    Ok((json!({"columns": names, "rows": shown}), Counts { at, rows: counts }))
}

/// A place for text of which only the length matters.
struct Room {
    left: usize,
}

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn begins(value: &Value<'_>, beginning: &str) -> bool {
    matches!(value, Value::Text(text) if text.starts_with(beginning))
}

/// What tells a row from the others of its table: its texts.
fn key_of(values: &[Value<'_>]) -> String {
    let texts = values.iter().filter_map(|value| match value {
        Value::Text(text) => Some(*text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\0")
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Int(value) => Some(f64::from(*value)),
        #[allow(clippy::cast_precision_loss)] // counts beyond 2^53 do not occur
        Value::BigInt(value) => Some(*value as f64),
        Value::Double(value) => Some(*value),
        _ => None,
    }
}

/// Increase per second; none of a count that began anew.
fn per_s(before: f64, now: f64, seconds: f64) -> Option<f64> {
    (now >= before && seconds > 0.0).then(|| (now - before) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_began_anew_has_no_rate() {
        assert_eq!(per_s(10.0, 25.0, 2.0), Some(7.5));
        assert_eq!(per_s(10.0, 3.0, 2.0), None);
        assert_eq!(per_s(10.0, 25.0, 0.0), None);
    }

    #[test]
    fn rows_are_told_apart_by_their_texts() {
        let row = |keyspace, count| vec![Value::Text(keyspace), Value::BigInt(count), Value::Text("t")];
        assert_eq!(key_of(&row("a", 1)), key_of(&row("a", 2)));
        assert_ne!(key_of(&row("a", 1)), key_of(&row("b", 1)));
        assert!(begins(&row("system_auth", 1)[0], "system") && !begins(&row("mine", 1)[0], "system"));
        assert_eq!(number(&Value::BigInt(7)), Some(7.0));
        assert_eq!(number(&Value::Text("7")), None);
    }
}
