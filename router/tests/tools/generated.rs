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
        for word in ["stat", "manage", "top", "reload", "all-routers", "autoLink", "router.link"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
        // For fish nothing is made of what arguments without a name may be.
        assert!(shell == "fish" || text.contains("GET-MGMT-NODES"), "{shell}");
    }
    assert!(run("completions bash --program qdstat").ok().contains("qdstat"));
}

#[test]
fn manual_pages_for_all_names_and_commands() {
    let folder = Folder::new();
    let pages = folder.path().join("man");
    run(&format!("man {}", pages.display())).ok();
    for (page, said) in [
        ("man8/ringmain.8", "AMQP 1.0 message router"),
        ("man8/ringmain-stat.8", ".nf\nExamples:"),
        ("man8/ringmain-manage.8", "\\-\\-save"),
        ("man8/ringmain-top.8", "\\-\\-interval"),
        ("man8/ringmain-send.8", "\\-\\-presettled"),
        ("man8/qdstat.8", "\\-\\-autolinks"),
        ("man8/qdmanage.8", "\\-\\-stdin"),
        ("man8/qdrouterd.8", "\\-\\-pidfile"),
        ("man5/ringmain.conf.5", "stripAnnotations"),
    ] {
        let text = fs::read_to_string(pages.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(said), "{page}: {text}");
        assert!(text.starts_with(".ie") || text.contains(".TH"), "{page}: {text}");
    }
}
