//! The specification's own XML against the crate: descriptors, field order, types, mandatory, multiple,
//! defaults, format codes, conditions, constants.
//!
//! The XML is Debian's package `amqp-specs`, or the same files in the folder of test data. Nothing here knows
//! a composite: encodings are built from the XML, decoded by the crate, and what comes out is held against
//! the XML again, by the names of the fields and by the bytes of the re-encoding.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::composite::{Decoded, decode};
use common::specification::{Field, Specification, TypeDefinition, specification, with_header_defaults};
use common::specification::{camel_case, parse};
use common::{Form, Model, widest_of};
use ringmain_codec::constructor::{Category, Constructor};
use ringmain_codec::*;

/// What the shortest encoding of these fields is: defaults are null, trailing nulls left out.
fn shortest(specification: &Specification, definition: &TypeDefinition, fields: &[Model]) -> Vec<u8> {
    let mut fields = fields.to_vec();
    for (value, field) in fields.iter_mut().zip(&definition.fields) {
        if !field.mandatory && Some(&*value) == specification.default(field).as_ref() {
            *value = Model::Null;
        }
    }
    while fields.last() == Some(&Model::Null) {
        fields.pop();
    }
    specification.composite(definition, &fields).encode(&mut Form::Shortest)
}

fn assert_field(debug: &str, field: &Field, printed: &str, context: &str) {
    let name = field.name.replace('-', "_");
    let plain = format!(" {name}: {printed}");
    let some = format!(" {name}: Some({printed})");
    let found = [plain, some]
        .iter()
        .any(|text| debug.contains(&format!("{text},")) || debug.contains(&format!("{text} }}")));
    assert!(found, "{context}: {name} should be {printed} in {debug}");
}

#[test]
fn every_composite_of_the_specification_is_implemented() {
    let Some(specification) = specification() else { return };
    let missing = specification
        .composites()
        .filter(|definition| Decoded::decode(&definition.name, b"").is_none())
        .map(|definition| definition.name.clone())
        .collect::<Vec<_>>();
    assert_eq!(missing, Vec::<String>::new());
    assert_eq!(specification.composites().count(), 33);
}

#[test]
fn descriptors_are_the_specifications() {
    let Some(specification) = specification() else { return };
    let specified = specification
        .types
        .values()
        .filter_map(|definition| definition.descriptor.clone())
        .collect::<BTreeSet<_>>();
    let implemented = descriptor::ALL.iter().map(|each| (each.name.to_owned(), each.code)).collect();
    assert_eq!(specified, implemented);
}

#[test]
fn every_field_arrives_under_its_name_and_is_encoded_in_its_place() {
    let Some(specification) = specification().map(with_header_defaults) else { return };
    for definition in specification.composites() {
        let base = specification.all_fields(definition, 0);
        for (index, field) in definition.fields.iter().enumerate() {
            for sample in specification.samples(field, 1000 + index as u32 * 13) {
                let mut fields = base.clone();
                fields[index] = sample.clone();
                let context = format!("{}.{} = {sample:?}", definition.name, field.name);

                let short = specification.composite(definition, &fields).encode(&mut Form::Shortest);
                let decoded =
                    decode(&definition.name, &short).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(decoded.encode(), shortest(&specification, definition, &fields), "{context}");
                let debug = format!("{decoded:?}");
                for (value, field) in fields.iter().zip(&definition.fields) {
                    if let Some(printed) = specification.printed(field, value) {
                        assert_field(&debug, field, &printed, &context);
                    }
                }

                let long = specification.composite(definition, &fields).encode(&mut Form::Longest);
                assert_eq!(decode(&definition.name, &long).as_ref(), Ok(&decoded), "{context}, long forms");
            }
        }
        if definition.fields.is_empty() {
            let bytes = specification.composite(definition, &[]).encode(&mut Form::Shortest);
            assert_eq!(decode(&definition.name, &bytes).unwrap().encode(), bytes);
        }
    }
}

