//! Strategies for proptest: values of every type, performatives, SASL frames, sections.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use ringmain_codec::*;

use super::{Form, Model};

/// Owned data made to outlive the test, so that performatives can borrow it. The process is short-lived.
pub fn leak<T: ?Sized>(owned: Box<T>) -> &'static T {
    Box::leak(owned)
}

pub fn symbol_text() -> BoxedStrategy<String> {
    prop_oneof![9 => "[ -~]{0,12}", 1 => "[ -~]{250,260}"].boxed()
}

pub fn string_text() -> BoxedStrategy<String> {
    prop_oneof![9 => ".{0,8}", 1 => "[ -~]{250,260}"].boxed()
}

pub fn bytes() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![9 => vec(any::<u8>(), 0..12), 1 => vec(any::<u8>(), 250..260)].boxed()
}

/// Numbers around the edges of the short forms as often as any others.
pub fn uint() -> BoxedStrategy<u32> {
    prop_oneof![Just(0), 1..=256_u32, Just(u32::MAX), any::<u32>()].boxed()
}

pub fn ulong() -> BoxedStrategy<u64> {
    prop_oneof![Just(0), 1..=256_u64, Just(u64::MAX), any::<u64>()].boxed()
}

pub fn scalar() -> BoxedStrategy<Model> {
    prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        any::<u8>().prop_map(Model::Ubyte),
        any::<u16>().prop_map(Model::Ushort),
        uint().prop_map(Model::Uint),
        ulong().prop_map(Model::Ulong),
        any::<i8>().prop_map(Model::Byte),
        any::<i16>().prop_map(Model::Short),
        prop_oneof![-129..=128_i32, any::<i32>()].prop_map(Model::Int),
        prop_oneof![-129..=128_i64, any::<i64>()].prop_map(Model::Long),
        any::<u32>().prop_map(Model::Float),
        any::<u64>().prop_map(Model::Double),
        any::<[u8; 4]>().prop_map(Model::Decimal32),
        any::<[u8; 8]>().prop_map(Model::Decimal64),
        any::<[u8; 16]>().prop_map(Model::Decimal128),
        any::<char>().prop_map(Model::Char),
        any::<i64>().prop_map(Model::Timestamp),
        any::<[u8; 16]>().prop_map(Model::Uuid),
        bytes().prop_map(Model::Binary),
        string_text().prop_map(Model::Str),
        symbol_text().prop_map(Model::Symbol),
    ]
    .boxed()
}

/// Values that share a type, so that an array can hold them. `variants` of them, one after the other, choose
/// the type.
pub fn alike(inner: BoxedStrategy<Model>) -> BoxedStrategy<Vec<Model>> {
    prop_oneof![
        vec(Just(Model::Null), 1..4),
        vec(any::<bool>().prop_map(Model::Bool), 1..4),
        vec(any::<u16>().prop_map(Model::Ushort), 1..4),
        vec(uint().prop_map(Model::Uint), 1..4),
        vec(ulong().prop_map(Model::Ulong), 1..4),
        vec(prop_oneof![-129..=128_i32, any::<i32>()].prop_map(Model::Int), 1..4),
        vec(prop_oneof![-129..=128_i64, any::<i64>()].prop_map(Model::Long), 1..4),
        vec(any::<u32>().prop_map(Model::Float), 1..4),
        vec(any::<char>().prop_map(Model::Char), 1..4),
        vec(any::<[u8; 16]>().prop_map(Model::Uuid), 1..4),
        vec(bytes().prop_map(Model::Binary), 1..4),
        vec(string_text().prop_map(Model::Str), 1..4),
        vec(symbol_text().prop_map(Model::Symbol), 1..300),
        vec(vec(inner.clone(), 0..3).prop_map(Model::List), 1..4),
        vec(pairs(inner), 1..4),
        vec(
            vec(any::<u8>().prop_map(Model::Ubyte), 1..4).prop_map(|items| Model::Array(0x50, vec![], items)),
            1..4
        ),
    ]
    .boxed()
}

pub fn pairs(inner: BoxedStrategy<Model>) -> BoxedStrategy<Model> {
    vec((inner.clone(), inner), 0..4)
        .prop_map(|entries| Model::Map(entries.into_iter().flat_map(|(key, value)| [key, value]).collect()))
        .boxed()
}

