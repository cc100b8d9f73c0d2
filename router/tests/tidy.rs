//! The rules of the tree that the compiler doesn't know: who may import whom, what has no place in pure
//! code, where `unsafe` is fenced in, how long a file may be.
//!
//! Each rule is a function from a file's path and text to the faults in it, and is tried on small bad
//! examples below, so that a rule that can't fail doesn't pass for one that holds.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest source file: beyond this there are two ideas in it.
const LINES_MAX: usize = 800;

/// The folders (and single files) of `router/src`, and which others each may import.
///
/// `engine`, `routing` and `io` never import one another; `shard` is where they meet. `control` starts
/// shards and so knows what they are made of, but nobody except `main` knows it.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &["base"]),
    ("mem", &["base", "mem"]),
    ("rcu", &["base", "rcu"]),
    ("log", &["base", "log"]),
    ("engine", &["base", "engine"]),
    ("routing", &["base", "routing"]),
    ("io", &["base", "mem", "io"]),
    // What is in SASL frames; the engine knows when they come.
    ("sasl", &["base", "engine", "sasl"]),
    // From files and bytes to records; where they go is the shard's business.
    ("tls", &["base", "tls"]),
    ("shard", &["base", "mem", "rcu", "log", "engine", "routing", "io", "tls", "shard"]),
    ("control", &["base", "rcu", "log", "engine", "routing", "io", "sasl", "tls", "shard", "control"]),
    ("client", &["base", "log", "engine", "sasl", "tls", "client", "cli"]),
    // Of `control` the tools know the schema and the reader of the configuration.
    ("tools", &["base", "sasl", "tls", "client", "control", "tools", "cli"]),
    ("cli", &["base", "log", "client", "tools", "cli"]),
    ("main", &["base", "log", "client", "control", "tools", "cli"]),
];

/// Folders that know the protocol's types. The others move bytes or hold them.
const PROTOCOL_LAYERS: &[&str] = &["engine", "routing", "shard", "control", "client"];

/// What pure code doesn't name: clocks, sockets, threads, the system.
const IMPURE: &[&str] = &[
    "std::net",
    "std::thread",
    "std::os",
    "std::fs",
    "std::io",
    "std::env",
    "std::process",
    "std::time::Instant",
    "std::time::SystemTime",
    "core::net",
    "libc",
    "rustix",
    "socket2",
    "io_uring",
    "tokio",
    "tokio_uring",
];

/// The folders in which `unsafe` is allowed.
const UNSAFE_FOLDERS: &[&str] = &["router/src/mem/", "router/src/rcu/", "router/src/io/uring/"];

/// A piece of Rust: what matters of its grammar here.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    /// `::`
    Path,
    Other(char),
}

/// Splits Rust into tokens, without comments, strings and characters.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        match c {
            '/' if next == Some('/') => {
                while chars.get(at).is_some_and(|&c| c != '\n') {
                    at += 1;
                }
            }
            '/' if next == Some('*') => at = skip_comment(&chars, at),
            '"' => at = skip_string(&chars, at),
            '\'' => at = skip_character(&chars, at),
            'r' if is_raw_string(&chars, at) => at = skip_raw_string(&chars, at + 1),
            'b' if next == Some('r') && is_raw_string(&chars, at + 1) => at = skip_raw_string(&chars, at + 2),
            ':' if next == Some(':') => {
                tokens.push(Token::Path);
                at += 2;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let start = at;
                while chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
                    at += 1;
                }
                tokens.push(Token::Word(chars[start..at].iter().collect()));
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token::Other(c));
                }
                at += 1;
            }
        }
    }
    tokens
}

fn skip_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    loop {
        match (chars.get(at), chars.get(at + 1)) {
            (Some('/'), Some('*')) => {
                depth += 1;
                at += 2;
            }
            (Some('*'), Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            (Some(_), _) => at += 1,
            (None, _) => return at,
        }
    }
}

