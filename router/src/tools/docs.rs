//! What is generated from the definition of the command line: completions for shells, and manual pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

use super::problem::Problem;

/// Prints the completions of `command` for a shell.
///
/// # Errors
/// [`Problem`]: standard output can't be written.
pub fn completions(mut command: Command, shell: Shell) -> Result<(), Problem> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(|error| Problem::of_output(&error))
}

/// Writes a page for each of the commands and of their subcommands into a folder, and tells their names.
///
/// # Errors
/// [`Problem`]: the folder or a page can't be written.
pub fn manual_pages(commands: Vec<Command>, folder: &Path) -> Result<Vec<String>, Problem> {
    let fault = |error: io::Error| Problem::Local(format!("can't write to {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(fault)?;
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
            // Services are in section 8 where those that they replace are (qdrouterd(8), qdstat(8)).
            clap_mangen::Man::new(page).section("8").render(&mut text).map_err(fault)?;
            let file = format!("{name}.8");
            fs::write(folder.join(&file), text).map_err(fault)?;
            names.push(file);
        }
    }
    Ok(names)
}

/// The name for the rest of the process, as `clap` wants it: there are a dozen, made once.
fn leak(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}