pub fn descriptor() -> BoxedStrategy<Model> {
    prop_oneof![ulong().prop_map(Model::Ulong), symbol_text().prop_map(Model::Symbol)].boxed()
}

/// A value of any type, nested a little.
pub fn value() -> BoxedStrategy<Model> {
    scalar()
        .prop_recursive(4, 48, 6, |inner| {
            let long = vec(any::<bool>().prop_map(Model::Bool), 250..260);
            prop_oneof![
                4 => vec(inner.clone(), 0..6).prop_map(Model::List),
                1 => long.prop_map(Model::List),
                4 => pairs(inner.clone()),
                4 => (vec(descriptor(), 0..2), alike(inner.clone())).prop_map(|(descriptors, items)| {
                    Model::Array(items[0].widest(), descriptors, items)
                }),
                1 => scalar().prop_map(|scalar| Model::Array(scalar.widest(), vec![], vec![])),
                2 => (descriptor(), inner).prop_map(|(descriptor, value)| {
                    Model::Described(Box::new(descriptor), Box::new(value))
                }),
            ]
        })
        .boxed()
}

pub fn text() -> BoxedStrategy<&'static str> {
    string_text().prop_map(|text| leak(text.into_boxed_str())).boxed()
}

pub fn symbol() -> BoxedStrategy<Symbol<'static>> {
    symbol_text().prop_map(|text| Symbol(leak(text.into_boxed_str()))).boxed()
}

pub fn binary() -> BoxedStrategy<&'static [u8]> {
    bytes().prop_map(|bytes| leak(bytes.into_boxed_slice())).boxed()
}

pub fn as_value(model: &Model) -> Value<'static> {
    Value::from_encoded(leak(model.encode(&mut Form::Shortest).into_boxed_slice())).unwrap()
}

pub fn map() -> BoxedStrategy<Option<Value<'static>>> {
    option::of(pairs(scalar()).prop_map(|map| as_value(&map))).boxed()
}

pub fn symbols() -> BoxedStrategy<Symbols<'static>> {
    let slice = vec(symbol().prop_map(|symbol| symbol.0), 0..4)
        .prop_map(|symbols| Symbols::Slice(leak(symbols.into_boxed_slice())));
    let encoded = vec(symbol_text().prop_map(Model::Symbol), 1..4)
        .prop_map(|items| Symbols::Encoded(as_value(&Model::Array(0xb3, vec![], items))));
    prop_oneof![Just(Symbols::None), slice, encoded].boxed()
}

pub fn error() -> BoxedStrategy<Error<'static>> {
    (symbol(), option::of(text()), map())
        .prop_map(|(condition, description, info)| Error { condition, description, info })
        .boxed()
}

pub fn outcome_value() -> BoxedStrategy<Option<Value<'static>>> {
    let outcome = prop_oneof![Just(0x24_u64), Just(0x26)].prop_map(|code| {
        as_value(&Model::Described(Box::new(Model::Ulong(code)), Box::new(Model::List(vec![]))))
    });
    option::of(outcome).boxed()
}

pub fn state() -> BoxedStrategy<DeliveryState<'static>> {
    let other = scalar().prop_map(|scalar| {
        as_value(&Model::Described(Box::new(Model::Symbol("x:y".into())), Box::new(scalar)))
    });
    prop_oneof![
        (uint(), ulong()).prop_map(|(section_number, section_offset)| {
            DeliveryState::Received(Received { section_number, section_offset })
        }),
        Just(DeliveryState::Accepted),
        option::of(error()).prop_map(|error| DeliveryState::Rejected(Rejected { error })),
        Just(DeliveryState::Released),
        (any::<Option<bool>>(), any::<Option<bool>>(), map()).prop_map(
            |(delivery_failed, undeliverable_here, message_annotations)| {
                DeliveryState::Modified(Modified { delivery_failed, undeliverable_here, message_annotations })
            }
        ),
        binary().prop_map(|txn_id| DeliveryState::Declared(Declared { txn_id })),
        (binary(), outcome_value()).prop_map(|(txn_id, outcome)| {
            DeliveryState::Transactional(TransactionalState { txn_id, outcome })
        }),
        other.prop_map(DeliveryState::Other),
    ]
    .boxed()
}

