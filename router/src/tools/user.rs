//! `ringmain user`: the file of users (`usersFile`).

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::problem::Problem;
use crate::sasl::Users;
use crate::sasl::keys::{Hash, ITERATIONS_DEFAULT, ITERATIONS_MAX, ITERATIONS_MIN};

/// Options of `ringmain user`. The comments here are its `--help`.
#[derive(Args, Clone, Debug)]
#[command(after_help = HELP)]
pub struct UserOptions {
    /// What to do.
    #[command(subcommand)]
    pub action: UserAction,
}

const HELP: &str = "\
Examples:
  ringmain user add /etc/ringmain/users fred@example.com
  ringmain user add /etc/ringmain/users service < /run/secrets/password
  ringmain user list /etc/ringmain/users

The file is 'usersFile' of the section 'router'. It holds salted keys for SCRAM (RFC 5802), against which passwords
by PLAIN are checked as well, and no passwords. A running router reads it again when told to (ringmain reload).";

/// What `ringmain user` does.
#[derive(Subcommand, Clone, Debug)]
pub enum UserAction {
    /// Add a user, or give one another password
    Add(AddUserOptions),
    /// List the users
    List(ListUsersOptions),
    /// Remove a user
    Remove(RemoveUserOptions),
}

/// Whom to add.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The password is asked for twice on a terminal; otherwise it is the first line of standard input."
)]
pub struct AddUserOptions {
    /// The file of users; it is made if it isn't there
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The user's name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// How often the password is hashed: more makes it harder to find by trying, and each login slower
    #[arg(long, value_name = "N", default_value_t = ITERATIONS_DEFAULT,
          value_parser = clap::value_parser!(u32).range(i64::from(ITERATIONS_MIN)..=i64::from(ITERATIONS_MAX)))]
    pub iterations: u32,
}

/// Whose users to list.
#[derive(Args, Clone, Debug)]
pub struct ListUsersOptions {
    /// The file of users
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Whom to remove.
#[derive(Args, Clone, Debug)]
pub struct RemoveUserOptions {
    /// The file of users
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The user's name
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Adds, lists or removes users.
///
/// # Errors
/// [`Problem::Local`]: the file can't be read or written, or what was asked for can't be done.
pub fn user(options: &UserOptions) -> Result<(), Problem> {
    match &options.action {
        UserAction::Add(options) => add(options),
        UserAction::List(options) => list(options),
        UserAction::Remove(options) => remove(options),
    }
}

fn add(options: &AddUserOptions) -> Result<(), Problem> {
    let AddUserOptions { file, name, iterations } = options;
    let is_new = !file.exists();
    let mut users = if is_new { Users::default() } else { read(file)? };
    let password = password(name)?;
    let was_there = users.set(name, &password, &Hash::ALL, *iterations).map_err(Problem::Local)?;
    users.write(file).map_err(Problem::Local)?;
    let done = if was_there { "has another password" } else { "added" };
    say(&format!("{}: {name} {done}\n", file.display()))?;
    if is_new && rustix::process::geteuid().is_root() {
        // A service has another user, which finds out when it starts.
        eprintln!(
            "The file is root's alone: if the router runs as another user, give it to that one (chown USER {})",
            file.display()
        );
    }
    Ok(())
}

fn list(options: &ListUsersOptions) -> Result<(), Problem> {
    let users = read(&options.file)?;
    let mut text = String::new();
    for (name, keys) in users.iter() {
        let mechanisms: Vec<_> = keys.iter().map(|keys| keys.hash.mechanism().name()).collect();
        text.push_str(&format!("{name}  {}\n", mechanisms.join(" ")));
    }
    say(&text)
}

fn remove(options: &RemoveUserOptions) -> Result<(), Problem> {
    let RemoveUserOptions { file, name } = options;
    let mut users = read(file)?;
    if !users.remove(name) {
        return Err(Problem::Local(format!("{} has no user '{name}'", file.display())));
    }
    users.write(file).map_err(Problem::Local)?;
    say(&format!("{}: {name} removed\n", file.display()))
}

fn read(file: &Path) -> Result<Users, Problem> {
    Users::read(file).map_err(Problem::Local)
}

/// The password: typed twice where somebody types, else the first line of standard input.
fn password(name: &str) -> Result<String, Problem> {
    let failed = |error: io::Error| Problem::Local(format!("can't read the password: {error}"));
    if !io::stdin().is_terminal() {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(failed)?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let password = rpassword::prompt_password(format!("Password of {name}: ")).map_err(failed)?;
    let again = rpassword::prompt_password("The same again: ").map_err(failed)?;
    if password != again {
        return Err(Problem::Local("the two passwords aren't the same; nothing has changed".to_owned()));
    }
    Ok(password)
}

fn say(text: &str) -> Result<(), Problem> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| Problem::of_output(&error))
}
