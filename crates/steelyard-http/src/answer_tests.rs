//! Tests of the reader of answers.
#![allow(clippy::unwrap_used)]

use super::*;

/// Status, body and whether the connection is kept, of each answer; and whether the last one ends with the connection.
type Seen = (Vec<(u16, Vec<u8>, bool)>, bool);

/// Reads `answers` as they come, `step` bytes at a time.
fn read(answers: &[u8], step: usize) -> Result<Seen, Malformed> {
    let (mut reader, mut at, mut come) = (Reader::default(), 0, 0);
    let mut seen: Vec<(u16, Vec<u8>, bool)> = Vec::new();
    while come < answers.len() {
        come = answers.len().min(come + step);
        loop {
            let (used, part) = reader.next(&answers[at..come])?;
            at += used;
            match part {
                None => break,
                Some(Part::Head(head)) => seen.push((head.status, Vec::new(), false)),
                Some(Part::Body(bytes)) => seen.last_mut().unwrap().1.extend_from_slice(bytes),
                Some(Part::End) => {
                    seen.last_mut().unwrap().2 = reader.keeps();
                    if at == answers.len() {
                        break;
                    }
                }
            }
        }
    }
    Ok((seen, reader.ends_with_connection()))
}

#[test]
fn answers_end_where_they_end_in_whatever_pieces_they_come() {
    let answers = [
        "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  5 \r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n4;a=b\r\nwiki\r\n005\r\npedia\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.1 204\r\n\r\n",
        "HTTP/1.0 200 OK\nConnection: Keep-Alive\nContent-Length: 1\n\nx",
        "HTTP/1.1 500 Internal Server Error\r\nConnection: foo, Close\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    ]
    .concat();
    let body = |text: &str| text.as_bytes().to_vec();
    let wanted = vec![
        (200, body("hello"), true),
        (404, body(""), true),
        (200, body("wikipedia"), true),
        (204, body(""), true),
        (200, body("x"), true),
        (500, body("no"), false),
        (200, body("until the end"), false),
    ];
    for step in [1, 2, 3, 7, 64, answers.len()] {
        assert_eq!(read(answers.as_bytes(), step), Ok((wanted.clone(), true)), "{step}");
    }
}

#[test]
fn fields_are_found_whatever_their_case() {
    let answer = b"HTTP/1.1 200 OK\r\nX-Server: a\r\nSERVER: nginx/1.22\r\n\r\n";
    let (used, part) = Reader::default().next(answer).unwrap();
    let Some(Part::Head(head)) = part else { panic!() };
    assert_eq!((used, head.said), (answer.len(), b"200 OK".as_slice()));
    assert_eq!(head.field("server"), Some(b"nginx/1.22".as_slice()));
    assert_eq!(head.field("serve"), None);
}

#[test]
fn what_is_no_answer_is_refused() {
    let endless = ["HTTP/1.1 200 OK\r\nX: ", &"x".repeat(MAX_HEAD_BYTES)].concat();
    let trailers = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        &"X: y\r\n".repeat(20_000),
    ]
    .concat();
    let chunked = |rest: &str| ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", rest].concat();
    let cases = [
        "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "HTTP/2 200\r\n\r\n".to_owned(),
        "HTTP/1.1 2000 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 20\r\n\r\n".to_owned(),
        "HTTP/1.1 999 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
        chunked("\r\n"),
        chunked("g\r\n"),
        chunked("1000000000000000\r\n"),
        chunked("1\r\nab\r\n"),
        chunked(&"1".repeat(5_000)),
        "\r\n\r\n".to_owned(),
        endless,
        trailers,
    ];
    for bytes in cases {
        assert!(
            read(bytes.as_bytes(), bytes.len()).is_err(),
            "{}",
            &bytes[..bytes.len().min(60)]
        );
        assert!(read(bytes.as_bytes(), 5).is_err(), "{}", &bytes[..bytes.len().min(60)]);
    }
}