fn skip_string(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&c) = chars.get(at) {
        at += if c == '\\' { 2 } else { 1 };
        if c == '"' {
            break;
        }
    }
    at
}

/// A character (`'x'`, `'\n'`) or the tick of a lifetime (`'a`).
fn skip_character(chars: &[char], start: usize) -> usize {
    if chars.get(start + 1) == Some(&'\\') {
        let mut at = start + 3;
        while chars.get(at).is_some_and(|&c| c != '\'') {
            at += 1;
        }
        return at + 1;
    }
    if chars.get(start + 2) == Some(&'\'') { start + 3 } else { start + 1 }
}

fn is_raw_string(chars: &[char], at: usize) -> bool {
    let mut behind = at + 1;
    while chars.get(behind) == Some(&'#') {
        behind += 1;
    }
    let starts_word = at == 0 || !(chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    chars.get(behind) == Some(&'"') && (starts_word || chars[at - 1] == 'b')
}

/// `start` is behind the `r`.
fn skip_raw_string(chars: &[char], start: usize) -> usize {
    let hashes = chars[start..].iter().take_while(|&&c| c == '#').count();
    let mut at = start + hashes + 1;
    while at < chars.len() {
        let closes =
            chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes;
        at += 1;
        if closes {
            return at + hashes;
        }
    }
    at
}

/// All paths of a text, with the braces of `use` lists taken apart: `a::{b, c::d}` gives `a::b` and
/// `a::c::d`. A path in the text that is one word only isn't told. With each path comes the number of
/// inline modules that it is in.
fn paths(text: &str) -> Vec<(Vec<String>, usize)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut modules: Vec<usize> = Vec::new();
    let mut braces = 0;
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Word(word) if word == "mod" && tokens.get(at + 2) == Some(&Token::Other('{')) => {
                braces += 1;
                modules.push(braces);
                at += 3;
            }
            Token::Word(_) => {
                let (end, mut here) = path(&tokens, at, &[]);
                found.extend(here.drain(..).map(|path| (path, modules.len())));
                at = end.max(at + 1);
            }
            Token::Other('{') => {
                braces += 1;
                at += 1;
            }
            Token::Other('}') => {
                if modules.last() == Some(&braces) {
                    modules.pop();
                }
                braces -= 1;
                at += 1;
            }
            Token::Path | Token::Other(_) => at += 1,
        }
    }
    found.retain(|(path, _)| path.len() > 1);
    found
}

/// The path (or the several of a `use` list) at a word, and where it ends.
fn path(tokens: &[Token], start: usize, prefix: &[String]) -> (usize, Vec<Vec<String>>) {
    let mut words = prefix.to_vec();
    let mut at = start;
    loop {
        match tokens.get(at) {
            Some(Token::Word(word)) => words.push(word.clone()),
            Some(Token::Other('{')) if !words.is_empty() => {
                let mut all = Vec::new();
                at += 1;
                while let Some(token) = tokens.get(at) {
                    match token {
                        Token::Other('}') => return (at + 1, all),
                        Token::Word(word) if word == "as" => at += 2,
                        Token::Word(_) => {
                            let (end, inner) = path(tokens, at, &words);
                            all.extend(inner);
                            at = end;
                        }
                        Token::Path | Token::Other(_) => at += 1,
                    }
                }
                return (at, all);
            }
            Some(Token::Path | Token::Other(_)) | None => return (at, vec![words]),
        }
        at += 1;
        if tokens.get(at) != Some(&Token::Path) {
            return (at, vec![words]);
        }
        at += 1;
    }
}

/// The modules that lead to a file of `router/src`: `engine/link.rs` is in `engine`, `link`.
fn module_of(file: &str) -> Vec<String> {
    let file = file.strip_suffix(".rs").unwrap_or(file);
    file.split('/').filter(|part| !["mod", "lib"].contains(part)).map(str::to_owned).collect()
}

