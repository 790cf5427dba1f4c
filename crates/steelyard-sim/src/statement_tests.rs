//! Statements and what they are taken for.

use super::*;

fn name(keyspace: &str, table: &str) -> Name {
    Name {
        keyspace: (!keyspace.is_empty()).then(|| keyspace.into()),
        table: table.into(),
    }
}

#[test]
fn statements_of_the_workload() {
    let insert = parse("INSERT INTO ycsb.usertable (y_id, field0) VALUES (?, ?)").unwrap();
    let cells = vec![("y_id".into(), Term::Marker(0)), ("field0".into(), Term::Marker(1))];
    assert_eq!(
        insert,
        Statement::Put {
            name: name("ycsb", "usertable"),
            cells,
            increments: vec![],
            key: vec![],
            condition: None
        }
    );

    let update = parse("UPDATE usertable SET field0=?, field1 = ? WHERE y_id = ?;").unwrap();
    let cells = vec![("field0".into(), Term::Marker(0)), ("field1".into(), Term::Marker(1))];
    assert_eq!(
        update,
        Statement::Put {
            name: name("", "usertable"),
            cells,
            increments: vec![],
            key: vec![("y_id".into(), Term::Marker(2))],
            condition: None
        }
    );

    let read = parse("SELECT field0, field1 FROM ycsb.usertable WHERE y_id = ? LIMIT 1").unwrap();
    let Statement::Select {
        projection,
        equal,
        limit,
        from_token,
        ..
    } = read
    else {
        panic!("{read:?}")
    };
    assert_eq!(projection, Projection::Columns(vec!["field0".into(), "field1".into()]));
    assert_eq!(
        (equal, limit, from_token),
        (vec![("y_id".into(), Term::Marker(0))], Some(Term::Number(1)), None)
    );

    let scan = parse("SELECT * FROM ycsb.usertable WHERE token(y_id) >= token(?) LIMIT ?").unwrap();
    let Statement::Select { from_token, limit, .. } = scan else {
        panic!("{scan:?}")
    };
    assert_eq!((from_token, limit), (Some(Term::Marker(0)), Some(Term::Marker(1))));

    let delete = parse("DELETE FROM ycsb.usertable WHERE y_id = 'it''s'").unwrap();
    assert_eq!(
        delete,
        Statement::Delete {
            name: name("ycsb", "usertable"),
            key: vec![("y_id".into(), Term::Text("it's".into()))],
            condition: None
        }
    );
}

#[test]
fn schema_statements() {
    let text = "CREATE KEYSPACE IF NOT EXISTS ycsb WITH REPLICATION = {'class': 'SimpleStrategy', 'replication_factor': 3} AND durable_writes = true";
    let replication = vec![
        ("class".into(), "SimpleStrategy".into()),
        ("replication_factor".into(), "3".into()),
    ];
    assert_eq!(
        parse(text),
        Ok(Statement::CreateKeyspace {
            keyspace: "ycsb".into(),
            if_not_exists: true,
            replication
        })
    );

    for text in [
        "CREATE TABLE ycsb.t (k text PRIMARY KEY, v int)",
        "create table ycsb.t (k varchar, v int, primary key (k)) with compression = {'enabled': false}",
        "CREATE TABLE ycsb.t (k text, v int, PRIMARY KEY ((k))) WITH ID = 5a1c395e-b41f-11e5-9f22-ba0be0483c18;",
    ] {
        let columns = vec![("k".into(), ColumnType::Text), ("v".into(), ColumnType::Int)];
        let expected = Statement::CreateTable {
            name: name("ycsb", "t"),
            if_not_exists: false,
            key: vec!["k".into()],
            clustering: vec![],
            columns,
        };
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
    assert_eq!(parse("USE \"Ycsb\""), Ok(Statement::Use("Ycsb".into())));
    assert_eq!(parse("TRUNCATE TABLE a.b"), Ok(Statement::Truncate(name("a", "b"))));
    assert_eq!(parse("truncate b;"), Ok(Statement::Truncate(name("", "b"))));
    assert_eq!(
        parse("DROP KEYSPACE IF EXISTS a"),
        Ok(Statement::DropKeyspace {
            keyspace: "a".into(),
            if_exists: true
        })
    );
    assert_eq!(
        parse("DROP TABLE a.b"),
        Ok(Statement::DropTable {
            name: name("a", "b"),
            if_exists: false
        })
    );
}

#[test]
fn what_is_not_understood_is_said() {
    for (text, part) in [
        ("", "a name expected"),
        ("GRANT ALL", "GRANT"),
        ("SELECT a FROM", "a name expected, not the end"),
        ("SELECT a FROM b WHERE c 5", "\"=\" expected"),
        ("SELECT a FROM b ORDER BY c", "the end expected"),
        ("INSERT INTO a (b, c) VALUES (?)", "2 columns but 1 values"),
        ("CREATE TABLE a (b text)", "PRIMARY KEY"),
        (
            "CREATE TABLE a (b text, PRIMARY KEY (b, c))",
            "the key c is not a column",
        ),
        ("CREATE TABLE a (b list<text, text>)", "type list"),
        ("CREATE TABLE a (b address)", "type address"),
        ("SELECT 'a", "not closed"),
        ("SELECT # FROM a", "unexpected '#'"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}
