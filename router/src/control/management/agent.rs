//! The agent: takes requests and answers them, one after the other.

use super::addresses::{self, Addresses};
use super::configured::{self, Configuration};
use super::dialect::Dialect;
use super::entities::{self, Entity, Process, RouterFacts};
use super::field::{Field, Rows};
use super::policies::{self, Policies};

use super::follow::{Follower, Followers};
use super::logs::{self, Logs};
use super::observed::{self, Observed};
use super::query::{Page, address_row, all_names, append, columns, results, row, table};
use super::reply::{self, Answer, Refusal, Status};
use super::request::Request;
use super::schema::{self, Named};
use super::shards::{Gathered, Shards};
use crate::control::config::Config;
use crate::control::config::schema::{Category, ENTITY_TYPES, EntityType, Operation};
use crate::control::endpoints::Endpoints;
use crate::control::registry::Reconfigure;
use crate::control::service_manager;
use crate::io::uring::UringDriver;
use crate::log;
use crate::log::{Level, Module};
use crate::routing::MANAGEMENT_NODE;
use crate::routing::policy::counts::Counts;
use crate::shard::mailbox::Mailbox;
use crate::shard::survey::{AddressFacts, ConnectionFacts, LinkFacts, Subject};
use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tokio::sync::mpsc;

/// Lines that GET-LOG shows unless it is told how many.
const LOG_LINES: usize = 1000;

/// What makes an agent.
pub(in crate::control) struct Setup<'c> {
    /// What the router was started with.
    pub(in crate::control) config: &'c Config,
    /// The router's id.
    pub(in crate::control) router_id: &'c str,
    /// The mailbox of each shard.
    pub(in crate::control) mailboxes: Vec<Mailbox<UringDriver>>,
    /// Where changes of the configuration of addresses go.
    pub(in crate::control) reconfigure: mpsc::UnboundedSender<Reconfigure>,
    /// What was made of the file's listeners, connectors and auto-links, and makes more.
    pub(in crate::control) endpoints: Endpoints,
    /// What the policy counts.
    pub(in crate::control) counts: Arc<Counts>,
}

/// What answers.
pub(super) struct Agent {
    shards: Shards,
    process: Process,
    configuration: Configuration,
    addresses: Addresses,
    policies: Policies,
    logs: Logs,
    follower: Follower,
    endpoints: Endpoints,
}

