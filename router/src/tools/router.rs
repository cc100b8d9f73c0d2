//! The way to the management nodes of routers.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::names::Called;
use super::options::{ConnectionOptions, TargetOptions};
use super::problem::Problem;
use crate::client::Bus;
use crate::client::management::{Entity, Fault, Management, NODE, Request};

/// A connection, and the node that is asked over it.
pub(super) struct Router {
    management: Management,
    bus: Bus,
    /// The address of the node.
    node: String,
    called: Called,
}

impl Router {
    /// Connects.
    pub(super) fn connect(
        connection: &ConnectionOptions,
        target: &TargetOptions,
        called: Called,
    ) -> Result<Self, Problem> {
        let node = match (&target.router, &target.edge_router) {
            (Some(id), _) => format!("_topo/0/{id}/{NODE}"),
            (None, Some(id)) => format!("_edge/{id}/{NODE}"),
            (None, None) => NODE.to_owned(),
        };
        let bus = connection.bus.clone();
        let management = Management::connect(&bus, connection.timeout.0, &connection.sasl, &connection.tls)
            .map_err(|fault| Problem::of(fault, &bus))?;
        Ok(Self { management, bus, node, called })
    }

    /// Asks another node from now on: `amqp:/_topo/0/ID/$management` or the like.
    pub(super) fn turn_to(&mut self, address: &str) {
        let address = address.strip_prefix("amqp:/").unwrap_or(address);
        address.clone_into(&mut self.node);
    }

    /// A request, and its reply's body.
    pub(super) fn call(&mut self, request: &Request) -> Result<Json, Problem> {
        self.management.call(&self.node, request).map_err(|fault| self.problem(fault))
    }

    /// What came of a request.
    fn problem(&self, fault: Fault) -> Problem {
        match Problem::of(fault, &self.bus) {
            // Nobody says that there is no such router: nobody is there to say it.
            Problem::TimedOut(message) if self.node != NODE => Problem::TimedOut(format!(
                "{message}\nIs there such a router in the network? 'ringmain manage get-mgmt-nodes' lists those \
                 that are known"
            )),
            other => other,
        }
    }

    /// The entities of a type (short or without prefix), or of all types.
    pub(super) fn query(
        &mut self,
        of_type: Option<&str>,
        names: &[&str],
        limit: Option<usize>,
    ) -> Result<Vec<Entity>, Problem> {
        let of_type = of_type.map(|name| self.called.long_type(name));
        self.management
            .query(&self.node, of_type.as_deref(), names, limit)
            .map_err(|fault| self.problem(fault))
    }

    /// The entities of a type that not every router knows: none where it isn't known.
    pub(super) fn query_if_known(
        &mut self,
        of_type: &str,
        limit: Option<usize>,
    ) -> Result<Vec<Entity>, Problem> {
        match self.query(Some(of_type), &[], limit) {
            Err(Problem::Refused { code: 400 | 404 | 501, .. }) => Ok(Vec::new()),
            other => other,
        }
    }

    /// The types that the router knows, without their prefix.
    pub(super) fn types(&mut self) -> Result<HashSet<String>, Problem> {
        let types =
            self.call(&Request::new("GET-TYPES").with("type", "org.amqp.management").with("name", "self"))?;
        let names = types.as_object().into_iter().flat_map(|types| types.keys());
        Ok(names.map(|name| name.strip_prefix(self.called.prefix()).unwrap_or(name).to_owned()).collect())
    }

    /// The addresses of all routers' management nodes.
    pub(super) fn nodes(&mut self) -> Result<Vec<String>, Problem> {
        let nodes = self.call(&Request::new("GET-MGMT-NODES").with("type", "org.amqp.management"))?;
        let texts = nodes.as_array().into_iter().flatten().filter_map(Json::as_str);
        Ok(texts.map(str::to_owned).collect())
    }

    /// Keeps the connection up meanwhile.
    pub(super) fn rest(&mut self, duration: core::time::Duration) -> Result<(), Problem> {
        self.management.rest(duration).map_err(|fault| Problem::of(fault, &self.bus))
    }

    /// Ends the connection.
    pub(super) fn close(self) {
        self.management.close();
    }

    /// The entity that tells of the router as a whole.
    pub(super) fn whole(&mut self) -> Result<Entity, Problem> {
        let mut whole = self.query(Some("router"), &[], None)?.pop().unwrap_or_default();
        if self.called != Called::Dispatch {
            // `skrouterd` has the numbers in an entity of their own, and some that `qdrouterd` hasn't.
            let metrics = "io.skupper.router.routerMetrics";
            for (name, value) in self.query_if_known(metrics, None)?.pop().unwrap_or_default() {
                whole.entry(name).or_insert(value);
            }
        }
        Ok(whole)
    }
}