/// What a path in a file of `router/src` leads to, from the crate's root; `None` if it leaves the crate or
/// stays where it is.
fn from_root(path: &[String], module: &[String], inline: usize) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "ringmain" => Some(path[1..].to_vec()),
        "super" => {
            let ups = path.iter().take_while(|word| *word == "super").count();
            let depth = (module.len() + inline).checked_sub(ups)?;
            let mut root: Vec<String> = module.iter().take(depth).cloned().collect();
            // Inside an inline module the first ups only lead out of that.
            if depth > module.len() {
                return None;
            }
            root.extend_from_slice(&path[ups..]);
            Some(root)
        }
        _ => None,
    }
}

/// Imports of a file in `router/src` (`file` is relative to that) that its layer may not have.
fn import_faults(file: &str, text: &str) -> Vec<String> {
    let module = module_of(file);
    let Some(layer) = module.first() else { return Vec::new() };
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| name == layer) else {
        return vec![format!("router/src/{file}: the layer '{layer}' is not in design.md's picture")];
    };
    let mut faults = Vec::new();
    for (path, inline) in paths(text) {
        let target = from_root(&path, &module, inline);
        if let Some(target) = target.as_ref().and_then(|target| target.first())
            && LAYERS.iter().any(|(name, _)| name == target)
            && !allowed.contains(&target.as_str())
        {
            faults.push(format!("router/src/{file}: {layer} imports {target} ({})", path.join("::")));
        }
        if path[0] == "ringmain_codec" && !PROTOCOL_LAYERS.contains(&layer.as_str()) {
            faults.push(format!("router/src/{file}: {layer} imports the codec ({})", path.join("::")));
        }
    }
    faults
}

/// Clocks, sockets and threads in code that must run without them.
fn purity_faults(file: &str, text: &str) -> Vec<String> {
    let pure = ["codec/src/", "router/src/engine/", "router/src/routing/"];
    if !pure.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (path, _) in paths(text) {
        let joined = path.join("::");
        let is_in = |banned: &&&str| {
            joined.strip_prefix(**banned).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let is_whole_time = joined == "std::time" || joined == "std::time::self";
        // Addresses are values.
        let is_value = ["core::net::IpAddr", "core::net::SocketAddr"].contains(&joined.as_str());
        if (IMPURE.iter().find(is_in).is_some() && !is_value) || is_whole_time {
            faults.push(format!("{file}: names {joined}"));
        }
        if file.starts_with("codec/src/") && path[0] == "std" && !text.contains("cfg(test)") {
            faults.push(format!("{file}: names {joined}, but the codec is no_std"));
        }
    }
    faults
}

/// `unsafe`, and leave for it, outside of the folders that fence it in.
fn unsafe_faults(file: &str, text: &str) -> Vec<String> {
    if UNSAFE_FOLDERS.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    let tokens = tokens(text);
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.as_str(),
        Some(Token::Path | Token::Other(_)) | None => "",
    };
    let mut faults = Vec::new();
    for at in 0..tokens.len() {
        if word(at) == "unsafe" {
            faults.push(format!("{file}: unsafe outside of {}", UNSAFE_FOLDERS.join(", ")));
        }
        if ["allow", "expect", "warn"].contains(&word(at)) && word(at + 2) == "unsafe_code" {
            faults.push(format!(
                "{file}: {}(unsafe_code) outside of {}",
                word(at),
                UNSAFE_FOLDERS.join(", ")
            ));
        }
    }
    faults
}

/// Where locks are made, such that they can be counted.
const LOCKS: &str = "router/src/base/lock.rs";

/// Locks of the standard library that aren't made there.
fn lock_faults(file: &str, text: &str) -> Vec<String> {
    if !file.starts_with("router/src/") || file == LOCKS {
        return Vec::new();
    }
    let is_lock = |path: &[String]| {
        matches!(path, [first, second, last] if first == "std" && second == "sync"
            && ["Mutex", "RwLock", "Condvar"].contains(&last.as_str()))
    };
    let found = paths(text).into_iter().filter(|(path, _)| path.len() >= 3 && is_lock(&path[..3]));
    found.map(|(path, _)| format!("{file}: {} isn't counted: see {LOCKS}", path.join("::"))).collect()
}

