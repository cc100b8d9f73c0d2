//! Operations that tell of types rather than of entities: GET-TYPES, GET-OPERATIONS, GET-ATTRIBUTES,
//! GET-SCHEMA.

use super::dialect::Dialect;
use super::field::Field;
use super::reply::Refusal;
use crate::control::config::schema::{Access, Attribute, Category, ENTITY_TYPES, EntityType, Kind, Origin};
use serde::Serialize as _;
use std::borrow::Cow;
use std::sync::OnceLock;

/// The deepest indentation of a level of JSON.
const INDENT_MAX: usize = 16;

/// A type that a request names, and in whose words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) of: &'static EntityType,
    pub(super) dialect: Dialect,
}

impl Named {
    /// The type of this name, whole or short.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(name: &str) -> Result<Self, Refusal> {
        let (dialect, short) = Dialect::split(name);
        let is_whole = short.len() < name.len();
        let found = EntityType::find_type(short).filter(|of| !is_whole || is_known(of.origin, dialect));
        let of = found.ok_or_else(|| Refusal::bad(format!("No such entity type '{name}'")))?;
        Ok(Self { of, dialect })
    }

    /// Its whole name.
    pub(super) fn full_name(self) -> String {
        self.dialect.full_name(self.of.type_name)
    }
}

/// Whether something of that origin belongs to what the tools of a dialect know. What is Ringmain's own is
/// shown to all.
pub(super) fn is_known(origin: Origin, dialect: Dialect) -> bool {
    match (origin, dialect) {
        (Origin::Skupper, Dialect::Dispatch) => false,
        (Origin::Dispatch | Origin::Ringmain | Origin::Skupper, Dialect::Dispatch | Dialect::Skupper) => true,
    }
}

/// The types that a GET operation tells of.
fn types(named: Option<Named>) -> (Dialect, Vec<&'static EntityType>) {
    match named {
        Some(Named { of, dialect }) => (dialect, vec![of]),
        None => {
            let dialect = Dialect::default();
            (dialect, ENTITY_TYPES.iter().filter(|of| is_known(of.origin, dialect)).collect())
        }
    }
}

fn by_type<'a>(named: Option<Named>, value: impl Fn(&'static EntityType, Dialect) -> Field<'a>) -> Field<'a> {
    let (dialect, types) = types(named);
    let entry = |of: &'static EntityType| (Cow::Owned(dialect.full_name(of.type_name)), value(of, dialect));
    Field::Map(types.into_iter().map(entry).collect())
}

/// Each type with the types that it extends.
pub(super) fn get_types<'a>(named: Option<Named>) -> Field<'a> {
    by_type(named, |of, dialect| {
        let names = of.base_types().iter().map(|name| dialect.full_name(name).into());
        Field::List(names.collect())
    })
}

/// Each type with its operations.
pub(super) fn get_operations<'a>(named: Option<Named>) -> Field<'a> {
    by_type(named, |of, _| Field::texts(of.operations.iter().map(|operation| operation.name())))
}

/// Each type with the names of its attributes.
pub(super) fn get_attributes<'a>(named: Option<Named>) -> Field<'a> {
    by_type(named, |of, dialect| Field::texts(attribute_names(of, dialect)))
}

/// The attributes of a type as a dialect's tools know them.
pub(super) fn attribute_names(
    of: &'static EntityType,
    dialect: Dialect,
) -> impl Iterator<Item = &'static str> {
    of.attribute_names().filter(move |name| {
        of.attribute(name).is_none_or(|(_, attribute)| is_known(attribute.origin, dialect))
    })
}

/// The whole schema.
pub(super) fn get_schema<'a>() -> Field<'a> {
    let dialect = Dialect::default();
    let (_, types) = types(None);
    let types = types.into_iter().map(|of| (Cow::Borrowed(of.type_name), entity_type(of, dialect)));
    Field::Map(vec![
        (Cow::Borrowed("prefix"), Field::text(dialect.prefix().trim_end_matches('.'))),
        (Cow::Borrowed("annotations"), Field::Map(Vec::new())),
        (Cow::Borrowed("entityTypes"), Field::Map(types.collect())),
    ])
}