pub fn durability() -> BoxedStrategy<TerminusDurability> {
    prop_oneof![
        Just(TerminusDurability::None),
        Just(TerminusDurability::Configuration),
        Just(TerminusDurability::UnsettledState)
    ]
    .boxed()
}

pub fn source() -> BoxedStrategy<Source<'static>> {
    let expiry = prop_oneof![Just(terminus::expiry_policy::SESSION_END), symbol()];
    let first = (option::of(text()), durability(), expiry, uint(), any::<bool>(), map());
    let second = (option::of(symbol()), map(), outcome_value(), symbols(), symbols());
    (first, second)
        .prop_map(|(first, second)| Source {
            address: first.0,
            durable: first.1,
            expiry_policy: first.2,
            timeout: first.3,
            dynamic: first.4,
            dynamic_node_properties: first.5,
            distribution_mode: second.0,
            filter: second.1,
            default_outcome: second.2,
            outcomes: second.3,
            capabilities: second.4,
        })
        .boxed()
}

pub fn target() -> BoxedStrategy<Target<'static>> {
    let expiry = prop_oneof![Just(terminus::expiry_policy::SESSION_END), symbol()];
    let node = (option::of(text()), durability(), expiry, uint(), any::<bool>(), map(), symbols()).prop_map(
        |node| {
            Target::Node(TargetNode {
                address: node.0,
                durable: node.1,
                expiry_policy: node.2,
                timeout: node.3,
                dynamic: node.4,
                dynamic_node_properties: node.5,
                capabilities: node.6,
            })
        },
    );
    let coordinator = symbols().prop_map(|capabilities| Target::Coordinator(Coordinator { capabilities }));
    prop_oneof![3 => node, 1 => coordinator].boxed()
}

pub fn role() -> BoxedStrategy<Role> {
    any::<bool>().prop_map(|receiver| if receiver { Role::Receiver } else { Role::Sender }).boxed()
}

pub fn receiver_mode() -> BoxedStrategy<ReceiverSettleMode> {
    any::<bool>()
        .prop_map(|second| if second { ReceiverSettleMode::Second } else { ReceiverSettleMode::First })
        .boxed()
}

