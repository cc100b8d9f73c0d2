//! `ringmain manage`: one request to a management node, its reply as JSON.

use std::io::{self, Read as _, Write as _};

use serde::Serialize as _;
use serde_json::{Value as Json, json};

use super::names::Called;
use super::options::ManageOptions;
use super::problem::Problem;
use super::router::Router;
use super::save;
use crate::client::management::Request;
use crate::control::config::did_you_mean;
use crate::control::config::schema::{EntityType, Kind};

/// The most that is read from standard input, in bytes.
const STDIN_BYTES_MAX: u64 = 64 << 20;

/// Does what the options ask for.
///
/// # Errors
/// [`Problem`]: the arguments make no sense, the router can't be asked or refuses.
pub fn manage(options: &ManageOptions, called: Called) -> Result<(), Problem> {
    let manager = Manager { options, called };
    // What is wrong with the arguments is found before anything is asked.
    let job = manager.job()?;
    let mut router = Router::connect(&options.connection, &options.target, called)?;
    let done = manager.run(job, &mut router);
    if done.as_ref().err().is_none_or(Problem::leaves_connection) {
        router.close();
    }
    done
}

/// What is to be done.
enum Job {
    Save,
    Query(Vec<String>),
    /// One request after the other. True: their replies are a list.
    Bulk(Vec<Request>, bool),
    /// Nothing is printed of the reply.
    Quiet(Request),
    Show(Request),
}

struct Manager<'o> {
    options: &'o ManageOptions,
    called: Called,
}

