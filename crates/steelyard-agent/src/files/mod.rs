//! `files`: files of this node for a conductor that does not see them.

mod content;
mod error;
mod place;
mod remove;
mod sum;
mod tree;

use std::error::Error;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print a file's bytes. Exit code 3 if there is no such file.
    Read(content::ReadArguments),
    /// Replace a file by standard input, as a whole; folders above it are created.
    Write(content::WriteArguments),
    /// Print name and bytes of every regular file below a folder: JSON lines, sorted; none if there is no such folder.
    List { folder: PathBuf },
    /// Remove files and trees; those that are missing are fine.
    Remove(remove::Arguments),
    /// Repeat a file or tree elsewhere by hard links, or by copies where links do not work.
    Clone { source: PathBuf, target: PathBuf },
    /// Create folders, with those above them.
    Folders {
        #[arg(required = true)]
        path: Vec<PathBuf>,
    },
    /// Print the texts of small files as one JSON object, without those that cannot be read.
    Texts {
        #[arg(required = true)]
        path: Vec<PathBuf>,
    },
    /// Print the SHA-256 of a file or tree: over its files' SHA-256 and relative names. Exit code 3 if it is missing.
    Sum { path: PathBuf },
    /// Print how much space there is where a path lies, or would lie, and on what kind of file system.
    Space { path: PathBuf },
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let outcome = match &arguments.action {
        Action::Read(arguments) => content::read(arguments),
        Action::Write(arguments) => content::write(arguments),
        Action::List { folder } => tree::list(folder),
        Action::Remove(arguments) => remove::run(arguments),
        Action::Clone { source, target } => tree::clone(source, target),
        Action::Folders { path } => tree::create_folders(path),
        Action::Texts { path } => content::texts(path),
        Action::Sum { path } => sum::run(path),
        Action::Space { path } => place::space(path),
    };
    match outcome {
        // The reader has seen enough.
        Err(error) if error.is_closed_output() => Ok(()),
        outcome => outcome.map_err(error::with_code),
    }
}
