//! Certificates that change while the router runs: case C-08.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::certificates::{Folder, Wanted, profile, usual};
use crate::python::client;
use crate::support::{PATIENCE, Router, Setup};

fn serial(folder: &Folder, router: &Router) -> String {
    let report = client(folder, router.address().port(), &[]);
    report["serial"].as_str().unwrap_or_else(|| panic!("{report}")).to_owned()
}

#[track_caller]
fn await_other(folder: &Folder, router: &Router, old: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let new = serial(folder, router);
        if new != old {
            return new;
        }
        assert!(Instant::now() < deadline, "the new certificate isn't shown");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn manage(router: &Router, arguments: &[&str]) -> Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(["manage", "-b", &router.address().to_string()])
        .args(arguments)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn new_files_are_for_new_connections_and_bad_ones_for_none() {
    let (folder, authority) = usual();
    let sections = profile(&folder, "");
    let router =
        Router::with(Setup { listener: "    sslProfile: tls", sections: &sections, ..Setup::default() });
    let first = serial(&folder, &router);
    authority.issue_to(&folder, "server", Wanted { name: "router", ..Wanted::default() });
    let second = await_other(&folder, &router, &first);

    let whole = std::fs::read_to_string(folder.path("server.pem")).expect("it is there");
    folder.replace("server.pem", &whole[..whole.len() / 2]);
    router.await_log("isn't whole: it ends before the line with END. What was read before stays in use");
    assert_eq!(serial(&folder, &router), second);
    let shown = manage(&router, &["query", "--type=sslProfile"]);
    assert!(shown[0]["failedLoads"].as_u64().is_some_and(|failures| failures > 0), "{shown}");
    assert!(shown[0]["lastError"].as_str().is_some_and(|error| error.contains("isn't whole")), "{shown}");

    authority.issue_to(&folder, "server", Wanted { name: "router", ..Wanted::default() });
    await_other(&folder, &router, &second);
    let shown = manage(&router, &["query", "--type=sslProfile"]);
    assert!(shown[0]["lastError"].is_null(), "{shown}");
}

#[test]
fn an_update_retires_old_connections_where_it_says_so() {
    let (folder, authority) = usual();
    let sections = profile(&folder, "    ordinal: 1");
    let server =
        Router::with(Setup { listener: "    sslProfile: tls", sections: &sections, ..Setup::default() });
    let connector = format!(
        "{}connector {{\n    host: localhost\n    port: {}\n    sslProfile: tls\n}}\n",
        profile(&folder, ""),
        server.address().port()
    );
    let client = Router::with(Setup { sections: &connector, ..Setup::default() });
    client.await_log("encrypted=TLSv1.3");
    authority.issue_to(&folder, "server", Wanted { name: "router", ..Wanted::default() });
    let updated =
        manage(&server, &["update", "--type=io.skupper.router.sslProfile", "--name=tls", "ordinal=2"]);
    assert_eq!(updated["ordinal"], 2, "{updated}");
    let of_old = |connections: &Value| {
        let all = connections.as_array().expect("a list");
        all.iter().any(|connection| connection["ssl"] == true)
    };
    assert!(of_old(&manage(&server, &["query", "--type=connection"])), "it lives on");
    manage(&server, &["update", "--type=io.skupper.router.sslProfile", "--name=tls", "oldestValidOrdinal=2"]);
    client.await_log("the certificate that the connection was made with isn't valid any more");
}