impl Manager<'_> {
    fn job(&self) -> Result<Job, Problem> {
        if self.options.save.is_some() {
            return Ok(Job::Save);
        }
        let operation = self.options.operation.as_deref().unwrap_or("").to_ascii_uppercase();
        let is_change = ["CREATE", "UPDATE"].contains(&operation.as_str());
        if !is_change && (self.options.stdin || self.options.attributes.is_some()) {
            return Err(Problem::usage("--stdin and --attributes go with CREATE and UPDATE only"));
        }
        match operation.as_str() {
            "QUERY" => Ok(Job::Query(self.options.arguments.clone())),
            "CREATE" => self.bulk("CREATE"),
            "UPDATE" => self.bulk("UPDATE"),
            "READ" => self.no_arguments().map(|()| Job::Show(self.of_entity("READ"))),
            "DELETE" => self.no_arguments().map(|()| Job::Quiet(self.of_entity("DELETE"))),
            "GET-MGMT-NODES" => self.no_arguments().map(|()| Job::Show(self.about_types(&operation, None))),
            "GET-TYPES" | "GET-ATTRIBUTES" | "GET-OPERATIONS" | "GET-ANNOTATIONS" => {
                let of_type = match (&self.options.r#type, self.options.arguments.as_slice()) {
                    (Some(of_type), []) => Some(of_type.as_str()),
                    (None, [of_type]) => Some(of_type.as_str()),
                    (None, []) => None,
                    (_, more) => return Err(unexpected(&more[usize::from(self.options.r#type.is_none())..])),
                };
                Ok(Job::Show(self.about_types(&operation, of_type)))
            }
            _ => self.other(&operation).map(Job::Show),
        }
    }

    fn run(&self, job: Job, router: &mut Router) -> Result<(), Problem> {
        match job {
            Job::Save => save::save(router, self.options.save.as_deref().unwrap_or("-".as_ref())),
            Job::Query(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let entities = router.query(self.options.r#type.as_deref(), &names, None)?;
                self.print(&Json::Array(entities.into_iter().map(Json::Object).collect()))
            }
            Job::Bulk(requests, is_list) => {
                let mut replies = Vec::new();
                for note in requests.iter().flat_map(passed_over) {
                    // The former tools say nothing of it, and what they print is read by scripts.
                    if self.called == Called::Ringmain {
                        eprintln!("ringmain: warning: {note}");
                    }
                }
                for request in &requests {
                    match router.call(request) {
                        Ok(reply) => replies.push(reply),
                        Err(problem) => {
                            // What is done is done, and the user should know.
                            if !replies.is_empty() {
                                self.print(&Json::Array(replies))?;
                            }
                            return Err(problem);
                        }
                    }
                }
                match replies.pop() {
                    Some(reply) if !is_list => self.print(&reply),
                    last => {
                        replies.extend(last);
                        self.print(&Json::Array(replies))
                    }
                }
            }
            Job::Quiet(request) => router.call(&request).map(|_| ()),
            Job::Show(request) => match router.call(&request)? {
                Json::String(text) => write_out(&text),
                reply => self.print(&reply),
            },
        }
    }

    fn no_arguments(&self) -> Result<(), Problem> {
        if self.options.arguments.is_empty() { Ok(()) } else { Err(unexpected(&self.options.arguments)) }
    }

    /// The type that is asked for, its whole name.
    fn long_type(&self) -> Option<String> {
        self.options.r#type.as_deref().map(|name| self.called.long_type(name))
    }

    /// A request about the entity that the options name.
    fn of_entity(&self, operation: &str) -> Request {
        Request::new(operation)
            .with("type", self.long_type().as_deref())
            .with("name", self.options.name.as_deref())
            .with("identity", self.options.identity.as_deref())
    }

    /// A request about types rather than entities.
    fn about_types(&self, operation: &str, of_type: Option<&str>) -> Request {
        let of_type = of_type.map(|name| self.called.long_type(name));
        Request::new(operation)
            .with("type", "org.amqp.management")
            .with("name", "self")
            .with("entityType", of_type.as_deref())
    }

    /// CREATE or UPDATE: one request for each set of attributes.
    fn bulk(&self, operation: &str) -> Result<Job, Problem> {
        let given = match (&self.options.attributes, self.options.stdin) {
            (Some(text), _) => parse_json(text, "--attributes")?,
            (None, true) => {
                let mut text = String::new();
                let read = io::stdin().lock().take(STDIN_BYTES_MAX).read_to_string(&mut text);
                read.map_err(|error| Problem::Local(format!("can't read standard input: {error}")))?;
                parse_json(&text, "standard input")?
            }
            (None, false) => json!({}),
        };
        let (sets, is_list) = match given {
            Json::Array(sets) => (sets, true),
            one => (vec![one], false),
        };
        let mut requests = Vec::new();
        for set in sets {
            let Json::Object(mut attributes) = set else {
                return Err(Problem::usage("the attributes must be a JSON map, or a list of such maps"));
            };
            let of_type = match attributes.get("type") {
                Some(Json::String(name)) => Some(self.called.long_type(name)),
                Some(_) | None => self.long_type(),
            };
            let schema = of_type.as_deref().and_then(find_type);
            for argument in &self.options.arguments {
                let (name, value) = attribute(argument, schema)?;
                attributes.insert(name, value);
            }
            if let Some(of_type) = &of_type
                && attributes.contains_key("type")
            {
                attributes.insert("type".to_owned(), of_type.clone().into());
            }
            let named = |key: &str, option: &Option<String>| {
                option.clone().or_else(|| attributes.get(key).and_then(Json::as_str).map(str::to_owned))
            };
            let name = named("name", &self.options.name);
            let identity =
                if operation == "UPDATE" { named("identity", &self.options.identity) } else { None };
            let request = Request::new(operation)
                .with("type", of_type.as_deref())
                .with("name", name.as_deref())
                .with("identity", identity.as_deref());
            requests.push(request.with_body(Json::Object(attributes)));
        }
        Ok(Job::Bulk(requests, is_list))
    }

    /// An operation that isn't one of the standard's: arguments and `--properties` are its properties.
    fn other(&self, operation: &str) -> Result<Request, Problem> {
        let mut request = self.of_entity(operation);
        let schema = self.long_type().as_deref().and_then(find_type);
        for argument in &self.options.arguments {
            let (name, value) = attribute(argument, schema)?;
            request.properties.insert(name, value);
        }
        if let Some(text) = &self.options.properties {
            let Json::Object(properties) = parse_json(text, "--properties")? else {
                return Err(Problem::usage("--properties must be a JSON map"));
            };
            request.properties.extend(properties);
        }
        if operation == "GET-JSON-SCHEMA" && self.options.indent >= 0 {
            request.properties.entry("indent").or_insert_with(|| self.options.indent.into());
        }
        if let Some(text) = &self.options.body {
            // What doesn't look like JSON is a text.
            let is_meant_as_json = text.contains(['"', '{', '}', '[', ']']);
            request.body = match parse_json(text, "--body") {
                Ok(body) => body,
                Err(problem) if is_meant_as_json => return Err(problem),
                Err(_) => text.clone().into(),
            };
        }
        Ok(request)
    }

    fn print(&self, reply: &Json) -> Result<(), Problem> {
        let mut text = Vec::new();
        // Writing text into memory can't fail.
        let _written = match usize::try_from(self.options.indent) {
            Ok(indent) => {
                let blanks = vec![b' '; indent];
                let formatter = serde_json::ser::PrettyFormatter::with_indent(&blanks);
                reply.serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter))
            }
            Err(_) => serde_json::to_writer(&mut text, reply),
        };
        write_out(&String::from_utf8_lossy(&text))
    }
}

fn write_out(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Problem::of_output(&error))
}

fn unexpected(arguments: &[String]) -> Problem {
    Problem::usage(format!("Unexpected arguments: {}", arguments.join(" ")))
}

fn parse_json(text: &str, whence: &str) -> Result<Json, Problem> {
    serde_json::from_str(text).map_err(|error| Problem::usage(format!("{whence} isn't JSON: {error}")))
}

/// What of a request to make an address the router passes over without a word, as `qdrouterd` does: attributes that
/// an address doesn't have, and words that mean nothing.
fn passed_over(request: &Request) -> Vec<String> {
    let of_type = request.properties.get("type").and_then(Json::as_str);
    let is_create = request.properties.get("operation").and_then(Json::as_str) == Some("CREATE");
    let of = of_type.and_then(find_type).filter(|of| is_create && of.name == "address");
    let (Some(of), Some(attributes)) = (of, request.body.as_object()) else { return Vec::new() };
    let note = |(name, value): (&String, &Json)| {
        if ["name", "type", "identity"].contains(&name.as_str()) {
            return None;
        }
        let Some((_, attribute)) = of.attribute(name) else {
            let hint = did_you_mean(name, of.attributes.iter().map(|attribute| attribute.name));
            return Some(format!("an address has no attribute '{name}', so the router passes over it{hint}"));
        };
        let Kind::Enumeration(words) = attribute.kind else { return None };
        if value.as_str().is_none_or(|word| words.contains(&word)) {
            return None;
        }
        let allowed = words.join(", ");
        Some(format!(
            "'{name}' is {value}, which means nothing; it may be one of {allowed}, and the router takes its default"
        ))
    };
    attributes.iter().filter_map(note).collect()
}

/// The schema of a type by its whole name.
fn find_type(name: &str) -> Option<&'static EntityType> {
    let prefixes = [Called::Dispatch.prefix(), Called::Skupper.prefix()];
    let short = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    EntityType::find_type(short)
}