impl Agent {
    /// An agent of a router that is just starting.
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let Setup { config, router_id, mailboxes, reconfigure, endpoints, counts } = setup;
        Self {
            shards: Shards::new(mailboxes),
            process: Process::new(router_id),
            configuration: Configuration::new(config, endpoints.clone(), router_id),
            addresses: Addresses::new(&config.addresses, reconfigure.clone()),
            policies: Policies::new(reconfigure, counts),
            logs: Logs::new(config),
            follower: Follower::new(config),
            endpoints,
        }
    }

    /// The shards.
    pub(super) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Opens the log's files again, for whoever has moved them away, reads the configuration again and follows what
    /// has changed in it.
    pub(super) async fn reload(&mut self) {
        service_manager::reloading();
        let Self { follower, configuration, addresses, policies, logs, endpoints, .. } = self;
        // First, so that all that follows is in the new files; and whatever the configuration has.
        logs.reopen();
        endpoints.reread_files();
        let reloaded = follower.reload(Followers { configuration, addresses, policies, logs }).await;
        service_manager::reloaded(reloaded);
    }

    /// Answers a message; `None` if nobody waits for an answer.
    pub(super) async fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let Some(request) = Request::read(message) else {
            log!(
                Module::Agent,
                Level::Debug,
                "A management request without reply-to, or that isn't a message at all, is passed over"
            );
            return None;
        };
        self.shards.forget_pages();
        let answer = self.operate(&request).await;
        Some(answer.unwrap_or_else(|refusal| {
            log!(
                Module::Agent,
                Level::Debug,
                "Management request refused: operation={} type={} name={} identity={}: {} {}",
                request.operation.unwrap_or("(none)"),
                request.of_type.or(request.entity_type).unwrap_or("(none)"),
                request.name.unwrap_or("(none)"),
                request.identity.unwrap_or("(none)"),
                refusal.status.code(),
                refusal.description
            );
            reply::message(&request, &Err(refusal))
        }))
    }

    async fn operate(&mut self, request: &Request<'_>) -> Answer {
        let operation = request.operation.ok_or_else(|| Refusal::bad("No 'operation' property"))?;
        let ok = |body: Field<'_>| Ok(reply::message(request, &Ok((Status::Ok, body))));
        let named = || request.entity_type.map(Named::find).transpose();
        match operation.to_ascii_uppercase().as_str() {
            "QUERY" => self.query(request).await,
            "READ" => self.read(request).await,
            "CREATE" => self.create(request).await,
            "UPDATE" => self.update(request).await,
            "DELETE" => self.delete(request).await,
            "GET-TYPES" => ok(schema::get_types(named()?)),
            "GET-OPERATIONS" => ok(schema::get_operations(named()?)),
            "GET-ATTRIBUTES" => ok(schema::get_attributes(named()?)),
            "GET-ANNOTATIONS" => ok(Field::Map(Vec::new())),
            "GET-MGMT-NODES" => {
                let node = format!("amqp:/_topo/0/{}/{MANAGEMENT_NODE}", self.process.router_id);
                ok(Field::List(vec![node.into()]))
            }
            "GET-SCHEMA" => ok(schema::get_schema()),
            "GET-JSON-SCHEMA" => {
                let indent = request.indent.and_then(|indent| usize::try_from(indent).ok());
                ok(Field::Text(schema::get_json_schema(indent)))
            }
            "GET-LOG" => ok(log_lines(request)),
            _ => Err(unknown_operation(request, operation)),
        }
    }

    /// Asks the shards, and says so if one doesn't answer.
    async fn ask(&mut self, subject: Subject, is_later_page: bool) -> Result<Rc<Gathered>, Refusal> {
        let answer = self.shards.ask(subject, is_later_page).await;
        answer.map_err(|why| Refusal::new(Status::InternalError, why))
    }

    async fn query(&mut self, request: &Request<'_>) -> Answer {
        let names = request.attribute_names().map_err(Refusal::bad)?;
        let page = Page::of(request);
        let Some(name) = request.entity_type else { return self.query_all(request, names, page).await };
        let named = Named::find(name)?;
        let later = page.is_later();
        match named.of.type_name {
            AddressFacts::TYPE => {
                let gathered = self.ask(Subject::Addresses, later).await?;
                table(request, named.dialect, names, page.of_all(&gathered.addresses)).await
            }
            LinkFacts::TYPE => {
                let gathered = self.ask(Subject::Links, later).await?;
                table(request, named.dialect, names, page.of_all(&gathered.links)).await
            }
            ConnectionFacts::TYPE => {
                let gathered = self.ask(Subject::Connections, later).await?;
                table(request, named.dialect, names, page.of_all(&gathered.connections)).await
            }
            addresses::TYPE => {
                let names = if names.is_empty() { addresses::columns(named.dialect) } else { names };
                let mut rows = Rows::default();
                for address in page.of_all(self.addresses.all()) {
                    rows.push(&address_row(address, &names, named.dialect));
                }
                Ok(results(request, &names, rows))
            }
            _ => {
                let names = columns(named, names)?;
                let entities = self.entities_of(named.of, &names).await?;
                let all: Vec<_> =
                    entities.iter().filter_map(|entity| row(entity, &names, named.dialect)).collect();
                let mut rows = Rows::default();
                page.of_all(&all).iter().for_each(|row| rows.push(row));
                Ok(results(request, &names, rows))
            }
        }
    }

    /// All entities, whatever their type.
    async fn query_all(&mut self, request: &Request<'_>, names: Vec<&str>, page: Page) -> Answer {
        let dialect = Dialect::default();
        let names = if names.is_empty() { all_names(dialect) } else { names };
        let mut all = Vec::new();
        for of in ENTITY_TYPES {
            all.extend(self.entities_of(of, &names).await?);
        }
        // Each of these answers is kept for later pages only until the next one: a tool that wants pages asks
        // for one type.
        let connections = self.ask(Subject::Connections, false).await?;
        let links = self.ask(Subject::Links, false).await?;
        let addresses = self.ask(Subject::Addresses, false).await?;
        let few = all.iter().filter_map(|entity| row(entity, &names, dialect));
        let configured = self.addresses.all().iter().map(|address| address_row(address, &names, dialect));
        let few: Vec<Vec<Field<'_>>> = few.chain(configured).collect();
        let mut rows = Rows::default();
        page.of_all(&few).iter().for_each(|row| rows.push(row));
        let page = page.behind(few.len());
        append(&mut rows, &names, dialect, page.of_all(&connections.connections)).await?;
        let page = page.behind(connections.connections.len());
        append(&mut rows, &names, dialect, page.of_all(&links.links)).await?;
        let page = page.behind(links.links.len());
        append(&mut rows, &names, dialect, page.of_all(&addresses.addresses)).await?;
        Ok(results(request, &names, rows))
    }

    /// The entities of a type of which there are few. What takes a survey is in them only if it is among the
    /// `names` that are wanted.
    async fn entities_of(&mut self, of: &'static EntityType, names: &[&str]) -> Result<Vec<Entity>, Refusal> {
        match of.type_name {
            "management" => Ok(entities::management().into_iter().collect()),
            "router.node" => Ok(self.process.node().into_iter().collect()),
            "logStats" => Ok(entities::log_stats()),
            logs::TYPE => Ok(self.logs.entities()),
            "latency" => Ok(entities::latencies(&*self.ask(Subject::Meters, false).await?)),
            "allocator" => Ok(entities::allocators(&*self.ask(Subject::Totals, false).await?)),
            "router" => {
                let mut router = self.configuration.entities(of);
                for entity in &mut router {
                    self.report_router(entity, names).await?;
                }
                Ok(router)
            }
            "routerMetrics" => {
                let mut metrics =
                    Entity::new("routerMetrics", format!("routerMetrics/{}", self.process.router_id));
                if let Some(entity) = &mut metrics {
                    self.report_router(entity, names).await?;
                }
                Ok(metrics.into_iter().collect())
            }
            policies::STATS_TYPE => Ok(self.policies.stats(self.configuration.config())),
            "policy" => {
                let mut policy = self.configuration.entities(of);
                policy.iter_mut().for_each(|entity| self.policies.report(entity));
                Ok(policy)
            }
            _ => Ok(self.configuration.entities(of)),
        }
    }

    async fn report_router(&mut self, entity: &mut Entity, names: &[&str]) -> Result<(), Refusal> {
        let wants = |wanted: &[&str]| names.iter().any(|name| wanted.contains(name));
        let totals = self.ask(Subject::Totals, false).await?;
        let addresses =
            if wants(&["addrCount"]) { Some(self.ask(Subject::Addresses, false).await?) } else { None };
        let links = if wants(&["blockedLinkCount", "linksBlocked", "deliveriesStuck"]) {
            Some(self.ask(Subject::Links, false).await?)
        } else {
            None
        };
        let facts = RouterFacts {
            totals: &totals,
            addresses: addresses.as_deref(),
            links: links.as_deref(),
            auto_links: self.configuration.auto_links(),
        };
        self.process.report(entity, &facts);
        Ok(())
    }

    async fn read(&mut self, request: &Request<'_>) -> Answer {
        let (name, identity) = (request.name, request.identity);
        let Some(named) = of_type(request)? else { return self.read_any(request).await };
        if name.is_none() && identity.is_none() {
            return Err(not_named(named));
        }
        let dialect = named.dialect;
        match named.of.type_name {
            AddressFacts::TYPE => {
                read_observed(request, dialect, &self.ask(Subject::Addresses, false).await?.addresses)
            }
            LinkFacts::TYPE => read_observed(request, dialect, &self.ask(Subject::Links, false).await?.links),
            ConnectionFacts::TYPE => {
                read_observed(request, dialect, &self.ask(Subject::Connections, false).await?.connections)
            }
            addresses::TYPE => match self.addresses.find(name, identity) {
                Some(address) => Ok(reply::message(request, &Ok((Status::Ok, address.map(dialect))))),
                None => Err(Refusal::bare(Status::NotFound)),
            },
            _ => {
                let names: Vec<&str> = schema::attribute_names(named.of, dialect).collect();
                let entities = self.entities_of(named.of, &names).await?;
                match pick(&entities, name, identity)? {
                    Some(entity) => Ok(reply::message(request, &Ok((Status::Ok, entity.map(dialect))))),
                    None => Err(self.not_found(named, name, identity).await),
                }
            }
        }
    }

    /// READ without a type: the management node, or whatever is called so.
    async fn read_any(&mut self, request: &Request<'_>) -> Answer {
        let dialect = Dialect::default();
        let (name, identity) = (request.name, request.identity);
        let (name, identity) =
            if name.is_none() && identity.is_none() { (Some("self"), None) } else { (name, identity) };
        for of in ENTITY_TYPES {
            let names: Vec<&str> = schema::attribute_names(of, dialect).collect();
            let entities = self.entities_of(of, &names).await?;
            if let Some(entity) = pick(&entities, name, identity)? {
                return Ok(reply::message(request, &Ok((Status::Ok, entity.map(dialect)))));
            }
        }
        match self.addresses.all().iter().find(|address| name.is_some() && address.name() == name) {
            Some(address) if identity.is_none() => {
                Ok(reply::message(request, &Ok((Status::Ok, address.map(dialect)))))
            }
            Some(_) | None => Err(no_entity(name, identity)),
        }
    }

    /// Why there is no such entity: something of another type may be called so.
    async fn not_found(&mut self, named: Named, name: Option<&str>, identity: Option<&str>) -> Refusal {
        for of in ENTITY_TYPES.iter().filter(|of| of.type_name != named.of.type_name) {
            let Ok(entities) = self.entities_of(of, &[]).await else { continue };
            if let Ok(Some(found)) = pick(&entities, name, identity) {
                return Refusal::bad(format!(
                    "Entity type '{}' does not match requested type '{}'",
                    named.dialect.full_name(found.of.type_name),
                    named.full_name()
                ));
            }
        }
        no_entity(name, identity)
    }

    async fn create(&mut self, request: &Request<'_>) -> Answer {
        let Some(named) = of_type(request)? else {
            return Err(Refusal::bad("No 'type' property: CREATE needs one"));
        };
        if !named.of.operations.contains(&Operation::Create) {
            return Err(not_allowed(named, "CREATE"));
        }
        let attributes = request.attributes().map_err(Refusal::bad)?;
        match named.of.type_name {
            addresses::TYPE => {
                let address = self.addresses.create(request.name, &attributes).await?;
                log!(
                    Module::Agent,
                    Level::Info,
                    "Created {} {}",
                    named.of.name,
                    request.name.unwrap_or("without a name")
                );
                Ok(reply::message(request, &Ok((Status::Created, address.map(named.dialect)))))
            }
            _ if configured::is_made_here(named.of) => {
                check_attributes(named, &attributes)?;
                let entity = self.configuration.create(named, request.name, &attributes)?;
                self.follow_policy(named).await;
                log!(Module::Agent, Level::Info, "Created {}", entity.identity);
                Ok(reply::message(request, &Ok((Status::Created, entity.map(named.dialect)))))
            }
            _ => {
                check_attributes(named, &attributes)?;
                Err(not_yet(named, "CREATE"))
            }
        }
    }

    async fn delete(&mut self, request: &Request<'_>) -> Answer {
        let named = self.type_of_named(request).await?;
        if !named.of.operations.contains(&Operation::Delete) {
            return Err(not_allowed(named, "DELETE"));
        }
        if request.name.is_none() && request.identity.is_none() {
            return Err(not_named(named));
        }
        let deleted = match named.of.type_name {
            addresses::TYPE => self.addresses.delete(request.name, request.identity).await,
            _ => {
                let entities = self.entities_of(named.of, &[]).await?;
                let Some(entity) = pick(&entities, request.name, request.identity)? else {
                    return Err(self.not_found(named, request.name, request.identity).await);
                };
                if !configured::is_made_here(named.of) {
                    return Err(not_yet(named, "DELETE"));
                }
                let is_deleted = self.configuration.delete(named.of, &entity.identity)?;
                self.follow_policy(named).await;
                is_deleted
            }
        };
        if !deleted {
            return Err(Refusal::bare(Status::NotFound));
        }
        let called = request.identity.or(request.name).unwrap_or_default();
        log!(Module::Agent, Level::Info, "Deleted {} {called}", named.of.name);
        Ok(reply::message(request, &Ok((Status::NoContent, Field::Map(Vec::new())))))
    }

    async fn update(&mut self, request: &Request<'_>) -> Answer {
        let named = self.type_of_named(request).await?;
        let attributes = request.attributes().map_err(Refusal::bad)?;
        match named.of.type_name {
            ConnectionFacts::TYPE => self.update_connection(request, named, &attributes).await,
            LinkFacts::TYPE => {
                // There is nothing that could be changed; `qdrouterd` takes an adminStatus and does nothing.
                read_observed(request, named.dialect, &self.ask(Subject::Links, false).await?.links)
            }
            logs::TYPE => {
                if request.name.is_none() && request.identity.is_none() {
                    return Err(not_named(named));
                }
                let full = named.full_name();
                match self.logs.update(request.name, request.identity, &attributes, &full)? {
                    Some(entity) => Ok(reply::message(request, &Ok((Status::Ok, entity.map(named.dialect))))),
                    None => Err(self.not_found(named, request.name, request.identity).await),
                }
            }
            _ if policies::is_of_policy(named.of.type_name) => {
                let entities = self.entities_of(named.of, &[]).await?;
                if request.name.is_none() && request.identity.is_none() {
                    return Err(not_named(named));
                }
                let Some(found) = pick(&entities, request.name, request.identity)? else {
                    return Err(self.not_found(named, request.name, request.identity).await);
                };
                check_attributes(named, &attributes)?;
                let entity = self.configuration.update(named.of, &found.identity, &attributes)?;
                self.follow_policy(named).await;
                log!(Module::Agent, Level::Info, "Updated {}", entity.identity);
                Ok(reply::message(request, &Ok((Status::Ok, entity.map(named.dialect)))))
            }
            "sslProfile" => {
                let entities = self.entities_of(named.of, &[]).await?;
                let Some(entity) = pick(&entities, request.name, request.identity)? else {
                    return Err(self.not_found(named, request.name, request.identity).await);
                };
                let updated = self.configuration.update_profile(&entity.identity, &attributes)?;
                Ok(reply::message(request, &Ok((Status::Ok, updated.map(named.dialect)))))
            }
            _ if named.of.operations.contains(&Operation::Update) => Err(not_yet(named, "UPDATE")),
            _ => Err(not_allowed(named, "UPDATE")),
        }
    }

    /// UPDATE of a connection: with adminStatus `deleted` it is closed, with enableProtocolTrace its frames are logged.
    async fn update_connection(
        &mut self,
        request: &Request<'_>,
        named: Named,
        attributes: &[(&str, ringmain_codec::Value<'_>)],
    ) -> Answer {
        let gathered = self.ask(Subject::Connections, false).await?;
        let found = request
            .identity
            .and_then(|identity| gathered.connections.iter().find(|facts| facts.id.to_string() == identity));
        let Some(facts) = found else { return Err(Refusal::bare(Status::BadRequest)) };
        let mut deletes = false;
        let mut trace = None;
        for (name, value) in attributes {
            match (*name, value.as_str(), value.as_bool()) {
                ("adminStatus", Some("deleted"), _) => deletes = true,
                ("adminStatus", Some("enabled"), _) => {}
                ("enableProtocolTrace", text, flag) => {
                    // The tools send texts.
                    let flag = flag.or_else(|| text.and_then(truth));
                    trace = Some(flag.ok_or_else(|| Refusal::bare(Status::BadRequest))?);
                }
                ("identity" | "name" | "type", _, _) => {}
                _ => return Err(Refusal::bare(Status::BadRequest)),
            }
        }
        let mut facts = facts.clone();
        if let Some(is_on) = trace {
            let traced = self.shards.trace(facts.shard, facts.key, is_on).await;
            if !traced.map_err(|why| Refusal::new(Status::InternalError, why))? {
                return Err(Refusal::bare(Status::NotFound));
            }
            facts.is_traced = is_on;
        }
        let mut body = observed::attributes(&facts, named.dialect);
        if deletes {
            let closed = self.shards.close(facts.shard, facts.key).await;
            let closed = closed.map_err(|why| Refusal::new(Status::InternalError, why))?;
            if !closed {
                return Err(Refusal::bare(Status::NotFound));
            }
            if let Field::Map(entries) = &mut body {
                for (name, value) in entries {
                    if name == "adminStatus" {
                        *value = Field::text("deleted");
                    }
                }
            }
        }
        Ok(reply::message(request, &Ok((Status::Ok, body))))
    }

    /// Lets the shards follow what has changed, if that is of the policy.
    async fn follow_policy(&self, named: Named) {
        if policies::is_of_policy(named.of.type_name) {
            self.policies.publish(self.configuration.config()).await;
        }
    }

    /// The type that DELETE and UPDATE are about: the given one, or that of what is called so.
    async fn type_of_named(&mut self, request: &Request<'_>) -> Result<Named, Refusal> {
        if let Some(named) = of_type(request)? {
            return Ok(named);
        }
        let dialect = Dialect::default();
        let (name, identity) = match (request.name, request.identity) {
            (None, None) => (Some("self"), None),
            given => given,
        };
        for of in ENTITY_TYPES {
            let entities = self.entities_of(of, &[]).await?;
            if pick(&entities, name, identity)?.is_some() {
                return Ok(Named { of, dialect });
            }
        }
        if let Some(address) = self.addresses.find(name, None)
            && address.name().is_some()
            && let Some(of) = EntityType::find_type(addresses::TYPE)
        {
            return Ok(Named { of, dialect });
        }
        Err(no_entity(name, identity))
    }
}

/// The type of the entity that a request is about; none if that is the management node, or left open.
fn of_type(request: &Request<'_>) -> Result<Option<Named>, Refusal> {
    let Some(name) = request.of_type else { return Ok(None) };
    if name == "org.amqp.management" {
        let of = EntityType::find_type("management");
        return Ok(of.map(|of| Named { of, dialect: Dialect::default() }));
    }
    Named::find(name).map(Some)
}

/// The entity that is called so: by its name, by its identity, or by both.
///
/// # Errors
/// One has the name and not the identity, or the other way round.
fn pick<'e>(
    entities: &'e [Entity],
    name: Option<&str>,
    identity: Option<&str>,
) -> Result<Option<&'e Entity>, Refusal> {
    let has_name = |entity: &Entity| name.is_none_or(|name| entity.name == name);
    let has_identity = |entity: &Entity| identity.is_none_or(|identity| entity.identity == identity);
    if let Some(found) = entities.iter().find(|entity| has_name(entity) && has_identity(entity)) {
        return Ok(Some(found));
    }
    match (name, identity) {
        (Some(name), Some(identity))
            if entities.iter().any(|entity| has_name(entity) || has_identity(entity)) =>
        {
            Err(Refusal::bad(format!("Conflicting name={name} identity={identity}")))
        }
        (Some(_), Some(_)) | (None, _) | (_, None) => Ok(None),
    }
}

