//! Real clients that others wrote exchange messages through the real router: Proton for Python, rhea and fe2o3-amqp, each
//! as sender and as receiver of each other; and a client of Proton asks the management node as `qdmanage` does.
//! `peers/README.md` describes the small programs; `scenarios.rs` has what they are told and the right answers; `wire.rs` looks
//! at every frame in between. `scripts/test` installs what they need.
//!
//! `RINGMAIN_BIN` names another router binary to test; `RINGMAIN_SKIP_INTEROP=1` skips these tests.

mod management;
mod peer;
mod process;
mod readme;
mod router;
mod scenarios;
mod websocket;
mod wire;

macro_rules! pairing {
    ($name:ident: $sender:ident, $receiver:ident) => {
        pairing!($name: $sender, $receiver;
            unsettled, presettled, outcomes, large_message, drain, request_reply, request_reply_over_relay, relay,
            refused, credit_of_one, small_window, max_frame_size_512);
    };
    ($name:ident: $sender:ident, $receiver:ident; $($scenario:ident),+) => {
        mod $name {
            use crate::peer::Library;
            use crate::scenarios::{self, Pairing};

            const PAIRING: Pairing = Pairing { sender: Library::$sender, receiver: Library::$receiver };

            $(
                #[test]
                fn $scenario() {
                    if !crate::is_skipped() {
                        scenarios::$scenario(PAIRING);
                    }
                }
            )+
        }
    };
}

pairing!(proton_to_proton: Proton, Proton);
pairing!(proton_to_rhea: Proton, Rhea);
pairing!(proton_to_fe2o3: Proton, Fe2o3);
pairing!(rhea_to_proton: Rhea, Proton);
pairing!(rhea_to_rhea: Rhea, Rhea);
pairing!(rhea_to_fe2o3: Rhea, Fe2o3);
pairing!(fe2o3_to_proton: Fe2o3, Proton);
pairing!(fe2o3_to_rhea: Fe2o3, Rhea);
pairing!(fe2o3_to_fe2o3: Fe2o3, Fe2o3);

#[test]
fn rhea_over_websocket() {
    if !is_skipped() {
        websocket::rhea_to_rhea();
    }
}

#[test]
fn management_tools() {
    if !is_skipped() {
        management::what_the_tools_do();
    }
}

fn is_skipped() -> bool {
    let skipped = std::env::var_os("RINGMAIN_SKIP_INTEROP").is_some_and(|value| value == "1");
    if skipped {
        eprintln!("SKIPPED: RINGMAIN_SKIP_INTEROP=1 is set, so no client was run");
    }
    skipped
}