/// Reads `NAME=VALUE`; without a value, null is meant. What the schema knows as a number becomes one.
fn attribute(text: &str, schema: Option<&EntityType>) -> Result<(String, Json), Problem> {
    let Some((name, value)) = text.split_once('=') else { return Ok((text.to_owned(), Json::Null)) };
    if name.is_empty() {
        return Err(Problem::usage(format!("'{text}': write NAME=VALUE")));
    }
    let kind = schema.and_then(|of| of.attribute(name)).map(|(_, attribute)| attribute.kind);
    let json = match (value, kind) {
        ("true", _) => true.into(),
        ("false", _) => false.into(),
        (_, Some(Kind::Integer { .. })) => {
            let number: i64 = value
                .parse()
                .map_err(|_| Problem::usage(format!("{name} must be a whole number, not '{value}'")))?;
            number.into()
        }
        (_, Some(Kind::Properties | Kind::Entities(_) | Kind::List)) => parse_json(value, name)?,
        (
            _,
            Some(
                Kind::Boolean
                | Kind::String
                | Kind::Path
                | Kind::Host
                | Kind::Port
                | Kind::Enumeration(_)
                | Kind::Words { .. }
                | Kind::LogLevels,
            )
            | None,
        ) => value.into(),
    };
    Ok((name.to_owned(), json))
}

#[cfg(test)]
mod tests {
    use super::{Job, Manager, attribute, find_type, passed_over};
    use crate::cli::{Cli, Command};
    use crate::client::management::Request;
    use crate::tools::names::Called;
    use serde_json::json;

    fn job(line: &str) -> Result<Job, String> {
        let cli = Cli::parse_arguments(line.split(' ')).map_err(|exit| format!("{exit:?}"))?;
        let Some(Command::Manage(options)) = cli.command else { panic!("not manage") };
        let manager = Manager { options: &options, called: Called::Ringmain };
        manager.job().map_err(|problem| format!("{problem:?}"))
    }

