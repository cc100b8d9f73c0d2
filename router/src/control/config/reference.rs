//! The reference documentation of the configuration file, made from the schema.

use core::fmt::Write as _;

use super::nearest::did_you_mean;
use super::raw::camel_case;
use super::schema::{Access, Attribute, Availability, ENTITY_TYPES, EntityType, Kind, Origin};

/// How wide descriptions are in a terminal.
const WIDTH: usize = 96;

/// What nothing here can fail with.
const GROWS: &str = "a string grows";

/// What stands before the sections in the document.
const INTRODUCTION: &str = "\
# The configuration file

*Made by `ringmain describe --markdown`; a test compares. `ringmain describe SECTION` shows the same in a
terminal, `ringmain check FILE` says what is wrong with a file.*

Ringmain reads the file of `qdrouterd`. A line is a section's beginning, an attribute, or a closing `}`:

```
router {
    mode: standalone
    id: A
}

listener {
    host: 0.0.0.0        # what follows a '#' is a comment
    port: amqp
    openProperties: {
        \"site\": \"east\"
    }
}
```

* Names of attributes may be written as `max-frame-size` for `maxFrameSize`. Section names are without the prefix
  `router.config.` that management puts before some.
* Maps such as openProperties are JSON, in which a comment takes a whole line. The groups of a vhost may be written as
  JSON or in lines as above.
* The value is the rest of the line, with JSON's escapes (`\\\\`, `\\u0023` for a `#`). Of `pattern`, `bindingKey` and
  `hostname` it is the first run of characters without blanks, and may have a `#`.
* Booleans are `yes`, `true`, `on`, `no`, `false` or `off`, in any letter case.
* `$NAME` and `${NAME}` in a value stand for an environment variable. One that isn't set stays as it is, with a
  warning. `${$}` stands for a `$`: `${$}NAME` is the text `$NAME`.
* A file whose name ends in `.json` is a list of `[\"section\", {attributes}]`; lines that begin with `#` are comments.
* Everything that is wrong with a file is said at once, with its line, and nothing is started (exit status 1).
* After `SIGHUP` (`ringmain reload`) the router reads its file again and applies what has changed.

";

/// The whole document, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    let sections: Vec<_> = ENTITY_TYPES.iter().filter(|entity| entity.is_section()).collect();
    out.push_str("| section | what it is |\n|---|---|\n");
    for entity in &sections {
        let (name, note) = (entity.name, note(entity, "*"));
        writeln!(out, "| [{name}](#{}) | {}{note} |", name.to_lowercase(), entity.description).expect(GROWS);
    }
    for entity in sections {
        document(&mut out, entity);
        for attribute in entity.attributes {
            if let Kind::Entities(part) = attribute.kind
                && let Some(part) = EntityType::find_type(part)
            {
                document(&mut out, part);
            }
        }
    }
    out
}

/// What is to be said of an entity as a whole; `mark` stands around what is missing.
fn note(entity: &EntityType, mark: &str) -> String {
    let origin = match entity.origin {
        Origin::Dispatch => "",
        Origin::Skupper => " From skupper-router.",
        Origin::Ringmain => " Ringmain's own.",
    };
    let missing = match entity.feature.and_then(|feature| feature.unserved()) {
        Some(_) => format!(" {mark}Not in this version.{mark}"),
        None => String::new(),
    };
    format!("{origin}{missing}")
}

fn document(out: &mut String, entity: &EntityType) {
    write!(out, "\n## {}\n\n{}", entity.name, entity.description).expect(GROWS);
    if entity.is_singleton {
        out.push_str(" There is one; without the section it has the defaults.");
    }
    match entity.origin {
        Origin::Dispatch => {}
        Origin::Skupper => out.push_str(" From skupper-router."),
        Origin::Ringmain => out.push_str(" Ringmain's own."),
    }
    out.push('\n');
    if let Some(feature) = entity.feature
        && let Some(consequence) = feature.unserved()
    {
        writeln!(out, "\n*This version doesn't have {} yet: {consequence}.*", feature.name()).expect(GROWS);
    }
    out.push_str("\n| attribute | value | default | |\n|---|---|---|---|\n");
    for attribute in settable(entity) {
        let default = match attribute.default {
            Some("") => "nothing".to_owned(),
            Some(default) => format!("`{default}`"),
            None if attribute.is_required => "**required**".to_owned(),
            None => String::new(),
        };
        let description = description(attribute, "*").replace('|', "\\|");
        writeln!(out, "| `{}` | {} | {default} | {description} |", attribute.name, value(attribute))
            .expect(GROWS);
    }
}

fn settable(entity: &EntityType) -> impl Iterator<Item = &'static Attribute> {
    entity.attributes.iter().filter(|attribute| attribute.is_creatable())
}

