//! One healthy server.

use redis::{Value, cmd};

use super::harness::{RedisServer, TIMEOUT};
use super::{COUNT, call_concurrently, increment, integer, link, options, with_short_limits};
use crate::StoreError;
use crate::redis::link::{Link, LinkOptions, RedisServers, RedisTopology};
use crate::redis::script::Script;
use sakshi_kit::tls::Authority;

/// Returns a link with long time limits, which does not retry slow calls on a busy machine.
fn patient_link(url: &str) -> Link {
    Link::new(LinkOptions { response_timeout: TIMEOUT, call_timeout: TIMEOUT * 2, ..options(url) })
}

#[tokio::test]
async fn a_server_runs_an_unknown_and_a_forgotten_script() {
    let server = RedisServer::start(&[]);
    let link = link(&server.url());
    assert_eq!(increment(&link, "a").await, Ok(1));
    assert_eq!(increment(&link, "a").await, Ok(2));
    server.answer(&["SCRIPT", "FLUSH"]);
    assert_eq!(increment(&link, "a").await, Ok(3));
    assert_eq!(
        link.call_until_answered(&COUNT, vec![b"a".to_vec()], vec![b"1".to_vec()]).await.map(|value| integer(&value)),
        Ok(4)
    );
}

#[tokio::test]
async fn replies_come_in_the_order_of_the_commands() {
    let server = RedisServer::start(&[]);
    let link = link(&server.url());
    let mut commands = Vec::new();
    for index in 0..1_000 {
        set_counter(&link, index).await;
        let mut get = cmd("GET");
        get.arg(format!("k{index}"));
        commands.push(get);
    }
    let values = link.read_all(commands.clone()).await.unwrap();
    assert_eq!(values.iter().map(integer).collect::<Vec<_>>(), (0..1_000).collect::<Vec<_>>());
    assert_eq!(link.read(commands[7].clone()).await, Ok(Value::BulkString(b"7".to_vec())));
    assert_eq!(link.read_all(Vec::new()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_refused_read_fails_all_reads_and_is_not_retried() {
    let server = RedisServer::start(&[]);
    let link = patient_link(&server.url());
    let read = |key: &str| link.read_all(vec![cmd("GET").arg("none").to_owned(), cmd("GET").arg(key).to_owned()]);
    assert_eq!(read("other").await, Ok(vec![Value::Nil, Value::Nil]));
    server.answer(&["LPUSH", "list", "1"]);
    assert!(matches!(read("list").await, Err(StoreError::Corrupt(_))));
    assert_eq!(link.figures().repeats, 0);
}

#[tokio::test]
async fn a_thread_keeps_its_connections() {
    let server = RedisServer::start(&[]);
    let link = patient_link(&server.url());
    let connections_opened = || {
        let info = server.answer(&["INFO", "stats"]).text().unwrap();
        let count = |line: &str| line.strip_prefix("total_connections_received:")?.trim().parse::<u64>().ok();
        info.lines().find_map(count).unwrap()
    };
    let before = connections_opened();
    for _ in 0..100 {
        increment(&link, "a").await.unwrap();
    }
    // A thread has few connections, and one is the connection of this query.
    assert!(connections_opened() - before < 10);
}

/// Sets the counter `k<index>` to its index.
async fn set_counter(link: &Link, index: i64) {
    let value = index.to_string().into_bytes();
    link.call(&COUNT, vec![format!("k{index}").into_bytes()], vec![value]).await.unwrap();
}

#[tokio::test]
async fn a_full_server_refuses_writes_and_can_still_be_read() {
    let server = RedisServer::start(&["maxmemory 2mb", "maxmemory-policy noeviction"]);
    let link = link(&server.url());
    static FILL: Script = Script::confirmed("fill", "#!lua\nreturn redis.call('SET', KEYS[1], ARGV[1])");
    let fill = async {
        for index in 0..100 {
            link.call(&FILL, vec![format!("f{index}").into_bytes()], vec![vec![b'x'; 100_000]]).await?;
        }
        Ok(())
    };
    assert_eq!(fill.await, Err(StoreError::Full));
    let mut get = cmd("STRLEN");
    get.arg("f0");
    assert_eq!(link.read(get).await, Ok(Value::Int(100_000)));
}

#[tokio::test]
async fn a_refused_script_is_not_retried() {
    let server = RedisServer::start(&[]);
    let link = link(&server.url());
    static WRONG: Script =
        Script::confirmed("wrong", "#!lua\nredis.call('INCR', 'tries') return redis.call('LPUSH', KEYS[1], '1')");
    increment(&link, "number").await.unwrap();
    assert!(matches!(link.call(&WRONG, vec![b"number".to_vec()], Vec::new()).await, Err(StoreError::Corrupt(_))));
    assert_eq!(server.answer(&["GET", "tries"]).text().as_deref(), Some("1"));
    let unlimited = link.call_until_answered(&WRONG, vec![b"number".to_vec()], Vec::new()).await;
    assert!(matches!(unlimited, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused_at_once_and_no_permit_is_lost() {
    let server = RedisServer::start(&[]);
    let mut options = options(&server.url());
    options.max_waiting = 10;
    let link = Link::new(options);
    for _ in 0..3 {
        let (outcomes, _) = call_concurrently(&link, 50, |index| index.to_string()).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 10);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(StoreError::Overloaded)).count(), 40);
    }
    let figures = link.figures();
    assert_eq!((figures.in_flight, figures.refused), (0, 120));
    assert_eq!(
        figures.calls.iter().map(|script| (script.name, script.calls, script.failures)).collect::<Vec<_>>(),
        [("count", 30, 0)]
    );
}

#[tokio::test]
async fn connections_of_a_thread_survive_the_end_of_another_thread() {
    let server = RedisServer::start(&[]);
    let link = link(&server.url());
    for round in 1..=20 {
        let link = link.clone();
        let other_thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(increment(&link, "a"))
        });
        assert_eq!(other_thread.join().unwrap(), Ok(round * 2 - 1));
        assert_eq!(increment(&self::link(&server.url()), "a").await, Ok(round * 2));
    }
}

#[tokio::test]
async fn a_password_is_used_and_never_shown() {
    let server = RedisServer::start(&["requirepass geheim"]);
    let url = format!("redis://:geheim@{}/", server.address());
    let with_password = link(&url);
    assert_eq!(increment(&with_password, "a").await, Ok(1));
    let with_wrong_password = link(&format!("redis://:falsch@{}/", server.address()));
    let refused = increment(&with_wrong_password, "a").await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unavailable(reason) if reason.contains("credentials")), "{refused}");
    let debug_text = format!(
        "{with_password:?} {with_wrong_password:?} {refused:?} {:?} {:?}",
        options(&url),
        RedisServers::new(&["redis://:geheim@"], RedisTopology::Standalone)
    );
    assert!(!debug_text.contains("geheim") && !debug_text.contains("falsch"), "{debug_text}");
}

