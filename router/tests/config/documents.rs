//! The documentation is what the schema says.

use std::fs;
use std::path::Path;

use ringmain::control::config::reference;
use ringmain::control::config::schema::ENTITY_TYPES;

use crate::program::{run, text};

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let written = fs::read_to_string(path).expect("docs/configuration.md is there");
    assert!(
        written == reference::markdown(),
        "docs/configuration.md isn't what the schema says: write it again with\n  \
         cargo run -- describe --markdown > docs/configuration.md"
    );
}

#[test]
fn describe_shows_every_section() {
    let sections = text(&run(&["describe"]).stdout);
    for entity in ENTITY_TYPES.iter().filter(|entity| entity.is_section()) {
        assert!(sections.contains(&format!("\n  {} ", entity.name)), "{}", entity.name);
        let output = run(&["describe", entity.name]);
        let said = text(&output.stdout);
        for attribute in entity.attributes.iter().filter(|attribute| attribute.is_creatable()) {
            assert!(
                said.contains(&format!("\n  {}: ", attribute.name)),
                "{}.{}",
                entity.name,
                attribute.name
            );
        }
        assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    }
    let output = run(&["describe", "listner"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("did you mean 'listener'?"));
}