#[test]
fn an_absent_field_is_an_error_or_its_default() {
    let Some(specification) = specification().map(with_header_defaults) else { return };
    for definition in specification.composites() {
        let base = specification.all_fields(definition, 0);
        for (index, field) in definition.fields.iter().enumerate() {
            let context = format!("{}.{}", definition.name, field.name);
            let mut null = base.clone();
            null[index] = Model::Null;
            let cut = base[..index].to_vec();
            for (fields, is_cut) in [(null, false), (cut, true)] {
                let bytes = specification.composite(definition, &fields).encode(&mut Form::Shortest);
                let result = decode(&definition.name, &bytes);
                let missing = definition.fields[index..]
                    .iter()
                    .enumerate()
                    .find_map(|(later, field)| (field.mandatory && (is_cut || later == 0)).then_some(field));
                if let Some(missing) = missing {
                    let malformed = result.expect_err(&context);
                    assert_eq!(malformed.kind, MalformedKind::MandatoryFieldAbsent, "{context}");
                    assert_eq!(malformed.field, format!("{}.{}", definition.name, missing.name));
                    assert_eq!(malformed.condition(), Condition::INVALID_FIELD);
                    continue;
                }
                let decoded = result.unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(decoded.encode(), shortest(&specification, definition, &fields), "{context}");
                let printed = match specification.default(field) {
                    Some(default) => specification.printed(field, &default).unwrap(),
                    None if field.multiple => "[]".to_owned(),
                    None => "None".to_owned(),
                };
                assert_field(&format!("{decoded:?}"), field, &printed, &context);
            }
        }
    }
}

#[test]
fn a_field_of_another_type_is_refused_by_name() {
    let Some(specification) = specification() else { return };
    for definition in specification.composites() {
        let base = specification.all_fields(definition, 0);
        for (index, field) in definition.fields.iter().enumerate() {
            // §4.5.2: the global id may be of any type. Message ids of other types are seen in the field.
            if matches!(field.requires.as_deref(), Some("global-tx-id" | "message-id")) {
                continue;
            }
            let unknown = Model::Described(Box::new(Model::Ulong(0xffff_ffff_0000)), Box::new(Model::Null));
            // A delivery state that isn't known is kept as it is: it may belong to an extension.
            let open = matches!(field.requires.as_deref(), Some("delivery-state" | "outcome"));
            for wrong in [Model::Decimal128([7; 16]), unknown] {
                if open && matches!(wrong, Model::Described(..)) {
                    continue;
                }
                let mut fields = base.clone();
                fields[index] = wrong;
                let bytes = specification.composite(definition, &fields).encode(&mut Form::Shortest);
                let malformed = decode(&definition.name, &bytes).expect_err(&definition.name);
                assert_eq!(malformed.field, format!("{}.{}", definition.name, field.name), "{malformed}");
            }
        }
    }
}

#[test]
fn choices_are_the_specifications() {
    let Some(specification) = specification() else { return };
    for definition in specification.composites() {
        let base = specification.all_fields(definition, 0);
        for (index, field) in definition.fields.iter().enumerate().filter(|(_, field)| field.type_name != "*")
        {
            let choices = &specification.get(&field.type_name).choices;
            let primitive = specification.primitive(&field.type_name);
            if choices.is_empty() || primitive == "symbol" || primitive == "boolean" {
                continue;
            }
            for number in 0..=255 {
                let text = number.to_string();
                let mut fields = base.clone();
                fields[index] = parse(&primitive, &text);
                let bytes = specification.composite(definition, &fields).encode(&mut Form::Shortest);
                let result = decode(&definition.name, &bytes);
                match choices.iter().find(|(_, value)| *value == text) {
                    Some((name, _)) => {
                        assert_field(
                            &format!("{:?}", result.unwrap()),
                            field,
                            &camel_case(name),
                            &definition.name,
                        );
                    }
                    None => {
                        let malformed = result.expect_err("no choice");
                        assert_eq!(malformed.kind, MalformedKind::InvalidChoice(number));
                        assert_eq!(malformed.condition(), Condition::INVALID_FIELD);
                    }
                }
            }
        }
    }
}

#[test]
fn unknown_fields_at_the_end_are_ignored() {
    let Some(specification) = specification() else { return };
    for definition in specification.composites() {
        let base = specification.all_fields(definition, 0);
        let bytes = specification.composite(definition, &base).encode(&mut Form::Shortest);
        let expected = decode(&definition.name, &bytes).unwrap();
        let mut extended = base;
        extended.extend([
            Model::Null,
            Model::Map(vec![Model::Symbol("new".into()), Model::List(vec![Model::Bool(true)])]),
            Model::Str("x".repeat(400)),
        ]);
        for form in [&mut Form::Shortest, &mut Form::Longest] {
            let bytes = specification.composite(definition, &extended).encode(form);
            assert_eq!(decode(&definition.name, &bytes).as_ref(), Ok(&expected), "{}", definition.name);
        }
    }
}