/// What a text says that stands for a boolean.
fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn no_entity(name: Option<&str>, identity: Option<&str>) -> Refusal {
    let by = [("name", name), ("identity", identity)];
    let by = by.iter().filter_map(|(by, what)| Some(format!("{by}={}", (*what)?)));
    Refusal::new(Status::NotFound, format!("No entity with {}", by.collect::<Vec<_>>().join(" ")))
}

fn not_named(named: Named) -> Refusal {
    Refusal::bad(format!("{}: No name or identity provided", named.full_name()))
}

/// The answer to an operation that the schema doesn't have for a type.
fn not_allowed(named: Named, operation: &str) -> Refusal {
    // What `qdrouterd`'s core answers for, it answers like this.
    let is_core = [AddressFacts::TYPE, LinkFacts::TYPE, ConnectionFacts::TYPE, addresses::TYPE]
        .contains(&named.of.type_name)
        || (named.of.type_name == "router" && named.dialect == Dialect::Dispatch);
    if is_core {
        return Refusal::bare(Status::Forbidden).of_core();
    }
    not_implemented(named, operation)
}

fn not_implemented(named: Named, operation: &str) -> Refusal {
    let known: Vec<String> = named.of.operations.iter().map(|known| format!("'{}'", known.name())).collect();
    let text =
        format!("Operation '{operation}' not implemented for '{}' [{}]", named.full_name(), known.join(", "));
    Refusal::new(Status::NotImplemented, text)
}

