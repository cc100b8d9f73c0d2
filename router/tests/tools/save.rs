//! `ringmain manage --save`: the file starts a router like the one that it is of.

use std::fs;

use crate::program::{Folder, ask, run};
use crate::support::{Router, Setup};

#[test]
fn what_was_changed_at_run_time_is_in_the_file() {
    let router = Router::with(Setup {
        router: "    defaultDistribution: closest",
        listener: "    idleTimeoutSeconds: 30\n    maxFrameSize: 32768",
        sections: "address {\n prefix: from.file\n distribution: multicast\n}\n\
                   address {\n pattern: gone.#\n}\n\
                   log {\n module: SERVER\n enable: info+\n}",
    });
    ask(&router, "manage create --type address --name late pattern=a.*.# distribution=closest priority=3")
        .ok();
    ask(&router, "manage delete --type address --name address/1").ok();
    ask(&router, "manage create --type listener --name second host=127.0.0.1 port=0 linkCapacity=77").ok();
    ask(&router, "manage update --type log --name log/AGENT enable=warning+").ok();
    let folder = Folder::new();
    let path = folder.path().join("saved.conf");
    fs::write(&path, "router {\n id: FORMER\n}\n").expect("the folder is writable");
    let said = ask(&router, &format!("manage --save {}", path.display()));
    assert!(said.status == 0 && said.err.is_empty(), "{said:?}");
    let text = fs::read_to_string(&path).expect("it is written");
    let backup = fs::read_to_string(folder.path().join("saved.conf.bak")).expect("the former file is kept");
    assert!(backup.contains("FORMER"));
    for line in [
        "id: R",
        "defaultDistribution: closest",
        "maxFrameSize: 32768",
        "idleTimeoutSeconds: 30",
        "prefix: from.file",
        "pattern: a.*.#",
        "priority: 3",
        "name: second",
        "linkCapacity: 77",
        "module: AGENT",
        "enable: warning+",
        "module: SERVER",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line} in:\n{text}");
    }
    assert!(!text.contains("gone") && !text.contains("cost") && !text.contains("address/"), "{text}");
    let check = run(&format!("check --strict {}", path.display())).ok();
    assert!(check.contains("a router can start from it"), "{check}");
    // The same again says the same: nothing is lost or added on the way.
    let again = Router::from_file(&path);
    let second = ask(&again, "manage --save -").ok();
    assert_eq!(second, text);
}

#[test]
fn a_file_that_can_not_be_written() {
    let router = Router::start();
    let said = ask(&router, "manage --save /nowhere/at/all.conf");
    assert_eq!(said.status, 1);
    assert!(said.err.contains("can't write /nowhere/at/all.conf"), "{}", said.err);
}
