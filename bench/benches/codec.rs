//! The codec beside two others that Rust programs use: `serde_amqp` with `fe2o3-amqp-types`, and
//! `ntex-amqp-codec`. Each does what its own connection does with the same bytes.
//!
//! They give owned values where ours are views, so this compares what a connection pays, not equal results.
//! `serde_amqp` has no frames of its own: there, the frame's header is passed over.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fe2o3_amqp_types::messaging::Body;
use fe2o3_amqp_types::messaging::message::DecodeIntoMessage as _;
use fe2o3_amqp_types::performatives::Performative as SerdePerformative;
use ntex_amqp_codec::{AmqpFrame, Decode as _, Encode as _};
use ntex_bytes::{BytePages, Bytes};
use ringmain::base::id::Serial;
use ringmain::engine::delivery::PendingDisposition;
use ringmain_bench::frames::{self, FRAME_MAX};
use ringmain_codec::{
    DeliveryState, Encode, FrameKind, Performative, Role, Sections, Writer, split_frame, write_frame,
};
use serde_amqp::Value;
use serde_amqp::read::SliceReader;
use std::hint::black_box;

/// The bytes of a frame's header.
const HEADER: usize = 8;

/// The bytes of its size, which `ntex-amqp-codec` takes off before it decodes.
const SIZE: usize = 4;

/// Deliveries settled in one turn.
const RANGE: u32 = 64;

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split and decode");
    for (name, frame) in frames::each_performative() {
        group.bench_function(BenchmarkId::new("ringmain", name), |bencher| {
            bencher.iter(|| {
                let (frame, _) = split_frame(black_box(&frame), FRAME_MAX).unwrap().unwrap();
                black_box(Performative::decode(frame.body).unwrap());
            });
        });
        group.bench_function(BenchmarkId::new("serde_amqp", name), |bencher| {
            bencher.iter(|| {
                black_box(
                    serde_amqp::from_slice::<SerdePerformative>(&black_box(frame.as_slice())[HEADER..])
                        .unwrap(),
                );
            });
        });
        let bytes = Bytes::copy_from_slice(&frame[SIZE..]);
        group.bench_function(BenchmarkId::new("ntex-amqp-codec", name), |bencher| {
            bencher.iter(|| black_box(AmqpFrame::decode(&mut black_box(&bytes).clone()).unwrap()));
        });
    }
    group.finish();
}

fn encode_transfer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode transfer");
    let (tag, message) = (70_000u64.to_be_bytes(), frames::message());
    let transfer = frames::transfer(70_000, &tag);
    let frame = frames::frame(&transfer, &message);
    let mut room = vec![0; FRAME_MAX as usize];
    group.bench_function("ringmain", |bencher| {
        bencher.iter(|| {
            let mut writer = Writer::new(&mut room);
            write_frame(&mut writer, FrameKind::Amqp, 0, |writer| {
                black_box(&transfer).encode(writer)?;
                writer.extend(black_box(&message))
            })
            .unwrap();
            black_box(writer.len())
        });
    });
    let theirs: SerdePerformative = serde_amqp::from_slice(&frame[HEADER..]).unwrap();
    let mut buffer: Vec<u8> = Vec::with_capacity(FRAME_MAX as usize);
    group.bench_function("serde_amqp", |bencher| {
        bencher.iter(|| {
            buffer.clear();
            buffer.extend_from_slice(&[0, 0, 0, 0, 2, 0, 0, 0]);
            let mut serializer = serde_amqp::ser::Serializer::new(&mut buffer);
            serde::Serialize::serialize(black_box(&theirs), &mut serializer).unwrap();
            buffer.extend_from_slice(black_box(&message));
            let size = u32::try_from(buffer.len()).unwrap();
            buffer[..SIZE].copy_from_slice(&size.to_be_bytes());
            black_box(buffer.len())
        });
    });
    let theirs = AmqpFrame::decode(&mut Bytes::copy_from_slice(&frame[SIZE..])).unwrap();
    group.bench_function("ntex-amqp-codec", |bencher| {
        bencher.iter(|| {
            let mut pages = BytePages::default();
            black_box(&theirs).encode(&mut pages);
            black_box(pages.len())
        });
    });
    group.finish();
}

fn sections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("message sections");
    for (name, message) in
        [("body only", frames::message()), ("five sections", frames::message_of_many_sections())]
    {
        group.bench_function(BenchmarkId::new("ringmain", name), |bencher| {
            bencher.iter(|| {
                let mut sections = Sections::new(black_box(&message));
                let mut count = 0;
                while let Some(section) = sections.next().unwrap() {
                    black_box(section);
                    count += 1;
                }
                count
            });
        });
        group.bench_function(BenchmarkId::new("serde_amqp", name), |bencher| {
            bencher.iter(|| {
                let reader = SliceReader::new(black_box(&message));
                black_box(Body::<Value>::decode_message_from_reader(reader).unwrap());
            });
        });
        let bytes = Bytes::copy_from_slice(&message);
        group.bench_function(BenchmarkId::new("ntex-amqp-codec", name), |bencher| {
            bencher.iter(|| {
                black_box(ntex_amqp_codec::Message::decode(&mut black_box(&bytes).clone()).unwrap());
            });
        });
    }
    group.finish();
}

fn ranges(criterion: &mut Criterion) {
    let mut room = [0; 256];
    let one = |id: u32| {
        PendingDisposition::new(Serial(id), true, false, Some(&DeliveryState::Accepted)).expect("it is short")
    };
    criterion.bench_function(
        &format!("disposition range of {RANGE} deliveries, put together and written"),
        |bencher| {
            bencher.iter(|| {
                let mut pending = one(black_box(70_000));
                for id in 1..RANGE {
                    assert!(pending.extend(&one(black_box(70_000 + id))));
                }
                let mut writer = Writer::new(&mut room);
                write_frame(&mut writer, FrameKind::Amqp, 0, |writer| {
                    pending.disposition(Role::Receiver).encode(writer)
                })
                .unwrap();
                black_box(writer.len())
            });
        },
    );
}

criterion_group!(benches, decode, encode_transfer, sections, ranges);
criterion_main!(benches);
