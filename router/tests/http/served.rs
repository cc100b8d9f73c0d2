//! What an HTTP listener serves, by its attributes.

use std::fs;
use std::io::{Read as _, Write as _};

use crate::client::{connect, get, http_listener, request, router, router_with};
use crate::support::{Router, Setup};

#[test]
fn healthz_and_readyz_are_well() {
    let (_router, address) = router("");
    for path in ["/healthz", "/readyz"] {
        let answer = get(address, path);
        assert_eq!((answer.status, answer.body.as_str()), (200, "OK\n"), "{path}");
    }
}

#[test]
fn what_is_switched_off_is_not_there() {
    for (attribute, paths) in
        [("metrics: no", &["/metrics"][..]), ("healthz: no", &["/healthz", "/readyz"][..])]
    {
        let (_router, address) = router(attribute);
        for path in ["/metrics", "/healthz", "/readyz"] {
            let answer = get(address, path);
            let wanted = if paths.contains(&path) { 404 } else { 200 };
            assert_eq!(answer.status, wanted, "{attribute}: {path}");
            if wanted == 404 {
                assert!(answer.body.contains("there is: "), "{}", answer.body);
            }
        }
    }
}

#[test]
fn other_methods_are_refused() {
    let (_router, address) = router("");
    let answer = request(address, "POST", "/metrics", "Content-Length: 0\r\n");
    assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, "GET, HEAD"));
}

/// `httpRootDir` implies http; nothing outside of it is given away.
#[test]
fn files_are_served_from_their_directory_only() {
    let folder = std::env::temp_dir().join(format!("ringmain-http-{}", std::process::id()));
    let root = folder.join("root");
    fs::create_dir_all(&root).expect("the temporary folder can be written to");
    fs::write(root.join("index.html"), "<p>hello</p>").expect("a file can be written");
    fs::write(folder.join("secret"), "secret").expect("a file can be written");
    let section =
        format!("listener {{\n    host: 127.0.0.1\n    port: 0\n    httpRootDir: {}\n}}\n", root.display());
    let router = Router::with(Setup { sections: &section, ..Setup::default() });
    let address = crate::client::http_address(&router);
    let answer = get(address, "/index.html");
    assert_eq!((answer.status, answer.body.as_str()), (200, "<p>hello</p>"));
    assert_eq!(answer.headers["content-type"], "text/html");
    assert_eq!(get(address, "/").body, "<p>hello</p>");
    for path in ["/missing", "/../secret", "/%2e%2e/secret", "/a/../../secret", "/..%2fsecret"] {
        let answer = get(address, path);
        assert!(answer.status == 404 && !answer.body.contains("secret"), "{path}: {answer:?}");
    }
    assert_eq!(get(address, "/metrics").status, 200);
    fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// A client that says nothing, or nonsense, harms nobody else.
#[test]
fn nonsense_is_answered_or_closed() {
    let (_router, address) = router("");
    let silent = connect(address);
    for nonsense in
        [&b"AMQP\x00\x01\x00\x00\r\n\r\n"[..], b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n"]
    {
        let mut stream = connect(address);
        stream.write_all(nonsense).expect("the router reads");
        let mut answer = Vec::new();
        // Whether by an answer or a reset, it ends.
        let _reset = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    }
    assert_eq!(get(address, "/healthz").status, 200);
    drop(silent);
}

/// Two listeners serve what each of them says; AMQP's stays what it is.
#[test]
fn listeners_are_told_apart() {
    let second = http_listener("    metrics: no").replace("name: web", "name: second");
    let (router, first) = router_with("", Setup { sections: &second, ..Setup::default() });
    let addresses: Vec<std::net::SocketAddr> = router
        .log()
        .iter()
        .filter(|line| line.contains("Listening for HTTP on "))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect();
    let [one, other] = addresses[..] else { panic!("{addresses:?}") };
    assert_eq!(one, first);
    assert_eq!((get(one, "/metrics").status, get(other, "/metrics").status), (200, 404));
    router.peer();
}
