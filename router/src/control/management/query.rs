//! QUERY: pages, columns and rows.

use super::addresses::Address;
use super::dialect::Dialect;
use super::entities::Entity;
use super::field::{Field, Rows};
use super::observed::{self, Observed};
use super::reply::{self, Answer, Refusal, Status};
use super::request::Request;
use super::schema::{self, Named};
use super::shards::AT_ONCE;
use crate::control::config::schema::ENTITY_TYPES;
use std::borrow::Cow;

/// The largest table that one reply may have.
const RESULTS_BYTES_MAX: usize = 256 << 20;

/// What a table's reply has beside its rows, roughly.
const RESULTS_OVERHEAD_BYTES: usize = 4096;

/// Which of the results a QUERY wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    offset: usize,
    count: usize,
}

impl Page {
    pub(super) fn of(request: &Request<'_>) -> Self {
        let number = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        Self {
            offset: number(request.offset).unwrap_or(0),
            count: number(request.count).unwrap_or(usize::MAX),
        }
    }

    /// What it has of all results.
    pub(super) fn of_all<T>(self, results: &[T]) -> &[T] {
        let start = self.offset.min(results.len());
        &results[start..start.saturating_add(self.count).min(results.len())]
    }

    /// What of it lies behind so many results.
    pub(super) fn behind(self, results: usize) -> Self {
        let taken = results.saturating_sub(self.offset).min(self.count);
        Self { offset: self.offset.saturating_sub(results), count: self.count - taken }
    }

    pub(super) fn is_later(self) -> bool {
        self.offset > 0
    }
}

/// The columns of a QUERY for entities of which there are few.
///
/// # Errors
/// The type hasn't got one of them.
pub(super) fn columns(named: Named, names: Vec<&str>) -> Result<Vec<&str>, Refusal> {
    if names.is_empty() {
        return Ok(schema::attribute_names(named.of, named.dialect).collect());
    }
    let has = |name: &str| ["identity", "type"].contains(&name) || named.of.attribute(name).is_some();
    let unknown: Vec<String> =
        names.iter().filter(|name| !has(name)).map(|name| format!("'{name}'")).collect();
    if unknown.is_empty() {
        return Ok(names);
    }
    let text = format!("Unknown attributes [{}] for type {}.", unknown.join(", "), named.full_name());
    Err(Refusal::new(Status::NotFound, text))
}

/// Every name of an attribute that some type has, each once.
pub(super) fn all_names(dialect: Dialect) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for name in ENTITY_TYPES.iter().flat_map(|of| schema::attribute_names(of, dialect)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A row of a QUERY; none if it had nothing but nulls.
pub(super) fn row<'e>(entity: &'e Entity, names: &[&str], dialect: Dialect) -> Option<Vec<Field<'e>>> {
    let values: Vec<Field<'_>> = names.iter().map(|name| entity.value(name, dialect)).collect();
    values.iter().any(|value| !value.is_null()).then_some(values)
}

pub(super) fn address_row<'e>(address: &'e Address, names: &[&str], dialect: Dialect) -> Vec<Field<'e>> {
    names.iter().map(|name| address.value(name, dialect)).collect()
}

/// The reply to a QUERY of what there may be very many of.
pub(super) async fn table<F: Observed>(
    request: &Request<'_>,
    dialect: Dialect,
    names: Vec<&str>,
    facts: &[F],
) -> Answer {
    let names = if names.is_empty() { observed::all_columns::<F>(dialect) } else { names };
    let mut rows = Rows::default();
    append(&mut rows, &names, dialect, facts).await?;
    Ok(results(request, &names, rows))
}

/// Adds rows of what there may be very many of. Other tasks of the control thread have their turn meanwhile.
///
/// # Errors
/// They are too many for one reply.
pub(super) async fn append<F: Observed>(
    rows: &mut Rows,
    names: &[&str],
    dialect: Dialect,
    facts: &[F],
) -> Result<(), Refusal> {
    let getters = observed::getters::<F>(names);
    for facts in facts.chunks(AT_ONCE) {
        for fact in facts {
            rows.push(&observed::row(fact, &getters, dialect));
        }
        if rows.bytes() > RESULTS_BYTES_MAX {
            let text =
                "The results are too many for one reply: ask for them in pages, by 'count' and 'offset'";
            return Err(Refusal::new(Status::InternalError, text));
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

pub(super) fn results(request: &Request<'_>, names: &[&str], rows: Rows) -> Vec<u8> {
    let guess = rows.bytes() + RESULTS_OVERHEAD_BYTES;
    let body = Field::Map(vec![
        (Cow::Borrowed("attributeNames"), Field::texts(names.iter().copied())),
        (Cow::Borrowed("results"), Field::Rows(rows)),
    ]);
    reply::message_of(request, &Ok((Status::Ok, body)), guess)
}