/// The answer to an operation that the schema has and this version of the router hasn't.
fn not_yet(named: Named, operation: &str) -> Refusal {
    let text = format!(
        "{operation} of '{}' isn't available in this version of the router; change the configuration file and restart it",
        named.full_name()
    );
    Refusal::new(Status::NotImplemented, text)
}

fn unknown_operation(request: &Request<'_>, operation: &str) -> Refusal {
    match of_type(request) {
        Err(refusal) => refusal,
        Ok(Some(named)) if named.of.category == Category::Management => not_implemented(named, operation),
        Ok(Some(named)) if request.name.is_none() && request.identity.is_none() => not_named(named),
        Ok(Some(named)) => not_implemented(named, operation),
        Ok(None) => match Named::find("management") {
            Ok(named) => not_implemented(named, operation),
            Err(refusal) => refusal,
        },
    }
}

/// Holds the attributes of a CREATE against the schema.
fn check_attributes(named: Named, attributes: &[(&str, ringmain_codec::Value<'_>)]) -> Result<(), Refusal> {
    for (name, _) in attributes {
        if *name == "identity" {
            return Err(Refusal::bad("Cannot set attribute 'identity' in CREATE"));
        }
        if *name != "type" && named.of.attribute(name).is_none() {
            return Err(Refusal::bad(format!("Unknown attribute '{name}' for '{}'", named.full_name())));
        }
    }
    Ok(())
}

fn read_observed<F: Observed>(request: &Request<'_>, dialect: Dialect, facts: &[F]) -> Answer {
    let is_it = |fact: &&F| match (request.identity, request.name) {
        (Some(identity), _) => fact.identity(dialect) == identity,
        (None, Some(name)) => fact.name(dialect) == name,
        (None, None) => false,
    };
    match facts.iter().find(is_it) {
        Some(fact) => Ok(reply::message(request, &Ok((Status::Ok, observed::attributes(fact, dialect))))),
        None => Err(Refusal::bare(Status::NotFound)),
    }
}

/// The last lines of the log, each a list: module, level, text, file, line, time.
fn log_lines<'a>(request: &Request<'_>) -> Field<'a> {
    let limit = request.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LOG_LINES);
    let line = |line: log::RecentLine| {
        let at = line.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Field::List(vec![
            Field::text(line.module.name()),
            Field::text(line.level.name()),
            Field::from(line.text),
            Field::text(line.file),
            Field::Int(i32::try_from(line.line).unwrap_or(i32::MAX)),
            Field::Double(at.as_secs_f64()),
        ])
    };
    Field::List(log::recent(limit).into_iter().map(line).collect())
}
