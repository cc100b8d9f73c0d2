//! As whom a client on the command line connects: its options, and how they become credentials.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::url::Login;
use crate::engine::sasl::Credentials;
use crate::sasl::{Identification, Mechanism, Password};

/// As whom to connect. The comments here are `--help`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Authentication")]
pub struct SaslOptions {
    /// SASL mechanisms that may be used, such as 'SCRAM-SHA-256 PLAIN'; without it the best that both have, PLAIN only
    /// with TLS
    #[arg(long, value_name = "MECHANISMS")]
    pub sasl_mechanisms: Option<String>,

    /// User to log in as
    #[arg(long, value_name = "USER")]
    pub sasl_username: Option<String>,

    /// Password of the user; others can see it in the list of processes, so better use a file, or neither: then it is
    /// asked for
    #[arg(long, value_name = "PASSWORD", conflicts_with = "sasl_password_file")]
    pub sasl_password: Option<String>,

    /// File whose first line is the password
    #[arg(long, value_name = "FILE")]
    pub sasl_password_file: Option<PathBuf>,
}

impl SaslOptions {
    /// What the connection introduces itself with: the options', or what stands before the `@` of the URL.
    ///
    /// # Errors
    /// They make no sense, or the password can't be read: a sentence for the user.
    pub(crate) fn credentials(&self, login: Option<&Login>) -> Result<Arc<dyn Credentials>, String> {
        let mechanisms = self.sasl_mechanisms.as_deref().map(mechanisms).transpose()?;
        let user = self.sasl_username.clone().or_else(|| login.map(|login| login.user.clone()));
        let given = match &self.sasl_password_file {
            Some(path) => Some(first_line(path)?),
            None => {
                let of_url = || login.and_then(|login| login.password.clone());
                self.sasl_password.clone().or_else(of_url)
            }
        };
        let needs_password = mechanisms.as_ref().is_none_or(|mechanisms: &Vec<Mechanism>| {
            mechanisms.iter().any(|mechanism| mechanism.has_password())
        });
        let user = match (user, given) {
            (None, None) => None,
            (None, Some(_)) => return Err("there is a password, and no user: add --sasl-username".to_owned()),
            (Some(user), Some(password)) => Some((user, Password::new(password))),
            (Some(_), None) if !needs_password => None,
            (Some(user), None) => {
                let password = rpassword::prompt_password(format!("Password of {user}: ")).map_err(|error| {
                    format!("there is no password for {user} (--sasl-password-file), and nobody to ask: {error}")
                })?;
                Some((user, Password::new(password)))
            }
        };
        Identification::new(mechanisms, user)
            .map(|identification| Arc::new(identification) as Arc<dyn Credentials>)
            .map_err(|reason| format!("can't log in: {reason}"))
    }
}

fn first_line(path: &PathBuf) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn mechanisms(names: &str) -> Result<Vec<Mechanism>, String> {
    let names = || names.split([' ', ',']).filter(|name| !name.is_empty());
    let known: Vec<_> = names().filter_map(Mechanism::from_name).collect();
    if known.is_empty() {
        let all = Mechanism::ALL.map(Mechanism::name).join(", ");
        return Err(format!(
            "'{}' is none of the mechanisms that there are: {all}",
            names().collect::<Vec<_>>().join(" ")
        ));
    }
    Ok(known)
}
