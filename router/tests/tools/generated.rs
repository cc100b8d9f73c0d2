//! Completions and manual pages.

use std::fs;

use crate::program::{Folder, run};

#[test]
fn completions_know_the_commands() {
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef ringmain"), ("fish", "complete -c ringmain")]
    {
        let text = run(&format!("completions {shell}")).ok();
        assert!(text.contains(mark), "{shell}");
        for word in ["stat", "manage", "top", "reload", "all-routers"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    assert!(run("completions bash --program qdstat").ok().contains("qdstat"));
}

#[test]
fn manual_pages_for_all_names_and_commands() {
    let folder = Folder::new();
    let pages = folder.path().join("man8");
    run(&format!("man {}", pages.display())).ok();
    for (page, said) in [
        ("ringmain.8", "AMQP 1.0 message router"),
        ("ringmain-stat.8", ".nf\nExamples:"),
        ("ringmain-manage.8", "\\-\\-save"),
        ("ringmain-top.8", "\\-\\-interval"),
        ("ringmain-send.8", "\\-\\-presettled"),
        ("qdstat.8", "\\-\\-autolinks"),
        ("qdmanage.8", "\\-\\-stdin"),
        ("qdrouterd.8", "\\-\\-pidfile"),
        ("ringmain.conf.5", "stripAnnotations"),
    ] {
        let text = fs::read_to_string(pages.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(said), "{page}: {text}");
        assert!(text.starts_with(".ie") || text.contains(".TH"), "{page}: {text}");
    }
}
