//! Dialects: what is requested over HTTP for an operation, and what its answer means.

use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_protocol::Malformed;
use steelyard_workload::operation::Operation;

use crate::answer::Head;
use crate::course::{Course, Scratch};
use crate::documents::Documents;
use crate::etcd::Gateway;
use crate::json::Glance;

/// Most bytes that are kept of the body of an error.
const MAX_SAID_BYTES: usize = 4 << 10;

/// Most bytes of a body that is compared as a whole.
const MAX_COMPARED_BYTES: usize = 256 << 20;

/// What is spoken over HTTP.
pub(crate) enum Dialect {
    Documents(Documents),
    Etcd(Gateway),
}

impl Dialect {
    /// The lines of each request to a node that come last, with the empty one.
    pub fn fields_of_node(&self, contact: &str) -> Vec<u8> {
        let own = match self {
            Self::Documents(documents) => documents.fields(),
            Self::Etcd(_) => "Content-Type: application/json\r\n",
        };
        format!("Host: {contact}\r\nUser-Agent: steelyard\r\n{own}\r\n").into_bytes()
    }

    /// Begins an operation, or a step of it.
    #[inline]
    pub fn begin(&self, operation: &Operation, course: &mut Course) {
        (course.status, course.bytes, course.differs_at, course.rows) = (0, 0, None, 0);
        course.said.clear();
        course.body.clear();
        course.glance = Glance::default();
        course.compares = match self {
            Self::Documents(documents) => documents.compares(operation),
            Self::Etcd(gateway) => gateway.compares(operation),
        };
    }

    /// Appends the request for an operation.
    #[inline]
    pub fn put(&self, operation: &Operation, fields: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) {
        match self {
            Self::Documents(documents) => documents.put(operation, fields, out),
            Self::Etcd(gateway) => gateway.put(operation, fields, scratch, out),
        }
    }

    #[inline]
    pub fn head(&self, course: &mut Course, head: &Head<'_>) {
        course.status = head.status;
        if head.status != 200 {
            course.said.extend_from_slice(head.said);
        }
    }

    /// Takes a piece of the body. Errors: it cannot be part of one.
    #[inline]
    pub fn body(&self, course: &mut Course, piece: &[u8]) -> Result<(), Malformed> {
        match self {
            _ if course.status != 200 => {
                let room = MAX_SAID_BYTES.saturating_sub(course.body.len());
                course.body.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            Self::Documents(documents) => documents.body(course, piece),
            Self::Etcd(_) => {
                course.glance.take(piece)?;
                if course.compares {
                    if course.body.len() + piece.len() > MAX_COMPARED_BYTES {
                        return Err(Malformed("a body of more than 256 MiB"));
                    }
                    course.body.extend_from_slice(piece);
                }
            }
        }
        course.bytes += piece.len() as u64;
        Ok(())
    }

    /// What the whole answer means; the text of an error goes to `samples`. Errors: it is no answer to that request.
    #[inline]
    pub fn end(
        &self,
        operation: &Operation,
        course: &mut Course,
        samples: &mut ErrorSamples,
    ) -> Result<Outcome, Malformed> {
        match self {
            Self::Documents(documents) => Ok(documents.end(operation, course, samples)),
            Self::Etcd(gateway) => gateway.end(operation, course, samples),
        }
    }
}
