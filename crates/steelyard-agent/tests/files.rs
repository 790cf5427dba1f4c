//! `files`: what a conductor does with files that it does not see.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value as Json, json};

use crate::scratch::{Scratch, agent, lines, run, text};

/// Runs `files` to its end.
fn files(arguments: &[&str]) -> Output {
    run(&[&["files"][..], arguments].concat())
}

fn write(input: &[u8], arguments: &[&str]) -> Output {
    let mut child = agent()
        .args(["files", "write"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn refused(output: &Output, reason: &str) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains(reason), "{output:?}");
}

#[test]
fn parts_of_a_file_are_read() {
    let scratch = Scratch::new();
    let path = scratch.file("log", "0123456789");
    for (more, expected) in [
        (vec![], "0123456789"),
        (vec!["--from", "4"], "456789"),
        (vec!["--from", "4", "--most", "2"], "89"),
        (vec!["--most", "3"], "789"),
        (vec!["--from", "99"], ""),
    ] {
        let output = files(&[&["read", path.as_str()][..], &more].concat());
        assert!(output.status.success());
        assert_eq!(text(&output.stdout), expected, "{more:?}");
    }
    // Its length is 0, as of every file there.
    let version = files(&["read", "/proc/version", "--most", "2000"]);
    assert_eq!(version.stdout, fs::read("/proc/version").unwrap());
    for missing in [scratch.path("gone"), format!("{path}/x")] {
        let output = files(&["read", &missing]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{output:?}");
    }
    refused(&files(&["read", &scratch.path("")]), "not a regular file");
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let scratch = Scratch::new();
    let path = scratch.path("some/deep/file");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    assert!(write(b"first\0", &[&path, "--mode", "600"]).status.success());
    assert_eq!((scratch.read("some/deep/file").as_str(), mode()), ("first\0", 0o600));
    let former = fs::File::open(&path).unwrap();
    assert!(
        write(b"second", &[&path, "--mode", "755", "--bytes", "6"])
            .status
            .success()
    );
    assert_eq!((scratch.read("some/deep/file").as_str(), mode()), ("second", 0o755));
    assert_eq!(
        former.metadata().unwrap().len(),
        6,
        "who has it open still reads the former one"
    );
    // A connection that breaks looks like an end of the input.
    let cut = write(b"thi", &[&path, "--bytes", "5"]);
    assert_eq!(cut.status.code(), Some(1));
    assert!(text(&cut.stderr).contains("3 bytes, not the 5"), "{cut:?}");
    assert_eq!(scratch.read("some/deep/file"), "second");
    let names = fs::read_dir(scratch.path("some/deep")).unwrap().count();
    assert_eq!(names, 1, "nothing is left over");
    refused(&write(b"", &[&path, "--mode", "rw"]), "octal");
}

#[test]
fn regular_files_are_listed_by_name() {
    let scratch = Scratch::new();
    scratch.file("b", "12");
    scratch.file("a/c", "1");
    scratch.file("a/b/\u{e9}", "");
    symlink("/etc", scratch.path("etc")).unwrap();
    symlink("b", scratch.path("link")).unwrap();
    let output = files(&["list", &scratch.path("")]);
    let expected = [("a/b/\u{e9}", 0), ("a/c", 1), ("b", 2)].map(|(name, bytes)| json!({"name": name, "bytes": bytes}));
    assert_eq!(lines(&output), expected);
    let missing = files(&["list", &scratch.path("gone")]);
    assert!(missing.status.success() && missing.stdout.is_empty(), "{missing:?}");
}

#[test]
fn only_what_is_below_the_root_is_removed() {
    let scratch = Scratch::new();
    scratch.file("root/tree/file", "");
    scratch.file("root/file", "");
    scratch.file("outside/keep", "");
    symlink(scratch.path("outside"), scratch.path("root/way-out")).unwrap();
    symlink(scratch.path("outside"), scratch.path("root/tree/link")).unwrap();
    let root = scratch.path("root");
    let remove = |path: &str| files(&["remove", "--below", &root, &scratch.path("root/file"), path]);
    for (path, reason) in [
        (scratch.path("root"), "not below"),
        (scratch.path("root/"), "not below"),
        (scratch.path("outside"), "not below"),
        (scratch.path("outside/keep"), "not below"),
        (scratch.path("root-2"), "not below"),
        (scratch.path("root/way-out/keep"), "not below"),
        (scratch.path("root/../outside"), "contains '..'"),
        (scratch.path("root/tree/.."), "does not name a file"),
        ("/".to_owned(), "does not name a file"),
        ("root/file".to_owned(), "not below"),
    ] {
        refused(&remove(&path), reason);
        assert!(
            scratch.has("root/file"),
            "whole file system checked before anything is removed"
        );
    }
    refused(
        &files(&["remove", "--below", "/", &scratch.path("root/file")]),
        "that would remove everything",
    );
    for path in ["root/tree", "root/way-out", "root/tree", "root/gone/too"] {
        let output = remove(&scratch.path(path));
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    assert!(scratch.has("outside/keep"), "links are removed, not what they lead to");
}

#[test]
fn a_root_may_be_named_by_a_link() {
    let scratch = Scratch::new();
    scratch.file("real/tree/file", "");
    symlink(scratch.path("real"), scratch.path("name")).unwrap();
    let output = files(&["remove", "--below", &scratch.path("name"), &scratch.path("name/tree")]);
    assert!(output.status.success(), "{output:?}");
    assert!(scratch.has("real") && !scratch.has("real/tree"));
    refused(
        &files(&["remove", "--below", &scratch.path("name"), &scratch.path("name")]),
        "not below",
    );
}

#[test]
fn a_tree_is_cloned_by_links() {
    let scratch = Scratch::new();
    scratch.file("tree/table/data", "rows");
    symlink("table/data", scratch.path("tree/link")).unwrap();
    fs::set_permissions(scratch.path("tree/table"), fs::Permissions::from_mode(0o750)).unwrap();
    // Somebody else's link to a file that stands in the way: it must not be written to.
    scratch.file("else", "of somebody else");
    fs::create_dir_all(scratch.path("far/copy/table")).unwrap();
    fs::hard_link(scratch.path("else"), scratch.path("far/copy/table/data")).unwrap();
    for target in ["far/copy", "fresh/copy", "far/copy"] {
        let output = files(&["clone", &scratch.path("tree"), &scratch.path(target)]);
        assert!(output.status.success(), "{output:?}");
        let inode = |name: &str| fs::metadata(scratch.path(name)).unwrap().ino();
        assert_eq!(inode(&format!("{target}/table/data")), inode("tree/table/data"));
        let link = fs::read_link(scratch.path(&format!("{target}/link"))).unwrap();
        assert_eq!(link, Path::new("table/data"));
    }
    assert_eq!(scratch.read("else"), "of somebody else");
    let mode = fs::metadata(scratch.path("fresh/copy/table"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(
        files(&["clone", &scratch.path("else"), &scratch.path("single")])
            .status
            .success()
    );
    assert_eq!(scratch.read("single"), "of somebody else");
    refused(
        &files(&["clone", &scratch.path("tree"), &scratch.path("tree/within")]),
        "it is within",
    );
    assert_eq!(
        files(&["clone", &scratch.path("gone"), &scratch.path("x")])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_tree_is_copied_to_another_file_system() {
    let scratch = Scratch::new();
    let Ok(memory) = fs::metadata("/dev/shm") else { return };
    if memory.dev() == fs::metadata(scratch.path("")).unwrap().dev() {
        return;
    }
    let other = Scratch::below(Path::new("/dev/shm"));
    let source = scratch.file("tree/data", "rows");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o640)).unwrap();
    let output = files(&["clone", &scratch.path("tree"), &other.path("tree")]);
    assert!(output.status.success(), "{output:?}");
    let [source, copy] = [source, other.path("tree/data")].map(|path| fs::metadata(path).unwrap());
    assert_eq!(other.read("tree/data"), "rows");
    assert_eq!(
        (copy.mode(), copy.modified().unwrap()),
        (source.mode(), source.modified().unwrap())
    );
}

#[test]
fn folders_and_texts() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.path("a/b"), scratch.path("c"));
    for _ in 0..2 {
        assert!(files(&["folders", &one, &other]).status.success());
    }
    assert!(Path::new(&one).is_dir() && Path::new(&other).is_dir());
    let file = scratch.file("text", "caf\u{e9}\n");
    let gone = scratch.path("gone");
    let output = files(&["texts", &file, &gone, &one, "/proc/sys/kernel/ostype"]);
    assert_eq!(
        lines(&output),
        [json!({file: "caf\u{e9}\n", "/proc/sys/kernel/ostype": "Linux\n"})]
    );
    assert_eq!(lines(&files(&["texts", &gone])), [json!({})]);
}

#[test]
fn a_sum_is_of_names_and_contents() {
    let scratch = Scratch::new();
    scratch.file("tree/b", "2");
    scratch.file("tree/a/c", "1");
    symlink("b", scratch.path("tree/link")).unwrap();
    symlink("nowhere", scratch.path("tree/broken")).unwrap();
    let sum = |name: &str| text(&files(&["sum", &scratch.path(name)]).stdout).trim().to_owned();
    // What the tools of every shell say.
    let expected = |script: &str| {
        let output = Command::new("sh")
            .args(["-c", script])
            .current_dir(&scratch.0)
            .output()
            .unwrap();
        text(&output.stdout).split(' ').next().unwrap().to_owned()
    };
    assert_eq!(sum("tree"), expected("cd tree && sha256sum a/c b link | sha256sum"));
    assert_eq!(sum("tree/b"), expected("cd tree && sha256sum b | sha256sum"));
    let before = sum("tree");
    fs::rename(scratch.path("tree/b"), scratch.path("tree/B")).unwrap();
    assert_ne!(sum("tree"), before, "another name");
    assert_eq!(files(&["sum", &scratch.path("gone")]).status.code(), Some(3));
    fs::create_dir(scratch.path("tree/circle")).unwrap();
    symlink("..", scratch.path("tree/circle/up")).unwrap();
    assert!(!files(&["sum", &scratch.path("tree")]).status.success());
}

#[test]
fn space_is_of_the_file_system_of_a_path() {
    let scratch = Scratch::new();
    let space = |path: &str| -> Json { lines(&files(&["space", path])).remove(0) };
    let here = space(&scratch.path("not/yet/there"));
    let (free, total) = (
        here["free_bytes"].as_u64().unwrap(),
        here["total_bytes"].as_u64().unwrap(),
    );
    assert!(0 < free && free <= total, "{here}");
    assert!(!here["filesystem"].as_str().unwrap().is_empty(), "{here}");
    assert_eq!(space("/proc")["filesystem"], "proc");
}
