//! Everything that reads bytes of the other side, done with bytes that may be anything. Whoever calls it looks for panics,
//! for endless loops and for memory without bound; the fuzzer does, and the test of mutated frames.

use steelyard_cql::request::{Request, Statement};
use steelyard_cql::response::{Response, Rows, glance};
use steelyard_cql::{Codec, Compression, Frame, HEADER_LENGTH, Header, SPARE_VALUES, Value};

/// Rows that are decoded, of an answer whose values are missing for the most part.
const MOST_SPARSE_ROWS: usize = 16;
/// Frames of one input that are looked at.
const MOST_FRAMES: usize = 64;

/// Reads bytes as a client and as a server would.
pub fn exercise(bytes: &[u8], codecs: &mut [Codec; 2]) {
    let mut at = 0;
    for _ in 0..MOST_FRAMES {
        let Ok(Some(header)) = Frame::header(&bytes[at..]) else {
            return;
        };
        let end = bytes.len().min(at.saturating_add(header.frame_length()));
        let frame = &bytes[at..end];
        read(&header, &frame[HEADER_LENGTH..]);
        codecs.iter_mut().for_each(|codec| unpack_and_pack(codec, frame));
        at = end;
    }
}

/// The two codecs that `exercise` wants; they may be used again and again.
pub fn codecs() -> [Codec; 2] {
    Compression::ALL.map(Codec::new)
}

fn read(header: &Header, body: &[u8]) {
    let _ = glance(header, body);
    match Response::decode(header, body) {
        Ok(Response::Rows(rows)) => read_rows(rows, body.len()),
        Ok(other) => drop(format!("{other:?}")),
        Err(error) => drop(error.to_string()),
    }
    match Request::decode(header, body) {
        Ok(Request::Query { parameters, .. } | Request::Execute { parameters, .. }) => {
            drop(parameters.values.collect::<Vec<_>>());
        }
        Ok(Request::Batch { statements, .. }) => {
            for statement in statements {
                let (Statement::Text { values, .. } | Statement::Prepared { values, .. }) = statement;
                drop(values.collect::<Vec<_>>());
            }
        }
        Ok(other) => drop(format!("{other:?}")),
        Err(error) => drop(error.to_string()),
    }
}

/// All rows and all cells: what an answer announces is no more than its bytes hold.
fn read_rows(rows: Rows<'_>, bytes: usize) {
    let cells = rows.column_count as u64 * u64::from(rows.count);
    assert!(cells * 4 <= bytes as u64, "{cells} cells of {bytes} bytes");
    assert!(rows.count == 0 || cells > 0, "{} rows of nothing", rows.count);
    assert!(rows.columns.len() * 4 <= bytes, "{} columns", rows.columns.len());
    let mut by_cell = rows.clone();
    (0..cells).take_while(|_| by_cell.cell().is_ok()).for_each(drop);
    let (mut by_row, mut sparse) = (rows, 0);
    for _ in 0..by_row.count {
        let Ok(values) = by_row.row() else { return };
        let count: usize = values.iter().map(count_of).sum();
        assert!(count <= bytes + SPARE_VALUES, "{count} values of {bytes} bytes");
        sparse += usize::from(count > bytes);
        if sparse > MOST_SPARSE_ROWS {
            return;
        }
    }
}

fn count_of(value: &Value<'_>) -> usize {
    1 + match value {
        Value::List(items) | Value::Tuple(items) => items.iter().map(count_of).sum(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| count_of(key) + count_of(value)).sum(),
        Value::Udt(fields) => fields.iter().map(|(_, value)| count_of(value)).sum(),
        _ => 0,
    }
}

fn unpack_and_pack(codec: &mut Codec, frame: &[u8]) {
    let mut plain = Vec::new();
    if codec.unpack(frame, &mut plain).is_err() {
        assert!(plain.is_empty(), "something was left behind");
        return;
    }
    if let Ok(Some(header)) = Frame::header(&plain) {
        let end = plain.len().min(header.frame_length());
        read(&header, &plain[HEADER_LENGTH..end]);
        // What is whole comes back as it was.
        if end == plain.len() && end == header.frame_length() {
            let (mut packed, mut again) = (Vec::new(), Vec::new());
            codec.pack(&plain, &mut packed);
            assert!(packed.len() <= plain.len());
            codec
                .unpack(&packed, &mut again)
                .expect("what was packed can be unpacked");
            assert_eq!(again, plain);
        }
    }
}
