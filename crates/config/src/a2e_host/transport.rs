//! `transport`: the faces for agents. The content of `transport.config` is for clients that look for the host.

use crate::{nearest::suggestion, snippet::shown};

use super::A2eFace;
use crate::reading::{ConfigTable, ConfigTreeReader};

const TYPES: [&str; 4] = ["http", "subprocess", "stdio", "direct"];
const CLIENT_KEYS: [&str; 6] = [
    "base_url",
    "send_path",
    "stream_path",
    "command",
    "env",
    "cwd",
];

pub(super) fn read(root: &mut ConfigTable, reading: &mut ConfigTreeReader<'_>) -> A2eFace {
    let Some(mut transport) = reading.table(root, "transport") else {
        return A2eFace::default();
    };
    let face = face(&mut transport, reading);
    if let Some(mut config) = reading.table(&mut transport, "config") {
        for key in CLIENT_KEYS {
            // For the client, which reads the same file.
            config.take_entry(key);
        }
        reading.name_the_rest(&config, "A2E", &CLIENT_KEYS);
    }
    reading.name_the_rest(&transport, "A2E", &["type", "config"]);
    face
}

fn face(transport: &mut ConfigTable, reading: &mut ConfigTreeReader<'_>) -> A2eFace {
    let Some(written) = reading.text(transport, "type") else {
        return A2eFace::default();
    };
    match written.value.as_str() {
        "http" => {}
        "subprocess" | "stdio" => return A2eFace::Stdio,
        "direct" => {
            let message = "`transport.type` is `direct`, which is for programs that embed a host; \
                           this host serves HTTP";
            reading.notice(written.at, "transport.type".to_owned(), message.to_owned());
        }
        other => {
            let message = format!(
                "`transport.type` is `{}`, which is not a transport of A2E",
                shown(other)
            );
            reading.complain(
                written.at,
                message,
                suggestion(other, &TYPES, "the transports are"),
            );
        }
    }
    A2eFace::Http
}