    fn one(line: &str) -> Request {
        match job(line).unwrap() {
            Job::Show(request) | Job::Quiet(request) => request,
            Job::Bulk(mut requests, false) => requests.pop().unwrap(),
            _ => panic!("{line}"),
        }
    }

    /// What the properties are, router-protocol reference §10.2 says.
    #[test]
    fn requests_for_the_standard_operations() {
        let listener = "org.apache.qpid.dispatch.listener";
        let create = one("ringmain manage create --type listener --name l port=5673 http=true cost=7 host=h");
        assert_eq!(json!(create.properties), json!({"operation": "CREATE", "type": listener, "name": "l"}));
        assert_eq!(create.body, json!({"port": "5673", "http": true, "cost": 7, "host": "h"}));
        let read = one("ringmain manage READ --type=router.link --identity 7");
        let link = "org.apache.qpid.dispatch.router.link";
        assert_eq!(json!(read.properties), json!({"operation": "READ", "type": link, "identity": "7"}));
        let types = one("ringmain manage get-types listener");
        assert_eq!(types.properties["entityType"], listener);
        assert_eq!(types.properties["operation"], "GET-TYPES");
        let update = one("ringmain manage update --identity 3 --type connection adminStatus=deleted");
        assert_eq!(update.properties["identity"], "3");
        assert_eq!(update.body, json!({"adminStatus": "deleted"}));
        let log = one("ringmain manage get-log limit=5");
        assert_eq!(json!(log.properties), json!({"operation": "GET-LOG", "limit": "5"}));
    }

    #[test]
    fn attributes_as_json() {
        let line = r#"ringmain manage create --type address --attributes {"prefix":"a","priority":3} distribution=multicast"#;
        let request = one(line);
        assert_eq!(request.body, json!({"prefix": "a", "priority": 3, "distribution": "multicast"}));
        let line = r#"ringmain manage create --attributes [{"type":"listener","name":"x","port":1},{"type":"address","prefix":"b"}]"#;
        let Ok(Job::Bulk(requests, true)) = job(line) else { panic!() };
        assert_eq!(requests[0].properties["name"], "x");
        assert_eq!(requests[1].properties["type"], "org.apache.qpid.dispatch.router.config.address");
        assert_eq!(requests[1].body["type"], requests[1].properties["type"]);
    }

    #[test]
    fn what_the_router_would_pass_over_is_said() {
        let notes = |line| passed_over(&one(line));
        let line = "ringmain manage create --type address --name a prefix=a distrbution=closest";
        assert_eq!(
            notes(line),
            [
                "an address has no attribute 'distrbution', so the router passes over it; did you mean 'distribution'?"
            ]
        );
        let line = "ringmain manage create --type address prefix=a distribution=nearest";
        assert!(notes(line)[0].contains("'distribution' is \"nearest\""), "{:?}", notes(line));
        for line in [
            "ringmain manage create --type address --name a prefix=a distribution=closest waypoint=true",
            "ringmain manage create --type listener colour=red",
            "ringmain manage update --type address colour=red",
        ] {
            assert_eq!(notes(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn arguments_that_make_no_sense() {
        for (line, said) in [
            ("ringmain manage read --name a extra", "Unexpected arguments: extra"),
            ("ringmain manage create --type listener cost=x", "cost must be a whole number"),
            ("ringmain manage create --type listener =x", "write NAME=VALUE"),
            ("ringmain manage create --attributes {", "isn't JSON"),
            ("ringmain manage create --attributes 7", "must be a JSON map"),
            ("ringmain manage query --stdin", "CREATE and UPDATE only"),
        ] {
            let problem = job(line).err().unwrap();
            assert!(problem.contains(said), "{line}: {problem}");
        }
    }

    #[test]
    fn values_of_attributes() {
        let of = |text| attribute(text, find_type("org.apache.qpid.dispatch.connector")).unwrap().1;
        assert_eq!(of("cost=3"), json!(3));
        assert_eq!(of("port=amqp"), json!("amqp"));
        assert_eq!(of("verifyHostname=false"), json!(false));
        assert_eq!(of("host"), json!(null));
        assert_eq!(of("saslPassword=a=b"), json!("a=b"));
        assert_eq!(of("openProperties={\"a\":1}"), json!({"a": 1}));
    }
}