pub fn performative() -> BoxedStrategy<Performative<'static>> {
    let sender_mode = prop_oneof![
        Just(SenderSettleMode::Unsettled),
        Just(SenderSettleMode::Settled),
        Just(SenderSettleMode::Mixed)
    ];
    let open = (
        (text(), option::of(text()), uint(), any::<u16>(), option::of(uint())),
        (symbols(), symbols(), symbols(), symbols(), map()),
    )
        .prop_map(|(first, second)| {
            Performative::Open(Open {
                container_id: first.0,
                hostname: first.1,
                max_frame_size: first.2,
                channel_max: first.3,
                idle_time_out: first.4,
                outgoing_locales: second.0,
                incoming_locales: second.1,
                offered_capabilities: second.2,
                desired_capabilities: second.3,
                properties: second.4,
            })
        });
    let begin = (any::<Option<u16>>(), uint(), uint(), uint(), uint(), symbols(), symbols(), map()).prop_map(
        |begin| {
            Performative::Begin(Begin {
                remote_channel: begin.0,
                next_outgoing_id: begin.1,
                incoming_window: begin.2,
                outgoing_window: begin.3,
                handle_max: begin.4,
                offered_capabilities: begin.5,
                desired_capabilities: begin.6,
                properties: begin.7,
            })
        },
    );
    let attach = (
        (text(), uint(), role(), sender_mode, receiver_mode()),
        (option::of(source()), option::of(target()), map(), any::<bool>(), option::of(uint())),
        (option::of(ulong()), symbols(), symbols(), map()),
    )
        .prop_map(|(first, second, third)| {
            Performative::Attach(Attach {
                name: first.0,
                handle: first.1,
                role: first.2,
                snd_settle_mode: first.3,
                rcv_settle_mode: first.4,
                source: second.0,
                target: second.1,
                unsettled: second.2,
                incomplete_unsettled: second.3,
                initial_delivery_count: second.4,
                max_message_size: third.0,
                offered_capabilities: third.1,
                desired_capabilities: third.2,
                properties: third.3,
            })
        });
    let flow = (
        (option::of(uint()), uint(), uint(), uint(), option::of(uint())),
        (option::of(uint()), option::of(uint()), option::of(uint()), any::<bool>(), any::<bool>(), map()),
    )
        .prop_map(|(first, second)| {
            Performative::Flow(Flow {
                next_incoming_id: first.0,
                incoming_window: first.1,
                next_outgoing_id: first.2,
                outgoing_window: first.3,
                handle: first.4,
                delivery_count: second.0,
                link_credit: second.1,
                available: second.2,
                drain: second.3,
                echo: second.4,
                properties: second.5,
            })
        });
    let transfer = (
        (
            uint(),
            option::of(uint()),
            option::of(binary()),
            option::of(uint()),
            any::<Option<bool>>(),
            any::<bool>(),
        ),
        (option::of(receiver_mode()), option::of(state()), any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(|(first, second)| {
            Performative::Transfer(Transfer {
                handle: first.0,
                delivery_id: first.1,
                delivery_tag: first.2,
                message_format: first.3,
                settled: first.4,
                more: first.5,
                rcv_settle_mode: second.0,
                state: second.1,
                resume: second.2,
                aborted: second.3,
                batchable: second.4,
            })
        });
    let disposition = (role(), uint(), option::of(uint()), any::<bool>(), option::of(state()), any::<bool>())
        .prop_map(|(role, first, last, settled, state, batchable)| {
            Performative::Disposition(Disposition { role, first, last, settled, state, batchable })
        });
    let detach = (uint(), any::<bool>(), option::of(error()))
        .prop_map(|(handle, closed, error)| Performative::Detach(Detach { handle, closed, error }));
    prop_oneof![
        open.boxed(),
        begin.boxed(),
        attach.boxed(),
        flow.boxed(),
        transfer.boxed(),
        disposition.boxed(),
        detach.boxed(),
        option::of(error()).prop_map(|error| Performative::End(End { error })).boxed(),
        option::of(error()).prop_map(|error| Performative::Close(Close { error })).boxed(),
    ]
    .boxed()
}

pub fn sasl_frame() -> BoxedStrategy<SaslFrame<'static>> {
    let code = prop_oneof![
        Just(SaslCode::Ok),
        Just(SaslCode::Auth),
        Just(SaslCode::Sys),
        Just(SaslCode::SysPerm),
        Just(SaslCode::SysTemp)
    ];
    let mechanisms = symbols().prop_filter("at least one", |symbols| !symbols.is_empty());
    prop_oneof![
        mechanisms.prop_map(|sasl_server_mechanisms| {
            SaslFrame::Mechanisms(SaslMechanisms { sasl_server_mechanisms })
        }),
        (symbol(), option::of(binary()), option::of(text())).prop_map(
            |(mechanism, initial_response, hostname)| {
                SaslFrame::Init(SaslInit { mechanism, initial_response, hostname })
            }
        ),
        binary().prop_map(|challenge| SaslFrame::Challenge(SaslChallenge { challenge })),
        binary().prop_map(|response| SaslFrame::Response(SaslResponse { response })),
        (code, option::of(binary())).prop_map(|(code, additional_data)| {
            SaslFrame::Outcome(SaslOutcome { code, additional_data })
        }),
    ]
    .boxed()
}

pub fn properties() -> BoxedStrategy<Properties<'static>> {
    let id = || {
        let model = prop_oneof![
            ulong().prop_map(Model::Ulong),
            any::<[u8; 16]>().prop_map(Model::Uuid),
            bytes().prop_map(Model::Binary),
            string_text().prop_map(Model::Str)
        ];
        option::of(model.prop_map(|model| as_value(&model)))
    };
    let time = || any::<Option<i64>>().prop_map(|time| time.map(Timestamp));
    (
        (id(), option::of(binary()), option::of(text()), option::of(text()), option::of(text()), id()),
        (option::of(symbol()), option::of(symbol()), time(), time()),
        (option::of(text()), option::of(uint()), option::of(text())),
    )
        .prop_map(|(first, second, third)| Properties {
            message_id: first.0,
            user_id: first.1,
            to: first.2,
            subject: first.3,
            reply_to: first.4,
            correlation_id: first.5,
            content_type: second.0,
            content_encoding: second.1,
            absolute_expiry_time: second.2,
            creation_time: second.3,
            group_id: third.0,
            group_sequence: third.1,
            reply_to_group_id: third.2,
        })
        .boxed()
}