/// Notes of work left undone, and code that stands for it.
fn unfinished_faults(file: &str, text: &str) -> Vec<String> {
    // Put together, so that this file doesn't contain what it looks for.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|halves| halves.concat());
    let macros = [["todo", "!"], ["unimplemented", "!"]].map(|halves| halves.concat());
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let has_word = line
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .any(|word| words.iter().any(|banned| banned == word));
        if has_word || macros.iter().any(|banned| line.contains(banned.as_str())) {
            faults.push(format!("{file}:{number}: unfinished: {}", line.trim()));
        }
    }
    faults
}

/// Paths that exist on one machine only, and hosts of package registries.
fn machine_faults(file: &str, text: &str) -> Vec<String> {
    let roots = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/tm", "p/"]].map(|halves| halves.concat());
    let hosts =
        [["index.crates", ".io"], ["static.crates", ".io"], ["registry.npm", "js.org"], ["pypi", ".org"]]
            .map(|halves| halves.concat());
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let is_path = |root: &String| {
            line.match_indices(root.as_str()).any(|(at, _)| {
                // `a/work/b` is a part of a path in the tree, `//root/` of an address.
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/)}$".contains(c))
            })
        };
        if roots.iter().any(is_path) || hosts.iter().any(|host| line.contains(host.as_str())) {
            faults.push(format!("{file}:{number}: only true on one machine: {}", line.trim()));
        }
    }
    faults
}

/// Files that have grown too long.
fn length_faults(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let counts = file.starts_with("router/src/") || file.starts_with("codec/src/");
    if counts && lines >= LINES_MAX {
        vec![format!("{file}: {lines} lines, and {LINES_MAX} or more have a seam somewhere")]
    } else {
        Vec::new()
    }
}

/// The workspace's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace to exist")
}

/// All text files of the workspace, by their path from its root, without what tools have made.
fn files() -> Vec<(String, String)> {
    const MADE: &[&str] = &[
        "target",
        ".git",
        "node_modules",
        "__pycache__",
        "artifacts",
        "coverage",
        "Cargo.lock",
        "package-lock.json",
    ];
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_venv = entry.path().join("pyvenv.cfg").exists();
            if MADE.contains(&name.as_str()) || is_venv {
                continue;
            }
            let kind = entry.file_type().expect("the kind of an entry");
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                let path = entry.path();
                let path = path.strip_prefix(&root).expect("a path below the root");
                found.push((path.to_string_lossy().into_owned(), text));
            }
        }
    }
    assert!(found.len() > 50, "the tree was found: {} files", found.len());
    found
}

fn rust_files() -> Vec<(String, String)> {
    files().into_iter().filter(|(file, _)| file.ends_with(".rs")).collect()
}

fn expect_none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn layers_import_only_what_lies_below_them() {
    let mut faults = Vec::new();
    for (file, text) in rust_files() {
        if let Some(file) = file.strip_prefix("router/src/") {
            faults.extend(import_faults(file, &text));
        }
    }
    expect_none(&faults);
}

#[test]
fn codec_engine_and_routing_know_no_clock_socket_or_thread() {
    let faults: Vec<String> =
        rust_files().iter().flat_map(|(file, text)| purity_faults(file, text)).collect();
    expect_none(&faults);
}

#[test]
fn unsafe_is_fenced_in() {
    let ours =
        |file: &str| ["router/", "codec/src/", "codec/tests/"].iter().any(|part| file.starts_with(part));
    let files = rust_files();
    let faults: Vec<String> = files
        .iter()
        .filter(|(file, _)| ours(file))
        .flat_map(|(file, text)| unsafe_faults(file, text))
        .collect();
    expect_none(&faults);
    let denies = |path: &str, attribute: &str| {
        files.iter().any(|(file, text)| file == path && text.contains(attribute))
    };
    assert!(denies("router/src/lib.rs", "#![deny(unsafe_code)]"));
    assert!(denies("codec/src/lib.rs", "#![forbid(unsafe_code)]"));
}

