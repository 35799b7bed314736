//! A bare server on Redis: the unavoidable part of an init when many nodes share a store. It makes a signature and runs
//! one script that debits a counter and writes a record.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::web::{Bytes, Data, to};
use actix_web::{App, HttpResponse, HttpServer};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use redis::aio::MultiplexedConnection;
use sakshi_kit::redis::RedisServer;
use serde_json::json;
use uuid::Uuid;

use crate::crypto::Signer;
use crate::role::{commands, send_line};
use crate::{Failure, load};

/// Debits the counter, and writes a record that expires after 15 minutes; returns 0 without credits.
const SCRIPT: &str = "if redis.call('DECR', KEYS[1]) < 0 then redis.call('INCR', KEYS[1]) return 0 end \
     redis.call('HSET', KEYS[2], 'a', ARGV[1], 'b', ARGV[2]) redis.call('PEXPIRE', KEYS[2], 900000) return 1";
/// Bytes of a record, about as many as sealed terms.
const RECORD_BYTES: usize = 300;

/// The script, loaded into a Redis.
pub(crate) struct Script {
    /// The SHA-1 by which Redis knows the script.
    name: String,
    record: Vec<u8>,
}

impl Script {
    /// Loads the script and grants credits.
    pub(crate) async fn load(connection: &mut MultiplexedConnection) -> Result<Self, Failure> {
        redis::cmd("SET").arg("{bench}credits").arg(1_000_000_000).query_async::<()>(connection).await?;
        let name = redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(connection).await?;
        Ok(Self { name, record: vec![7; RECORD_BYTES] })
    }

    /// Runs the script once: debits the counter and writes a record.
    pub(crate) async fn call(&self, connection: &mut MultiplexedConnection) -> Result<(), Failure> {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.name).arg(2).arg("{bench}credits").arg(format!("{{bench}}{}", Uuid::new_v4()));
        match call.arg(&self.record[..]).arg(RECORD_BYTES).query_async(connection).await? {
            1_u8 => Ok(()),
            _ => Err("no credits are left".into()),
        }
    }
}

/// Starts a new Redis with an append-only file and the given `appendfsync`.
pub(crate) fn start_redis(fsync: &str) -> RedisServer {
    RedisServer::start(&["appendonly yes", &format!("appendfsync {fsync}"), "hash-max-listpack-value 1024"])
}

/// State of all workers.
struct Shared {
    signer: Signer,
    script: Script,
    /// A body of the right length.
    filler: String,
}

/// Opens a connection without a response timeout.
pub(crate) async fn connect(client: &redis::Client) -> redis::RedisResult<MultiplexedConnection> {
    let no_timeout = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&no_timeout).await
}

/// Serves answers of `answer_bytes` bytes. Each worker has one connection, on its own runtime.
pub(crate) async fn serve(key: &Path, url: &str, answer_bytes: usize) -> Result<(), Failure> {
    let client = redis::Client::open(url)?;
    let script = Script::load(&mut connect(&client).await?).await?;
    let signer = Signer::read(key)?;
    let shared = Data::from(Arc::new(Shared { signer, script, filler: "x".repeat(answer_bytes) }));
    let server = HttpServer::new(move || {
        let (shared, client) = (shared.clone(), client.clone());
        let open_connection = move || {
            let client = client.clone();
            async move { connect(&client).await.map(Rc::new).map_err(|_| ()) }
        };
        App::new().app_data(shared).data_factory(open_connection).default_service(to(handle))
    })
    .workers(load::cores())
    .disable_signals()
    .bind(("127.0.0.1", 0))?;
    let address = server.addrs().pop();
    actix_rt::spawn(server.run());
    send_line(&json!({ "address": address }))?;
    while commands().recv().await.is_some() {}
    Ok(())
}

// Takes the body, because every handler has to read it.
async fn handle(_body: Bytes, shared: Data<Shared>, connection: Data<Rc<MultiplexedConnection>>) -> HttpResponse {
    let Ok(signature) = shared.signer.sign() else { return HttpResponse::InternalServerError().finish() };
    let mut connection = MultiplexedConnection::clone(&connection);
    if shared.script.call(&mut connection).await.is_err() {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let mut body = shared.filler.clone();
    let length = body.len();
    URL_SAFE_NO_PAD.encode_string(signature, &mut body);
    let signature_len = body.len() - length;
    body.drain(..signature_len.min(length));
    HttpResponse::Ok().content_type("application/json").body(body)
}