#[test]
fn descriptors_come_as_symbol_and_as_ulong_of_any_width() {
    let Some(specification) = specification() else { return };
    for definition in specification.composites() {
        let (name, code) = definition.descriptor.clone().unwrap();
        let fields = Model::List(specification.all_fields(definition, 0)).encode(&mut Form::Shortest);
        let small = [&[0x00, 0x53, code as u8], &fields[..]].concat();
        let wide = [&[0x00, 0x80], &code.to_be_bytes()[..], &fields].concat();
        let symbol = [&[0x00, 0xa3, name.len() as u8], name.as_bytes(), &fields].concat();
        let long = [&[0x00, 0xb3], &(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &fields].concat();
        let expected = decode(&definition.name, &small).unwrap();
        for bytes in [wide, symbol, long] {
            assert_eq!(decode(&definition.name, &bytes).as_ref(), Ok(&expected), "{}", definition.name);
        }
    }
}

#[test]
fn several_values_come_as_array_and_one_also_bare() {
    let Some(specification) = specification() else { return };
    for definition in specification.composites() {
        let base = specification.all_fields(definition, 0);
        for (index, field) in definition.fields.iter().enumerate().filter(|(_, field)| field.multiple) {
            assert_eq!(specification.primitive(&field.type_name), "symbol", "the only one so far");
            let symbol = |text: &str| Model::Symbol(text.to_owned());
            let array = |items: Vec<Model>| Model::Array(widest_of("symbol"), vec![], items);
            let cases = [
                symbol("one"),
                array(vec![symbol("one")]),
                array(vec![symbol("one"), symbol("two")]),
                array(vec![symbol("one"), symbol(&"2".repeat(300))]),
            ];
            for value in cases {
                let mut fields = base.clone();
                fields[index] = value.clone();
                for form in [&mut Form::Shortest, &mut Form::Longest] {
                    let bytes = specification.composite(definition, &fields).encode(form);
                    let decoded = decode(&definition.name, &bytes).unwrap();
                    let printed = specification.printed(field, &value).unwrap();
                    assert_field(&format!("{decoded:?}"), field, &printed, &definition.name);
                    let again = decoded.encode();
                    assert_eq!(decode(&definition.name, &again).as_ref(), Ok(&decoded));
                }
            }
            // §1.4: an array without elements is the same as null, and neither may be mandatory's value.
            let mut fields = base.clone();
            fields[index] = array(vec![]);
            let bytes = specification.composite(definition, &fields).encode(&mut Form::Shortest);
            let result = decode(&definition.name, &bytes);
            if field.mandatory {
                assert_eq!(result.unwrap_err().kind, MalformedKind::MandatoryFieldAbsent);
            } else {
                fields[index] = Model::Null;
                assert_eq!(result.unwrap().encode(), shortest(&specification, definition, &fields));
            }
        }
    }
}

#[test]
fn sections_have_their_descriptor_and_type() {
    let Some(specification) = specification() else { return };
    let sections = specification
        .types
        .values()
        .filter(|definition| definition.provides.iter().any(|name| name == "section"));
    let mut seen = 0;
    for definition in sections {
        seen += 1;
        let mut source = definition.source.clone().unwrap();
        while let Some(definition) =
            specification.types.get(&source).filter(|definition| definition.class == "restricted")
        {
            source = definition.source.clone().unwrap();
        }
        let value = match source.as_str() {
            "list" => Model::List(vec![]),
            "map" => Model::Map(vec![]),
            "binary" => Model::Binary(vec![1, 2]),
            "*" => Model::Uuid([3; 16]),
            other => panic!("no section had type {other} when this was written"),
        };
        let (symbol, code) = definition.descriptor.clone().unwrap();
        for descriptor in [Model::Ulong(code), Model::Symbol(symbol)] {
            for form in [&mut Form::Shortest, &mut Form::Longest] {
                let described = Model::Described(Box::new(descriptor.clone()), Box::new(value.clone()));
                let bytes = described.encode(form);
                let mut scanner = Sections::new(&bytes);
                let kind = scanner.peek().unwrap().unwrap();
                assert_eq!((kind.name(), kind.descriptor().code), (&definition.name[..], code));
                let section = scanner.next().unwrap().unwrap();
                assert_eq!((section.kind, section.encoded), (kind, &bytes[..]));
                assert_eq!(Model::from(section.value.view()), value);
                assert_eq!(scanner.next(), Ok(None));
                for length in 1..bytes.len() {
                    let mut scanner = Sections::new(&bytes[..length]);
                    assert_eq!(scanner.next(), Err(SectionError::Incomplete), "{length} of {bytes:x?}");
                }
            }
            if source != "*" {
                let wrong = Model::Described(Box::new(descriptor), Box::new(Model::Uint(9)));
                let bytes = wrong.encode(&mut Form::Shortest);
                let Err(SectionError::Malformed(malformed)) = Sections::new(&bytes).next() else { panic!() };
                assert_eq!(malformed.field, definition.name);
            }
        }
    }
    assert_eq!(seen, 9);
}

#[test]
fn conditions_are_the_specifications() {
    let Some(specification) = specification() else { return };
    let specified = specification
        .types
        .values()
        .filter(|definition| definition.provides.iter().any(|name| name == "error-condition"))
        .flat_map(|definition| definition.choices.iter().map(|(_, value)| value.as_str()))
        .collect::<BTreeSet<_>>();
    assert_eq!(specified, Condition::ALL.iter().map(|condition| condition.as_str()).collect());
}

#[test]
fn constants_are_the_specifications() {
    let Some(specification) = specification() else { return };
    let number = |name: &str| specification.definitions[name].parse::<u32>().unwrap();
    assert_eq!(MIN_MAX_FRAME_SIZE, number("MIN-MAX-FRAME-SIZE"));
    let headers =
        [("", ProtocolHeader::AMQP), ("TLS-", ProtocolHeader::TLS), ("SASL-", ProtocolHeader::SASL)];
    for (prefix, header) in headers {
        let version = [header.major, header.minor, header.revision].map(u32::from);
        let specified = ["MAJOR", "MINOR", "REVISION"].map(|part| number(&format!("{prefix}{part}")));
        assert_eq!(version, specified, "{prefix}");
    }
    let policies = [
        terminus::expiry_policy::LINK_DETACH,
        terminus::expiry_policy::SESSION_END,
        terminus::expiry_policy::CONNECTION_CLOSE,
        terminus::expiry_policy::NEVER,
    ];
    let modes = [terminus::distribution_mode::MOVE, terminus::distribution_mode::COPY];
    for (name, constants) in [("terminus-expiry-policy", &policies[..]), ("std-dist-mode", &modes[..])] {
        let specified = specification.get(name).choices.iter().map(|(_, value)| value.as_str());
        assert_eq!(
            specified.collect::<Vec<_>>(),
            constants.iter().map(|symbol| symbol.0).collect::<Vec<_>>()
        );
    }
}

#[test]
fn format_codes_are_the_specifications() {
    let Some(specification) = specification() else { return };
    let mut specified = BTreeMap::new();
    for definition in specification.types.values() {
        for (_, code, category, width) in &definition.encodings {
            specified.insert(*code, (definition.name.clone(), category.clone(), *width));
        }
    }
    assert_eq!(specified.len(), 39);
    for code in 0..=255 {
        let implemented = Constructor::of(code).map(|constructor| {
            let category = match constructor.category {
                Category::Fixed => "fixed",
                Category::Variable => "variable",
                Category::Compound => "compound",
                Category::Array => "array",
            };
            (constructor.primitive.name().to_owned(), category.to_owned(), usize::from(constructor.width))
        });
        assert_eq!(implemented, specified.get(&code).cloned(), "{code:#04x}");
    }
}

/// Data of `width` bytes for a fixed-width encoding, and what it means (§1.6).
fn fixed_data(type_name: &str, encoding: &str, width: usize) -> (Vec<u8>, Model) {
    let bytes = [0, 0, 0x26, 0x03, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let data = if type_name == "boolean" && width == 1 { vec![1] } else { bytes[16 - width..].to_vec() };
    let unsigned = data.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    let value = match type_name {
        "null" => Model::Null,
        "boolean" => Model::Bool(encoding != "false"),
        "ubyte" => Model::Ubyte(unsigned as u8),
        "ushort" => Model::Ushort(unsigned as u16),
        "uint" => Model::Uint(unsigned as u32),
        "ulong" => Model::Ulong(unsigned as u64),
        "byte" => Model::Byte(unsigned as i8),
        "short" => Model::Short(unsigned as i16),
        "int" => Model::Int(unsigned as i32),
        "long" => Model::Long(unsigned as i64),
        "float" => Model::Float(unsigned as u32),
        "double" => Model::Double(unsigned as u64),
        "decimal32" => Model::Decimal32(data.clone().try_into().unwrap()),
        "decimal64" => Model::Decimal64(data.clone().try_into().unwrap()),
        "decimal128" => Model::Decimal128(data.clone().try_into().unwrap()),
        "char" => return (vec![0, 1, 0xf6, 0], Model::Char('\u{1f600}')),
        "timestamp" => Model::Timestamp(unsigned as i64),
        "uuid" => Model::Uuid(data.clone().try_into().unwrap()),
        "list" => Model::List(vec![]),
        other => panic!("{other} has no fixed width"),
    };
    (data, value)
}

#[test]
fn every_encoding_of_every_type_decodes() {
    let Some(specification) = specification() else { return };
    for definition in specification.types.values() {
        for (encoding, code, category, width) in &definition.encodings {
            let number = |number: u32| number.to_be_bytes()[4 - width..].to_vec();
            let (data, value) = match (category.as_str(), definition.name.as_str()) {
                ("fixed", name) => fixed_data(name, encoding, *width),
                ("variable", "binary") => {
                    ([number(3), vec![1, 0, 255]].concat(), Model::Binary(vec![1, 0, 255]))
                }
                ("variable", "string") => ([number(3), "aé".into()].concat(), Model::Str("aé".into())),
                ("variable", "symbol") => {
                    ([number(3), b"a:b".to_vec()].concat(), Model::Symbol("a:b".into()))
                }
                // Two elements: null, and the boolean true.
                ("compound", name) => {
                    let data = [number(2 + *width as u32), number(2), vec![0x40, 0x41]].concat();
                    let items = vec![Model::Null, Model::Bool(true)];
                    (data, if name == "map" { Model::Map(items) } else { Model::List(items) })
                }
                // Two elements, the ubytes 7 and 8.
                ("array", _) => {
                    let data = [number(3 + *width as u32), number(2), vec![0x50, 7, 8]].concat();
                    (data, Model::Array(0x50, vec![], vec![Model::Ubyte(7), Model::Ubyte(8)]))
                }
                other => panic!("{other:?} is new"),
            };
            let bytes = [&[*code], &data[..]].concat();
            let decoded = Value::from_encoded(&bytes).unwrap();
            assert_eq!(Model::from(decoded.view()), value, "{code:#04x}");
            for length in 0..bytes.len() {
                let malformed = Value::from_encoded(&bytes[..length]).unwrap_err();
                assert_eq!(malformed.kind, MalformedKind::UnexpectedEnd, "{length} of {bytes:x?}");
            }

            // The same code as the constructor of an array's elements.
            for count in [0_u8, 1, 3] {
                let content = [&[*code], &data.repeat(count.into())[..]].concat();
                let array = [&[0xe0, content.len() as u8 + 1, count], &content[..]].concat();
                let View::Array(items) = Value::from_encoded(&array).unwrap().view() else { panic!() };
                assert_eq!(items.primitive().name(), definition.name);
                let items = items.map(Model::from).collect::<Vec<_>>();
                assert_eq!(items, vec![value.clone(); count.into()], "{code:#04x}");
            }
        }
    }
}

#[test]
fn every_encoding_decodes_into_its_rust_type_and_no_other() {
    let Some(specification) = specification() else { return };
    /// Whether `bytes` decode as a `T` with nothing left.
    fn is<'b, T: Decode<'b>>(bytes: &'b [u8]) -> bool {
        let mut cursor = Cursor::new(bytes);
        T::decode(&mut cursor, "").is_ok() && cursor.is_empty()
    }
    for definition in specification.types.values() {
        for (encoding, code, category, width) in &definition.encodings {
            let data = match category.as_str() {
                "fixed" => fixed_data(&definition.name, encoding, *width).0,
                _ => vec![0; *width],
            };
            let bytes = [&[*code], &data[..]].concat();
            let accepted = [
                ("boolean", is::<bool>(&bytes)),
                ("ubyte", is::<u8>(&bytes)),
                ("ushort", is::<u16>(&bytes)),
                ("uint", is::<u32>(&bytes)),
                ("ulong", is::<u64>(&bytes)),
                ("byte", is::<i8>(&bytes)),
                ("short", is::<i16>(&bytes)),
                ("int", is::<i32>(&bytes)),
                ("long", is::<i64>(&bytes)),
                ("float", is::<f32>(&bytes)),
                ("double", is::<f64>(&bytes)),
                ("decimal32", is::<Decimal32>(&bytes)),
                ("decimal64", is::<Decimal64>(&bytes)),
                ("decimal128", is::<Decimal128>(&bytes)),
                ("char", is::<char>(&bytes)),
                ("timestamp", is::<Timestamp>(&bytes)),
                ("uuid", is::<Uuid>(&bytes)),
                ("binary", is::<&[u8]>(&bytes)),
                ("string", is::<&str>(&bytes)),
                ("symbol", is::<Symbol<'_>>(&bytes)),
            ];
            let names = accepted.iter().filter(|(_, accepted)| *accepted).map(|(name, _)| *name);
            let expected = match definition.name.as_str() {
                // These have no Rust type but Value.
                "null" | "list" | "map" | "array" => vec![],
                name => vec![name],
            };
            assert_eq!(names.collect::<Vec<_>>(), expected, "{code:#04x}");
        }
    }
}
