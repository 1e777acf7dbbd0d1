//! What a command can reach over sockets.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use toolpost_model::{SandboxProfile, SandboxTier};

use crate::bench_of_jobs::Bench;

fn connect(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")
}

#[tokio::test]
async fn the_network_is_there_only_where_the_profile_says() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for tier in [SandboxTier::A, SandboxTier::B, SandboxTier::C] {
        for (profile, reaches) in [
            (SandboxProfile::ReadOnly, false),
            (SandboxProfile::WorkspaceWrite, false),
            (SandboxProfile::Network, true),
            (SandboxProfile::None, true),
        ] {
            let bench = Bench::at_most(tier).profile(profile);
            let ran = bench.run(&connect(port)).await;
            assert_eq!(
                ran.ended.code == Some(0),
                reaches,
                "{tier:?} {profile} {ran:?}"
            );
            let net = bench.start("true").await.applied().net.clone();
            assert_eq!(net == "host", reaches, "{tier:?} {profile} {net}");
        }
    }
}

#[tokio::test]
async fn without_the_network_there_is_a_loopback_of_its_own() {
    let bench = Bench::new();
    let script = "import socket\n\
                  listener = socket.create_server(('127.0.0.1', 0))\n\
                  client = socket.create_connection(listener.getsockname())\n\
                  client.send(b'hello')\n\
                  print(listener.accept()[0].recv(5).decode())";
    let ran = bench
        .run_job(bench.job(&["python3", "-c", script]))
        .await
        .unwrap();
    assert_eq!(ran.ok(), "hello");
    let pair = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1).decode())";
    for tier in [SandboxTier::A, SandboxTier::B, SandboxTier::C] {
        let bench = Bench::at_most(tier);
        assert_eq!(
            bench
                .run_job(bench.job(&["python3", "-c", pair]))
                .await
                .unwrap()
                .ok(),
            "x",
            "{tier:?}"
        );
    }
}

#[tokio::test]
async fn sockets_of_the_machine_are_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docker.sock");
    let _by_path = UnixListener::bind(&path).unwrap();
    let name = format!("toolpost-test-{}", std::process::id());
    let _by_name =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let try_both = format!(
        "import socket\nfor address in ['{}', '\\0{name}']:\n    try:\n        \
         socket.socket(socket.AF_UNIX).connect(address)\n        print('connected')\n    \
         except OSError: pass",
        path.display()
    );
    for tier in [SandboxTier::A, SandboxTier::B] {
        for profile in [SandboxProfile::WorkspaceWrite, SandboxProfile::Network] {
            let bench = Bench::at_most(tier).profile(profile);
            let mut job = bench.job(&["python3", "-c", &try_both]);
            job.environment
                .push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
            let process = bench.launcher.start(job).await.unwrap();
            let missing = process.applied().missing.clone();
            let ran = crate::bench_of_jobs::finish(process).await;
            let says_so = missing.iter().any(|one| one.contains("unix sockets"));
            assert_eq!(
                ran.ok().is_empty(),
                !says_so,
                "{tier:?} {profile} {missing:?} {ran:?}"
            );
            assert!(tier == SandboxTier::B || !says_so);
        }
    }
}

#[tokio::test]
async fn only_usual_kinds_of_sockets_can_be_opened() {
    let bench = Bench::new().profile(SandboxProfile::Network);
    for (family, kind, protocol, opens) in [
        ("AF_INET", "SOCK_STREAM", 0, true),
        ("AF_INET6", "SOCK_DGRAM", 0, true),
        ("AF_UNIX", "SOCK_STREAM", 0, true),
        ("AF_NETLINK", "SOCK_RAW", 0, true),
        ("AF_NETLINK", "SOCK_RAW", 12, false),
        ("AF_VSOCK", "SOCK_STREAM", 0, false),
        ("AF_PACKET", "SOCK_RAW", 0, false),
        ("AF_ALG", "SOCK_SEQPACKET", 0, false),
    ] {
        let script =
            format!("import socket; socket.socket(socket.{family}, socket.{kind}, {protocol})");
        let ran = bench
            .run_job(bench.job(&["python3", "-c", &script]))
            .await
            .unwrap();
        assert_eq!(
            ran.ended.code == Some(0),
            opens,
            "{family} {protocol} {ran:?}"
        );
    }
}