/// Which values the attribute may have.
fn value(attribute: &Attribute) -> String {
    let unit = attribute.unit.map_or_else(String::new, |unit| format!(" {unit}"));
    match attribute.kind {
        Kind::Boolean => "yes or no".to_owned(),
        Kind::Integer { min, max: i64::MAX } => format!("{min} or more{unit}"),
        Kind::Integer { min, max } => format!("{min} to {max}{unit}"),
        Kind::String => "text".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Host => "host".to_owned(),
        Kind::Port => "port".to_owned(),
        Kind::Enumeration(words) => words.join(", "),
        Kind::Words { separator: ' ', known } => words("words with blanks between", known),
        Kind::Words { known, .. } => words("words with commas between", known),
        Kind::LogLevels => "levels".to_owned(),
        Kind::Properties => "JSON map".to_owned(),
        Kind::Entities(name) => format!("map of {name}"),
        Kind::List => "list".to_owned(),
    }
}

fn words(what: &str, known: &[&str]) -> String {
    if known.is_empty() { what.to_owned() } else { format!("{what}: {}", known.join(", ")) }
}

/// All that is to be said about an attribute; `mark` stands around what is missing.
fn description(attribute: &Attribute, mark: &str) -> String {
    let mut text = attribute.description.to_owned();
    match attribute.origin {
        Origin::Dispatch => {}
        Origin::Skupper => text.push_str(" From skupper-router."),
        Origin::Ringmain => text.push_str(" Ringmain's own."),
    }
    if let Some(former) = attribute.deprecated_name {
        write!(text, " Formerly {former}.").expect(GROWS);
    }
    if let Some(advice) = attribute.deprecated {
        write!(text, " Deprecated: {advice}.").expect(GROWS);
    }
    match attribute.access {
        Access::CreateOrUpdate => text.push_str(" Management may change it."),
        Access::Create | Access::Update | Access::ReadOnly => {}
    }
    match attribute.availability {
        Availability::Now => {}
        Availability::Inert => {
            write!(text, " {mark}Accepted; changes nothing in this version.{mark}").expect(GROWS);
        }
        Availability::NoEffect(reason) => {
            write!(text, " {mark}Without effect: {reason}.{mark}").expect(GROWS)
        }
        Availability::Needs(feature) | Availability::OthersNeed { feature, .. } => {
            if let Some(consequence) = feature.unserved() {
                let others = match attribute.availability {
                    Availability::OthersNeed { words, .. } => format!(" other than {}", words.join(", ")),
                    Availability::Now
                    | Availability::Inert
                    | Availability::NoEffect(_)
                    | Availability::Needs(_)
                    | Availability::WordsNeed(_) => String::new(),
                };
                write!(text, " {mark}Not in this version{others}: {consequence}.{mark}").expect(GROWS);
            }
        }
        Availability::WordsNeed(needs) => {
            let missing: Vec<&str> =
                needs.iter().filter(|(_, feature)| !feature.is_served()).map(|(word, _)| *word).collect();
            if !missing.is_empty() {
                write!(text, " {mark}Not in this version: {}.{mark}", missing.join(", ")).expect(GROWS);
            }
        }
    }
    text
}

/// The sections that there are, for a terminal.
#[must_use]
pub fn sections() -> String {
    let mut out =
        String::from("Sections of the configuration file ('ringmain describe SECTION' for more):\n\n");
    for entity in ENTITY_TYPES.iter().filter(|entity| entity.is_section()) {
        let text = format!("{}{}", entity.description, note(entity, ""));
        paragraph(&mut out, &format!("  {:<18} ", entity.name), &text);
    }
    out
}

/// A section and its attributes, for a terminal.
///
/// # Errors
/// There is no such section.
pub fn section(name: &str) -> Result<String, String> {
    let name = camel_case(name);
    let entity = EntityType::find(&name).or_else(|| EntityType::find_type(&name));
    let entity = entity.filter(|entity| settable(entity).next().is_some()).ok_or_else(|| {
        let known = ENTITY_TYPES.iter().filter(|entity| entity.is_section()).map(|entity| entity.name);
        format!("there is no section '{name}'{}", did_you_mean(&name, known))
    })?;
    let mut out = String::new();
    let text = format!("{}{}", entity.description, note(entity, ""));
    paragraph(&mut out, "", &format!("{}: {text}", entity.name));
    for attribute in settable(entity) {
        let default = match attribute.default {
            Some("") => ", default: nothing".to_owned(),
            Some(default) => format!(", default: {default}"),
            None if attribute.is_required => ", required".to_owned(),
            None => String::new(),
        };
        out.push('\n');
        paragraph(&mut out, &format!("  {}: ", attribute.name), &format!("{}{default}", value(attribute)));
        paragraph(&mut out, "      ", &description(attribute, ""));
    }
    Ok(out)
}

/// Breaks `text` into lines that begin with `lead`, or as many blanks.
fn paragraph(out: &mut String, lead: &str, text: &str) {
    let indent = " ".repeat(lead.chars().count().min(21));
    let mut line = lead.to_owned();
    let mut is_begun = false;
    for word in text.split(' ') {
        if is_begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line.clone_from(&indent);
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}
