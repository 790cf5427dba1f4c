//! `with-variables`: a command with environment variables that stand in no argument and in no file, as passwords must not.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::exit::{Exit, NOT_EXECUTED, REFUSED};

/// Most bytes of the line that holds the variables.
const LONGEST_LINE: usize = 256 << 10;

#[derive(clap::Args)]
pub struct Arguments {
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "ARGV")]
    argv: Vec<OsString>,
}

/// Becomes the command, with the variables of the first line of standard input; the rest of it is the command's. Returns only
/// an error: 2 for a line that is not as it should be, 127 for a command that cannot be executed.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let (program, rest) = arguments.argv.split_first().ok_or("with-variables: no command")?;
    // Not through the buffer of `io::stdin`, which would keep what follows the line.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let variables = first_line(&mut input)?.and_then(|line| parsed(&line)).ok_or_else(|| {
        // Nothing of the line is repeated: it may hold a password.
        let message = "with-variables: standard input does not begin with a line of JSON, {\"NAME\": \"text\"}";
        Exit::boxed(REFUSED, message)
    })?;
    let error = Command::new(program).args(rest).envs(variables).exec();
    let program = program.to_string_lossy();
    Err(Exit::boxed(
        NOT_EXECUTED,
        format!("with-variables: cannot execute {program}: {error}"),
    ))
}

/// The first line without its end, read byte by byte; `None` if it is too long or has no end.
fn first_line(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LONGEST_LINE {
        match input.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) if byte[0] == b'\n' => return Ok(Some(line)),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Names and texts; `None` for anything that no environment can hold.
fn parsed(line: &[u8]) -> Option<BTreeMap<String, String>> {
    let variables: BTreeMap<String, String> = serde_json::from_slice(line).ok()?;
    variables
        .iter()
        .all(|(name, text)| !name.is_empty() && !name.contains(['=', '\0']) && !text.contains('\0'))
        .then_some(variables)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_is_read() {
        let mut input: &[u8] = b"{\"A\": \"1\"}\nthe rest";
        assert_eq!(first_line(&mut input).unwrap().unwrap(), b"{\"A\": \"1\"}");
        assert_eq!(input, b"the rest");
        assert_eq!(first_line(&mut input).unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_not_read_for_ever() {
        assert_eq!(first_line(&mut io::repeat(b'x')).unwrap(), None);
    }

    #[test]
    fn only_what_an_environment_can_hold_is_taken() {
        assert_eq!(parsed(b"{\"A\": \"1\", \"B\": \"\"}").unwrap().len(), 2);
        for line in [
            "",
            "[]",
            "{\"A\": 1}",
            "{\"\": \"1\"}",
            "{\"A=\": \"1\"}",
            "{\"A\": \"\\u0000\"}",
        ] {
            assert_eq!(parsed(line.as_bytes()), None, "{line}");
        }
    }
}
