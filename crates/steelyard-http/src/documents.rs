//! Documents: requests for them, and whether an answer is what was requested.

use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_wire::{Http, Order, Work};
use steelyard_workload::OrderError;
use steelyard_workload::operation::{Compared, Operation};
use steelyard_workload::requests::letters;

use crate::course::Course;

/// The letters come round after so many bytes; a piece of a body is compared in pieces of that length.
const ROUND: usize = 26 * 2520;

/// The documents of an order.
pub(crate) struct Documents {
    documents: Vec<Document>,
    keep_alive: bool,
    compared: Compared,
    /// One round, and a further one, so that a piece can begin anywhere.
    letters: Vec<u8>,
}

struct Document {
    path: String,
    /// The first line of its request.
    line: Vec<u8>,
    bytes: u64,
}

impl Documents {
    /// Errors: work that is no requests for documents.
    pub fn of(order: &Order, target: Http) -> Result<Self, OrderError> {
        let Work::Requests(requests) = &order.work else {
            let why = "over http only requests for documents are possible: choose kind requests, or another protocol";
            return Err(OrderError::because("work.kind", why));
        };
        let document = |document: &steelyard_wire::Document| Document {
            path: document.path.clone(),
            line: format!("GET {} HTTP/1.1\r\n", document.path).into_bytes(),
            bytes: document.bytes,
        };
        Ok(Self {
            documents: requests.documents.iter().map(document).collect(),
            keep_alive: target.keep_alive,
            compared: Compared::new(order.seed, requests.validate_fraction),
            letters: letters(2 * ROUND),
        })
    }

    /// The path of the first document.
    pub fn first_path(&self) -> &str {
        self.documents.first().map_or("/", |document| &document.path)
    }

    pub fn fields(&self) -> &'static str {
        if self.keep_alive { "" } else { "Connection: close\r\n" }
    }

    #[inline]
    pub fn compares(&self, operation: &Operation) -> bool {
        self.compared.has(operation)
    }

    #[inline]
    pub fn put(&self, operation: &Operation, fields: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.documents[operation.key as usize].line);
        out.extend_from_slice(fields);
    }

    /// Compares a piece of a body, which is counted afterwards.
    #[inline]
    pub fn body(&self, course: &mut Course, piece: &[u8]) {
        if !course.compares || course.differs_at.is_some() {
            return;
        }
        let mut at = course.bytes;
        for piece in piece.chunks(ROUND) {
            let begin = (at % 26) as usize;
            let wanted = &self.letters[begin..begin + piece.len()];
            if piece != wanted {
                let differing = piece.iter().zip(wanted).position(|(byte, wanted)| byte != wanted);
                course.differs_at = differing.map(|place| at + place as u64);
                return;
            }
            at += piece.len() as u64;
        }
    }

    #[inline]
    pub fn end(&self, operation: &Operation, course: &Course, samples: &mut ErrorSamples) -> Outcome {
        let document = &self.documents[operation.key as usize];
        if course.status == 200 && course.bytes == document.bytes && course.differs_at.is_none() {
            return Outcome::Ok;
        }
        let (outcome, text) = refused(document, course);
        if let Some(text) = text {
            samples.add(outcome, &text);
        }
        outcome
    }
}

/// What an answer is that is not the document.
#[cold]
fn refused(document: &Document, course: &Course) -> (Outcome, Option<String>) {
    let outcome = match course.status {
        404 => return (Outcome::NotFound, None),
        429 | 503 => Outcome::Overloaded,
        200 => {
            let Document { path, bytes, .. } = document;
            let text = match course.differs_at {
                _ if course.bytes != *bytes => format!("GET {path}: {} bytes, not {bytes}", course.bytes),
                Some(at) => format!("GET {path}: another byte at {at}"),
                None => String::new(),
            };
            return (Outcome::Invalid, Some(text));
        }
        _ => Outcome::Server,
    };
    (outcome, Some(format!("HTTP {}", String::from_utf8_lossy(&course.said))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(bytes: u64) -> Documents {
        let mut order: Order = serde_json::from_str(include_str!("../../../schema/http-order.example.json")).unwrap();
        if let Work::Requests(requests) = &mut order.work {
            requests.documents[0].bytes = bytes;
        }
        Documents::of(&order, Http { keep_alive: false }).unwrap()
    }

    fn end(documents: &Documents, status: u16, pieces: &[&[u8]]) -> (Outcome, Option<String>) {
        let mut course = Course {
            status,
            compares: true,
            said: b"503 Busy".to_vec(),
            ..Course::default()
        };
        for piece in pieces {
            documents.body(&mut course, piece);
            course.bytes += piece.len() as u64;
        }
        let mut samples = ErrorSamples::default();
        let outcome = documents.end(&Operation::default(), &course, &mut samples);
        let text = samples.by_kind().into_values().flatten().next();
        (outcome, text)
    }

    #[test]
    fn bodies_are_compared_in_whatever_pieces_they_come() {
        let body = letters(300_000);
        let documents = documents(300_000);
        for step in [1, 25, 26, 1_000, ROUND, ROUND + 1, 300_000] {
            let pieces: Vec<&[u8]> = body.chunks(step).collect();
            assert_eq!(end(&documents, 200, &pieces), (Outcome::Ok, None), "{step}");
        }
        for at in [0, 65_519, 65_520, 65_521, 299_999] {
            let mut wrong = body.clone();
            wrong[at] = b'!';
            let (outcome, text) = end(&documents, 200, &wrong.chunks(100_000).collect::<Vec<_>>());
            assert_eq!(outcome, Outcome::Invalid);
            assert_eq!(text, Some(format!("GET /1000.bin: another byte at {at}")));
        }
    }

    #[test]
    fn answers_mean_what_they_say() {
        let documents = documents(3);
        assert_eq!(end(&documents, 200, &[b"abc"]), (Outcome::Ok, None));
        assert_eq!(end(&documents, 404, &[b"no"]), (Outcome::NotFound, None));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            end(&documents, 200, &[b"ab"]),
            (Outcome::Invalid, text("GET /1000.bin: 2 bytes, not 3"))
        );
        assert_eq!(end(&documents, 503, &[]), (Outcome::Overloaded, text("HTTP 503 Busy")));
        for status in [204, 206, 302, 400, 500] {
            assert_eq!(end(&documents, status, &[]).0, Outcome::Server);
        }
    }

    #[test]
    fn the_fraction_of_the_answers_is_compared() {
        let documents = documents(3);
        let compared = (0..10_000).filter(|index| {
            let index = *index;
            documents.compares(&Operation {
                index,
                ..Operation::default()
            })
        });
        assert!(compared.count().abs_diff(5_000) < 200);
    }
}