#[test]
fn locks_are_made_where_they_are_counted() {
    let faults: Vec<String> = rust_files().iter().flat_map(|(file, text)| lock_faults(file, text)).collect();
    expect_none(&faults);
}

#[test]
fn nothing_is_left_unfinished() {
    let faults: Vec<String> = files().iter().flat_map(|(file, text)| unfinished_faults(file, text)).collect();
    expect_none(&faults);
}

#[test]
fn nothing_depends_on_one_machine() {
    let faults: Vec<String> = files().iter().flat_map(|(file, text)| machine_faults(file, text)).collect();
    expect_none(&faults);
}

#[test]
fn files_are_about_as_long_as_one_idea() {
    let faults: Vec<String> =
        rust_files().iter().flat_map(|(file, text)| length_faults(file, text)).collect();
    expect_none(&faults);
}

/// Each rule on what it must find, and on what it must leave alone.
mod rules {
    use super::*;

    #[test]
    fn text_that_is_no_code_is_passed_over() {
        let text = r####"
            // crate::io
            /* crate::io /* crate::shard */ crate::io */
            let a = "crate::io \" crate::io";
            let b = r#"crate::io " crate::io"#;
            let c = br"crate::io";
            let d = ('"', '\'', b'"', '\u{22}');
            fn f<'a>(x: &'a str) -> crate::base::X<'a> {}
        "####;
        let found: Vec<String> = paths(text).into_iter().map(|(path, _)| path.join("::")).collect();
        assert_eq!(found, ["crate::base::X"]);
    }

    #[test]
    fn lists_are_taken_apart() {
        let found: Vec<String> = paths("use crate::{base::{id::Key, time}, io as other, engine};")
            .into_iter()
            .map(|(path, _)| path.join("::"))
            .collect();
        assert_eq!(found, ["crate::base::id::Key", "crate::base::time", "crate::io", "crate::engine"]);
    }

    #[test]
    fn imports_across_and_upwards_are_found() {
        let bad = [
            ("engine/link.rs", "use crate::io::driver::Driver;"),
            ("engine/link.rs", "use crate::{base::id::Key, routing::Address};"),
            ("engine/link.rs", "use super::super::shard::Core;"),
            ("engine/mod.rs", "use super::routing;"),
            ("engine/a/b.rs", "use super::super::super::io;"),
            ("engine/link.rs", "mod tests { use super::super::super::io; }"),
            ("engine/link.rs", "fn f() { crate::log::write(); }"),
            ("routing/table.rs", "use crate::engine::LinkRef;"),
            ("routing/table.rs", "pub use crate::shard::turn;"),
            ("io/driver.rs", "use crate::engine::Connection;"),
            ("io/sim/world.rs", "use ringmain_codec::Frame;"),
            ("base/id.rs", "use crate::engine::LinkRef;"),
            ("base/id.rs", "use ringmain_codec::Symbol;"),
            ("log/mod.rs", "use crate::control::config;"),
            ("shard/turn.rs", "use crate::control::router;"),
            ("shard/turn.rs", "use crate::cli;"),
            ("client/options.rs", "use crate::shard::Core;"),
            ("mem/pool.rs", "use crate::io;"),
            ("new/mod.rs", ""),
        ];
        for (file, text) in bad {
            assert_eq!(import_faults(file, text).len(), 1, "{file}: {text}: {:?}", import_faults(file, text));
        }
        let good = [
            ("engine/link.rs", "use super::{event, session::Session}; use crate::base::id::Key;"),
            ("engine/link.rs", "mod tests { use super::super::flow; use super::*; }"),
            ("engine/link.rs", "use ringmain_codec::Flow;"),
            ("shard/turn.rs", "use crate::{engine, io, routing, base, log};"),
            ("control/router.rs", "use crate::shard::mailbox::Mailbox;"),
            ("main.rs", "use ringmain::control::router;"),
            ("io/driver.rs", "pub use crate::base::buffer::Chunk;"),
            ("lib.rs", "pub mod engine;"),
        ];
        for (file, text) in good {
            expect_none(&import_faults(file, text));
        }
    }

    #[test]
    fn clocks_sockets_and_threads_are_found() {
        let bad = [
            "use std::time::Instant;",
            "use std::{time::{Duration, Instant}};",
            "use std::time::SystemTime;",
            "use std::time;",
            "use std::time::{self, Duration};",
            "fn f() { std::thread::yield_now(); }",
            "use std::net::TcpStream;",
            "use std::io::Read;",
            "use rustix::net::recv;",
            "use tokio::net::TcpStream;",
        ];
        for text in bad {
            for file in ["codec/src/frame.rs", "router/src/engine/link.rs", "router/src/routing/table.rs"] {
                assert!(!purity_faults(file, text).is_empty(), "{file}: {text}");
            }
            expect_none(&purity_faults("router/src/io/uring/clock.rs", text));
        }
        expect_none(&purity_faults(
            "router/src/engine/link.rs",
            "use std::time::Duration; use std::collections::HashMap; use crate::base::time::Instant;",
        ));
        assert_eq!(purity_faults("codec/src/frame.rs", "use std::collections::HashMap;").len(), 1);
    }

    #[test]
    fn unsafe_is_found() {
        let block = ["let x = un", "safe { *p };"].concat();
        let leave = ["#![allow(un", "safe_code)]"].concat();
        for text in [block.as_str(), leave.as_str()] {
            assert_eq!(unsafe_faults("router/src/shard/turn.rs", text).len(), 1, "{text}");
            assert_eq!(unsafe_faults("router/src/io/sim/world.rs", text).len(), 1, "{text}");
            assert_eq!(unsafe_faults("router/src/memory.rs", text).len(), 1, "{text}");
            expect_none(&unsafe_faults("router/src/mem/pool.rs", text));
            expect_none(&unsafe_faults("router/src/io/uring/ring.rs", text));
        }
        expect_none(&unsafe_faults("router/src/lib.rs", "#![deny(unsafe_code)] // unsafe in words"));
    }

    #[test]
    fn locks_are_found() {
        let text =
            "use std::sync::{Arc, Mutex};\nstatic S: std::sync::RwLock<u8> = f();\nuse tokio::sync::Mutex;";
        assert_eq!(lock_faults("router/src/shard/turn.rs", text).len(), 2);
        expect_none(&lock_faults(LOCKS, text));
        expect_none(&lock_faults("perf-tests/src/main.rs", text));
    }

    #[test]
    fn what_is_unfinished_is_found() {
        for text in
            [["// TO", "DO: later"], ["FIX", "ME"], ["todo", "!()"], ["x => unimplemented", "!(\"y\")"]]
        {
            let text = text.concat();
            assert_eq!(unfinished_faults("a", &text).len(), 1, "{text}");
        }
        expect_none(&unfinished_faults("a", "what there is to do\nTODOS\nmethod"));
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for text in [
            ["cd /wo", "rk/main"],
            ["'/ro", "ot/.cargo'"],
            ["open(\"/tm", "p/x\")"],
            ["https://pypi", ".org/simple"],
        ] {
            let text = text.concat();
            assert_eq!(machine_faults("a", &text).len(), 1, "{text}");
        }
        expect_none(&machine_faults("a", "amqp://h//root/x\n/etc/ringmain.conf\n$HOME/work/\nframework/x"));
    }

    #[test]
    fn a_long_file_is_found() {
        let long = "x\n".repeat(LINES_MAX);
        assert_eq!(length_faults("router/src/shard/long.rs", &long).len(), 1);
        assert_eq!(length_faults("codec/src/long.rs", &long).len(), 1);
        expect_none(&length_faults("codec/tests/long.rs", &long));
        expect_none(&length_faults("router/src/shard/long.rs", &long[2..]));
    }
}