#[tokio::test]
async fn a_server_without_tls_is_never_used_unencrypted() {
    let server = RedisServer::start(&[]);
    for login in [":geheim@", ""] {
        let link = link(&format!("rediss://{login}{}/", server.address()));
        assert!(matches!(increment(&link, "a").await, Err(StoreError::Unavailable(_))));
    }
    assert_eq!(server.answer(&["DBSIZE"]).integer(), Some(0));
}

#[tokio::test]
async fn client_certificates_and_a_private_authority_are_used() {
    let (authority, directory) = (Authority::create(), tempfile::tempdir().unwrap());
    let server = authority.issue(&["127.0.0.1"]);
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (name, text) in [("ca", &authority.pem), ("cert", &server.certificate), ("key", &server.key)] {
        std::fs::write(path(name), text).unwrap();
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let lines = [
        format!("tls-port {port}"),
        format!("tls-cert-file {}", path("cert")),
        format!("tls-key-file {}", path("key")),
        format!("tls-ca-cert-file {}", path("ca")),
        "tls-auth-clients yes".to_owned(),
    ];
    let _server = RedisServer::start(&lines.each_ref().map(String::as_str));
    let servers = || RedisServers::new(&[format!("rediss://127.0.0.1:{port}/")], RedisTopology::Standalone).unwrap();
    let client_certificate = authority.issue(&["sakshi"]);
    let pem = |text: &str| text.as_bytes().to_vec();
    let identity = || Some((pem(&client_certificate.certificate), pem(&client_certificate.key)));
    let call = async |servers: RedisServers| increment(&Link::new(with_short_limits(servers)), "a").await;
    assert_eq!(call(servers().with_certificates(Some(pem(&authority.pem)), identity()).unwrap()).await, Ok(1));
    let other_authority = Authority::create();
    for (authorities, identity) in [(Some(pem(&authority.pem)), None), (Some(pem(&other_authority.pem)), identity())] {
        let refused = call(servers().with_certificates(authorities, identity).unwrap()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    assert!(
        servers().with_certificates(Some(pem("garbage")), None).is_err()
            || servers().with_certificates(None, Some((vec![], vec![]))).is_err()
    );
}

#[test]
fn an_invalid_url_is_refused() {
    let servers =
        |url: &str| RedisServers::new(&[url], RedisTopology::Standalone).map(|servers| format!("{servers:?}"));
    assert!(servers("redis://host").unwrap().contains(r#"Standalone, seeds: [Address { host: "host", port: 6379 }]"#));
    for wrong in ["", "redis", "http://host", "redis+cluster://a", "redis://a:port", "unix:///tmp/redis"] {
        assert!(servers(wrong).is_err(), "{wrong}");
    }
    assert!(RedisServers::new::<&str>(&[], RedisTopology::Cluster).is_err());
}
