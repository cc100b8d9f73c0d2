//! The specification's XML as data, and values for the fields that it describes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Model, test_data};

pub const DOCUMENTS: [&str; 5] = ["types", "transport", "messaging", "security", "transactions"];

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub type_name: String,
    pub requires: Option<String>,
    pub mandatory: bool,
    pub multiple: bool,
    pub default: Option<String>,
}

#[derive(Clone, Debug)]
pub struct TypeDefinition {
    pub name: String,
    pub class: String,
    pub source: Option<String>,
    pub provides: Vec<String>,
    pub descriptor: Option<(String, u64)>,
    pub fields: Vec<Field>,
    /// Name and value.
    pub choices: Vec<(String, String)>,
    /// Name, format code, category, width.
    pub encodings: Vec<(String, u8, String, usize)>,
}

pub struct Specification {
    pub types: BTreeMap<String, TypeDefinition>,
    pub definitions: BTreeMap<String, String>,
}

/// The XML, or `None` with a line that says so when there is none here.
pub fn specification() -> Option<Specification> {
    let packaged = PathBuf::from("/usr/share/amqp/specs/1-0");
    let texts = DOCUMENTS.map(|name| {
        let provided = test_data(&format!("spec/amqp-1.0-{name}.xml"));
        std::fs::read_to_string(provided.unwrap_or(packaged.join(format!("{name}.bare.xml")))).ok()
    });
    let mut specification = Specification { types: BTreeMap::new(), definitions: BTreeMap::new() };
    for text in texts {
        let Some(text) = text else {
            eprintln!("SKIPPED: no AMQP 1.0 XML here: install Debian's amqp-specs, or set RINGMAIN_TESTDATA");
            return None;
        };
        read_document(&text, &mut specification);
    }
    Some(specification)
}

pub fn read_document(text: &str, specification: &mut Specification) {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options).expect("the specification is XML");
    for node in document.descendants() {
        let text = |attribute: &str| node.attribute(attribute).map(str::to_owned);
        if node.has_tag_name(("http://www.amqp.org/schema/amqp.xsd", "definition")) {
            specification.definitions.insert(text("name").unwrap(), text("value").unwrap());
        }
        if !node.has_tag_name(("http://www.amqp.org/schema/amqp.xsd", "type")) {
            continue;
        }
        let children =
            |tag: &'static str| node.children().filter(move |child| child.tag_name().name() == tag);
        let descriptor = children("descriptor").next().map(|descriptor| {
            let (domain, id) = descriptor.attribute("code").unwrap().split_once(':').unwrap();
            let number = |part: &str| u64::from_str_radix(part.trim_start_matches("0x"), 16).unwrap();
            (descriptor.attribute("name").unwrap().to_owned(), number(domain) << 32 | number(id))
        });
        let is_true = |value: Option<&str>| value == Some("true");
        let definition = TypeDefinition {
            name: text("name").unwrap(),
            class: text("class").unwrap(),
            source: text("source"),
            provides: node
                .attribute("provides")
                .map_or(vec![], |list| list.split(',').map(|name| name.trim().to_owned()).collect()),
            descriptor,
            fields: children("field")
                .map(|field| Field {
                    name: field.attribute("name").unwrap().to_owned(),
                    type_name: field.attribute("type").unwrap().to_owned(),
                    requires: field.attribute("requires").map(str::to_owned),
                    mandatory: is_true(field.attribute("mandatory")),
                    multiple: is_true(field.attribute("multiple")),
                    default: field.attribute("default").map(str::to_owned),
                })
                .collect(),
            choices: children("choice")
                .map(|choice| {
                    (
                        choice.attribute("name").unwrap().to_owned(),
                        choice.attribute("value").unwrap().to_owned(),
                    )
                })
                .collect(),
            encodings: children("encoding")
                .map(|encoding| {
                    let code = encoding.attribute("code").unwrap().trim_start_matches("0x");
                    (
                        encoding.attribute("name").unwrap_or_default().to_owned(),
                        u8::from_str_radix(code, 16).unwrap(),
                        encoding.attribute("category").unwrap().to_owned(),
                        encoding.attribute("width").unwrap().parse().unwrap(),
                    )
                })
                .collect(),
        };
        assert!(specification.types.insert(definition.name.clone(), definition).is_none());
    }
}

impl Specification {
    pub fn composites(&self) -> impl Iterator<Item = &TypeDefinition> {
        self.types.values().filter(|definition| definition.class == "composite")
    }

    pub fn get(&self, name: &str) -> &TypeDefinition {
        self.types.get(name).unwrap_or_else(|| panic!("no type {name}"))
    }

    /// The primitive type that a type restricts.
    pub fn primitive(&self, name: &str) -> String {
        let mut definition = self.get(name);
        while definition.class == "restricted" {
            definition = self.get(definition.source.as_ref().unwrap());
        }
        definition.name.clone()
    }

    /// Values that the field may have, in its single form; first the ones that aren't its default.
    pub fn samples(&self, field: &Field, seed: u32) -> Vec<Model> {
        let default = self.default(field);
        let mut samples = match &field.requires {
            Some(requires) if field.type_name == "*" => {
                let provides = |definition: &&TypeDefinition| definition.provides.contains(requires);
                let providers = self.types.values().filter(provides).collect::<Vec<_>>();
                // global-tx-id: of whatever type the transaction manager uses.
                if providers.is_empty() {
                    vec![Model::Binary(seed.to_be_bytes().to_vec())]
                } else {
                    providers.into_iter().flat_map(|provider| self.samples_of(&provider.name, seed)).collect()
                }
            }
            _ => self.samples_of(&field.type_name, seed),
        };
        samples.sort_by_key(|sample| Some(sample) == default.as_ref());
        samples
    }

