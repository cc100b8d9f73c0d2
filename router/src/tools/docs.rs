//! What is generated from the definition of the command line: completions for shells, and manual pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

use super::problem::Problem;
use crate::control::config::reference;
use crate::control::config::schema::{Category, ENTITY_TYPES};

/// Prints the completions of `command` for a shell.
///
/// # Errors
/// [`Problem`]: standard output can't be written.
pub fn completions(command: Command, shell: Shell) -> Result<(), Problem> {
    let mut command = with_words(command);
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(|error| Problem::of_output(&error))
}

/// The definition with what the arguments of `manage` may be. A router may know more, so this is for completions only.
fn with_words(command: Command) -> Command {
    let words = |manage: Command| {
        let types = ENTITY_TYPES.iter().map(|of| if of.is_section() { of.name } else { of.type_name });
        let types = PossibleValuesParser::new(types.collect::<Vec<_>>());
        manage
            // An argument that is changed goes behind the others.
            .mut_arg("operation", |argument| {
                argument.index(1).value_parser(PossibleValuesParser::new(OPERATIONS))
            })
            .mut_arg("arguments", |argument| argument.index(2))
            .mut_arg("type", |argument| argument.value_parser(types))
    };
    match command.get_name() {
        "qdmanage" | "skmanage" => words(command),
        _ if command.find_subcommand("manage").is_some() => command.mut_subcommand("manage", words),
        _ => command,
    }
}

/// What a management node can be asked to do, by the names that the tool documents.
const OPERATIONS: [&str; 12] = [
    "QUERY",
    "CREATE",
    "READ",
    "UPDATE",
    "DELETE",
    "GET-TYPES",
    "GET-ATTRIBUTES",
    "GET-OPERATIONS",
    "GET-ANNOTATIONS",
    "GET-MGMT-NODES",
    "GET-SCHEMA",
    "GET-LOG",
];

/// Writes a page for each of the commands and of their subcommands, and one about the configuration file, into the
/// folders `man8` and `man5` of a folder, and tells their names.
///
/// # Errors
/// [`Problem`]: the folder or a page can't be written.
pub fn manual_pages(commands: Vec<Command>, folder: &Path) -> Result<Vec<String>, Problem> {
    let fault = |error: io::Error| Problem::Local(format!("can't write to {}: {error}", folder.display()));
    for section in ["man8", "man5"] {
        fs::create_dir_all(folder.join(section)).map_err(fault)?;
    }
    let mut names = Vec::new();
    for mut command in commands {
        command.build();
        let mut pages = vec![(command.get_name().to_owned(), command.clone())];
        pages.extend(command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| {
            let name = format!("{}-{}", command.get_name(), sub.get_name());
            let sub =
                sub.clone().name(leak(&name)).bin_name(format!("{} {}", command.get_name(), sub.get_name()));
            (name, sub)
        }));
        for (name, page) in pages {
            let mut text = Vec::new();
            // In section 8, where those that they replace are (qdrouterd(8), qdstat(8)).
            let page = clap_mangen::Man::new(page)
                .section("8")
                .source(concat!("ringmain ", env!("CARGO_PKG_VERSION")))
                .manual("Ringmain");
            page.render(&mut text).map_err(fault)?;
            let file = format!("man8/{name}.8");
            fs::write(folder.join(&file), keep_lines(&String::from_utf8_lossy(&text))).map_err(fault)?;
            names.push(file);
        }
    }
    let file = "man5/ringmain.conf.5";
    fs::write(folder.join(file), configuration_page()).map_err(fault)?;
    names.push(file.to_owned());
    Ok(names)
}

/// Examples and lists behind the options stay as they are, rather than being filled like prose.
fn keep_lines(page: &str) -> String {
    const BEHIND: &str = "\n.SH EXTRA\n";
    let Some((front, rest)) = page.split_once(BEHIND) else { return page.to_owned() };
    let (kept, after) = rest.split_at(rest.find("\n.SH ").unwrap_or(rest.len()));
    format!("{front}\n.SH NOTES\n.nf\n{kept}\n.fi{after}")
}

/// The page about the configuration file, from its schema.
fn configuration_page() -> String {
    let mut page = format!(
        ".TH ringmain.conf 5 \"\" \"ringmain {}\" \"Ringmain\"\n.SH NAME\nringmain.conf \\- configuration of the \
         ringmain AMQP 1.0 message router\n.SH DESCRIPTION\nThe file that \\fBringmain\\fR(8) is started with. It \
         consists of sections, NAME {{ ... }}, each with attributes, NAME: VALUE, one a line; what follows a # is a \
         comment. A file whose name ends in .json has a JSON list of [\\(dqsection\\(dq, {{attributes}}] instead. \
         \\fBringmain check\\fR FILE says what is wrong with one.\n",
        env!("CARGO_PKG_VERSION")
    );
    for of in ENTITY_TYPES.iter().filter(|of| of.category == Category::Section) {
        let Ok(text) = reference::section(of.name) else { continue };
        page.push_str(&format!(".SH {}\n.nf\n", of.name));
        for line in text.lines() {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            // A line that began with one of these would be a request to the formatter.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            page.push_str(&format!("{guard}{line}\n"));
        }
        page.push_str(".fi\n");
    }
    page
}

/// The name for the rest of the process, as `clap` wants it: there are a dozen, made once.
fn leak(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}
