//! The Python programs in README.md, as they stand there but for the router's port.

use std::path::Path;
use std::time::Duration;

use crate::peer::Library;
use crate::process::{Deadline, Output, Process};
use crate::router::Router;

#[test]
fn first_conversation_in_python() {
    if crate::is_skipped() {
        return;
    }
    let deadline = Deadline::after(Duration::from_secs(30));
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md is there");
    let programs: Vec<&str> = readme
        .split("```python\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("the block has an end").0)
        .collect();
    let [receive, send] = programs[..] else { panic!("two programs: one receives, one sends: {programs:?}") };

    let router = Router::start(deadline);
    let start = |name: &str, program: &str| {
        let program = program.replace("127.0.0.1:5672", &router.address().to_string());
        let mut command = Library::Proton.interpreter();
        Process::start(name, command.args(["-c", &program]), Output::Stdout)
    };
    let mut receiver = start("the program that receives", receive);
    let mut sender = start("the program that sends", send);
    assert_eq!(receiver.next_line(deadline).as_deref(), Some("Good morning"));
    assert!(receiver.wait(deadline).success());
    assert!(sender.wait(deadline).success());
    router.stop(deadline);
}