fn entity_type<'a>(of: &'static EntityType, dialect: Dialect) -> Field<'a> {
    let attributes = of
        .attributes
        .iter()
        .filter(|attribute| is_known(attribute.origin, dialect))
        .map(|attribute| (Cow::Borrowed(attribute.name), attribute_type(attribute)))
        .chain([
            (
                Cow::Borrowed("identity"),
                made_by_the_router("Unique identity. It is made from the type and the name."),
            ),
            (Cow::Borrowed("type"), made_by_the_router("The whole name of the type.")),
        ]);
    let is_abstract = match of.category {
        Category::Abstract => true,
        Category::Section | Category::Part | Category::Operational | Category::Management => false,
    };
    let mut entries = vec![
        (Cow::Borrowed("attributes"), Field::Map(attributes.collect())),
        (Cow::Borrowed("operations"), Field::texts(of.operations.iter().map(|operation| operation.name()))),
        (Cow::Borrowed("description"), Field::text(of.description)),
        (Cow::Borrowed("fullyQualifiedType"), dialect.full_name(of.type_name).into()),
        (Cow::Borrowed("deprecated"), Field::Bool(false)),
        (Cow::Borrowed("singleton"), Field::Bool(of.is_singleton)),
        (Cow::Borrowed("abstract"), Field::Bool(is_abstract)),
    ];
    if let Some(base) = of.base_types().first() {
        entries.push((Cow::Borrowed("extends"), Field::text(base)));
    }
    Field::Map(entries)
}

fn made_by_the_router<'a>(description: &'static str) -> Field<'a> {
    Field::Map(vec![
        (Cow::Borrowed("type"), Field::text("string")),
        (Cow::Borrowed("required"), Field::Bool(false)),
        (Cow::Borrowed("unique"), Field::Bool(true)),
        (Cow::Borrowed("description"), Field::text(description)),
    ])
}

fn attribute_type<'a>(attribute: &'static Attribute) -> Field<'a> {
    let kind = match attribute.kind {
        Kind::Enumeration(words) => Field::texts(words.iter().copied()),
        Kind::Boolean
        | Kind::Integer { .. }
        | Kind::String
        | Kind::Path
        | Kind::Host
        | Kind::Port
        | Kind::Words { .. }
        | Kind::LogLevels
        | Kind::Properties
        | Kind::Entities(_)
        | Kind::List => Field::text(attribute.kind.management_name()),
    };
    let (create, update) = match attribute.access {
        Access::Create => (true, false),
        Access::CreateOrUpdate => (true, true),
        Access::Update => (false, true),
        Access::ReadOnly => (false, false),
    };
    let mut entries = vec![(Cow::Borrowed("type"), kind)];
    if let Some(default) = attribute.default {
        entries.push((Cow::Borrowed("default"), default_value(attribute.kind, default)));
    }
    entries.extend([
        (Cow::Borrowed("required"), Field::Bool(attribute.is_required)),
        (Cow::Borrowed("unique"), Field::Bool(attribute.name == "name")),
        (Cow::Borrowed("create"), Field::Bool(create)),
        (Cow::Borrowed("update"), Field::Bool(update)),
        (Cow::Borrowed("hidden"), Field::Bool(attribute.is_secret)),
        (Cow::Borrowed("description"), Field::text(attribute.description)),
    ]);
    if let Some(former) = attribute.deprecated_name {
        entries.push((Cow::Borrowed("deprecationName"), Field::text(former)));
    }
    Field::Map(entries)
}

/// A default in the type of its attribute.
fn default_value<'a>(kind: Kind, text: &'static str) -> Field<'a> {
    match kind {
        Kind::Boolean => Field::Bool(matches!(text, "yes" | "true" | "on")),
        Kind::Integer { .. } => text.parse().map_or(Field::text(text), |number: i64| {
            i32::try_from(number).map_or(Field::Long(number), Field::Int)
        }),
        Kind::String
        | Kind::Path
        | Kind::Host
        | Kind::Port
        | Kind::Enumeration(_)
        | Kind::Words { .. }
        | Kind::LogLevels
        | Kind::Properties
        | Kind::Entities(_)
        | Kind::List => Field::text(text),
    }
}

/// The schema as JSON text, each level indented by so many blanks if that is given. Without blanks, as programs ask for it,
/// it is made once.
pub(super) fn get_json_schema(indent: Option<usize>) -> Cow<'static, str> {
    static PLAIN: OnceLock<String> = OnceLock::new();
    let Some(indent) = indent else {
        return Cow::Borrowed(PLAIN.get_or_init(|| json(&get_schema()).to_string()));
    };
    let schema = json(&get_schema());
    let blanks = vec![b' '; indent.min(INDENT_MAX)];
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(&blanks);
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    // Writing text into memory can't fail, and JSON is UTF-8.
    let _written = schema.serialize(&mut serializer);
    Cow::Owned(String::from_utf8(text).unwrap_or_default())
}

/// A value as JSON. The depth of the recursion is the schema's.
fn json(field: &Field<'_>) -> serde_json::Value {
    use serde_json::Value;
    match field {
        Field::Null | Field::Encoded(_) | Field::Rows(_) => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Uint(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::Ulong(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Text(text) => Value::String(text.clone().into_owned()),
        Field::List(items) => Value::Array(items.iter().map(json).collect()),
        Field::Map(entries) => Value::Object(
            entries.iter().map(|(key, value)| (key.clone().into_owned(), json(value))).collect(),
        ),
    }
}