    pub fn samples_of(&self, type_name: &str, seed: u32) -> Vec<Model> {
        let definition = self.get(type_name);
        match definition.class.as_str() {
            "composite" => vec![self.composite(definition, &self.all_fields(definition, seed * 7))],
            "restricted" if !definition.choices.is_empty() => {
                let primitive = self.primitive(type_name);
                definition.choices.iter().map(|(_, value)| parse(&primitive, value)).collect()
            }
            "restricted" => self.samples_of(definition.source.as_ref().unwrap(), seed),
            _ => match type_name {
                "boolean" => vec![Model::Bool(true), Model::Bool(false)],
                "ubyte" => vec![Model::Ubyte(seed as u8)],
                "ushort" => vec![Model::Ushort(seed as u16)],
                "uint" => vec![Model::Uint(seed)],
                "ulong" => vec![Model::Ulong(u64::from(seed) << 32 | u64::from(seed))],
                "timestamp" => vec![Model::Timestamp(i64::from(seed) - 1000)],
                "uuid" => vec![Model::Uuid([seed as u8; 16])],
                "binary" => vec![Model::Binary(seed.to_be_bytes().to_vec())],
                "string" => vec![Model::Str(format!("string {seed}"))],
                "symbol" => vec![Model::Symbol(format!("symbol-{seed}"))],
                "map" => vec![Model::Map(vec![Model::Symbol(format!("key-{seed}")), Model::Uint(seed)])],
                other => panic!("no composite had a field of type {other} when this was written"),
            },
        }
    }

    /// One value per field, each another.
    pub fn all_fields(&self, definition: &TypeDefinition, seed: u32) -> Vec<Model> {
        definition
            .fields
            .iter()
            .enumerate()
            .map(|(index, field)| self.samples(field, seed + 1000 + index as u32 * 13).swap_remove(0))
            .collect()
    }

    pub fn composite(&self, definition: &TypeDefinition, fields: &[Model]) -> Model {
        let (_, code) = definition.descriptor.as_ref().expect("composites have descriptors");
        Model::Described(Box::new(Model::Ulong(*code)), Box::new(Model::List(fields.to_vec())))
    }

    pub fn default(&self, field: &Field) -> Option<Model> {
        let text = field.default.as_ref()?;
        let primitive = self.primitive(&field.type_name);
        let choices = &self.get(&field.type_name).choices;
        let value = choices.iter().find(|(name, _)| name == text).map_or(text, |(_, value)| value);
        Some(parse(&primitive, value))
    }

    /// How Rust prints the value of a field, if the field isn't a composite.
    pub fn printed(&self, field: &Field, value: &Model) -> Option<String> {
        if field.type_name != "*"
            && let Some((name, _)) = self
                .get(&field.type_name)
                .choices
                .iter()
                .find(|(_, text)| parse(&self.primitive(&field.type_name), text) == *value)
            && self.primitive(&field.type_name) != "symbol"
        {
            return Some(camel_case(name));
        }
        Some(match value {
            Model::Bool(value) => value.to_string(),
            Model::Ubyte(value) => value.to_string(),
            Model::Ushort(value) => value.to_string(),
            Model::Uint(value) => value.to_string(),
            Model::Ulong(value) => value.to_string(),
            Model::Timestamp(value) => format!("Timestamp({value})"),
            Model::Str(text) => format!("{text:?}"),
            Model::Symbol(text) if field.multiple => format!("[{text:?}]"),
            Model::Symbol(text) => format!("Symbol({text:?})"),
            Model::Map(items) => match &items[..] {
                [Model::Symbol(key), Model::Uint(value)] => format!("{{:{key}={value}}}"),
                other => panic!("not a sample: {other:?}"),
            },
            Model::Array(_, _, items) => {
                let texts = items.iter().map(|item| match item {
                    Model::Symbol(text) => format!("{text:?}"),
                    other => panic!("not a sample: {other:?}"),
                });
                format!("[{}]", texts.collect::<Vec<_>>().join(", "))
            }
            // Binaries are slices in fields of type binary and values in fields of several types.
            Model::Binary(bytes)
                if field.type_name == "binary" || field.requires.as_deref() == Some("txn-id") =>
            {
                format!("{bytes:?}")
            }
            Model::Binary(_) | Model::Uuid(_) | Model::Described(..) => return None,
            other => panic!("not a sample: {other:?}"),
        })
    }
}

pub fn parse(primitive: &str, text: &str) -> Model {
    match primitive {
        "boolean" => Model::Bool(text.parse().unwrap()),
        "ubyte" => Model::Ubyte(text.parse().unwrap()),
        "ushort" => Model::Ushort(text.parse().unwrap()),
        "uint" => Model::Uint(text.parse().unwrap()),
        "symbol" => Model::Symbol(text.to_owned()),
        other => panic!("no choice or default had type {other} when this was written"),
    }
}

pub fn camel_case(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// The header section's defaults. The packaged XML has none; AMQP 1.0 §3.2.1 says them in words.
pub const HEADER_DEFAULTS: [(&str, &str); 4] =
    [("durable", "false"), ("priority", "4"), ("first-acquirer", "false"), ("delivery-count", "0")];

pub fn with_header_defaults(mut specification: Specification) -> Specification {
    let header = specification.types.get_mut("header").unwrap();
    for field in &mut header.fields {
        let said = HEADER_DEFAULTS.iter().find(|(name, _)| *name == field.name);
        field.default = said.map(|(_, value)| (*value).to_owned());
    }
    specification
}
