//! Modules in archives, over HTTP and from this machine.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::place::{Place, python, said};

/// Answers every request with the same bytes, or with a redirect.
struct Web {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Web {
    fn serve(head: String, body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                {}
                let mut stream = stream;
                let length = body.len();
                let _ = stream.write_all(
                    format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n")
                        .as_bytes(),
                );
                let _ = stream.write_all(&body);
            }
        });
        Self { address, asked }
    }

    fn file(body: Vec<u8>) -> Self {
        Self::serve("HTTP/1.1 200 OK\r\n".to_owned(), body)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Makes an archive with Python, which can also make what no honest program would.
fn archive(place: &Place, script: &str) -> Vec<u8> {
    let path = place.path("made.zip");
    let script = format!(
        "import sys, zipfile, stat\nwith zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z:\n{script}"
    );
    said(Command::new(python()).args(["-c", &script]).arg(&path));
    fs::read(&path).unwrap()
}

/// Of a module in a folder of its own, as hosts of repositories make them.
const MODULE: &str = "    z.writestr('repo-main/amplifier_module_tool_z/__init__.py', 'async def mount(c, config=None): pass\\n')\n    \
                      z.writestr('repo-main/pyproject.toml', '[project]\\nname = \"z\"\\n')\n    \
                      z.writestr('repo-main/inner/amplifier_module_tool_y/__init__.py', '')\n";

fn allow(place: &Place, web: &Web) {
    place.config(&format!(
        "network: {{ private: ['http://{}/'] }}\n",
        web.address
    ));
}

fn plan(place: &Place, source: &str) {
    place.plan(&format!(
        "tools:\n  - {{ module: tool-z, source: '{source}' }}\n"
    ));
}

#[test]
fn an_archive_is_fetched_once_and_its_outer_folder_is_looked_through() {
    let place = Place::new();
    let web = Web::file(archive(&place, MODULE));
    plan(&place, &format!("http://{}/repo/main.zip", web.address));
    let refused = place.modules(&["fetch"]).expect(1);
    assert!(refused.stdout.contains("127.0.0.1"), "{}", refused.stdout);
    assert_eq!(
        web.asked(),
        0,
        "a private address is reached only where the operator lists it"
    );
    allow(&place, &web);
    let fetched = place.modules(&["fetch", "--json"]).expect(0).json();
    assert_eq!(
        (&fetched["modules"][0]["state"], web.asked()),
        (&"fetched".into(), 1),
        "{fetched}"
    );
    assert!(
        fetched["modules"][0]["root"]
            .as_str()
            .unwrap()
            .ends_with("/repo-main"),
        "{fetched}"
    );
    place.modules(&["fetch"]).expect(0);
    place.modules(&["list"]).expect(0);
    assert_eq!(web.asked(), 1);
    place.modules(&["update"]).expect(0);
    assert_eq!(web.asked(), 2);
    plan(
        &place,
        &format!(
            "zip+http://{}/repo/main.zip#subdirectory=inner",
            web.address
        ),
    );
    let inner = place.modules(&["list", "--json"]).expect(0).json();
    assert!(
        inner[0]["root"]
            .as_str()
            .unwrap()
            .ends_with("/repo-main/inner"),
        "{inner}"
    );
}

#[test]
fn an_archive_of_this_machine_is_one_too() {
    let place = Place::new();
    fs::write(place.path("z.zip"), archive(&place, MODULE)).unwrap();
    plan(&place, "zip+file://./z.zip");
    let fetched = place.modules(&["fetch", "--json"]).expect(0).json();
    assert_eq!(fetched["modules"][0]["pin"]["kind"], "archive", "{fetched}");
    fs::remove_file(place.path("z.zip")).unwrap();
    place.modules(&["list"]).expect(0);
}

#[test]
fn a_redirect_goes_only_where_the_first_address_could() {
    let place = Place::new();
    let secret = Web::file(archive(&place, MODULE));
    let location = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/x.zip\r\n",
        secret.address
    );
    let web = Web::serve(location, Vec::new());
    allow(&place, &web);
    plan(&place, &format!("http://{}/x.zip", web.address));
    let refused = place.modules(&["fetch"]).expect(1);
    assert!(
        refused.stdout.contains("after a redirect"),
        "{}",
        refused.stdout
    );
    assert_eq!((web.asked(), secret.asked()), (1, 0));
    place.config(&format!(
        "network: {{ private: ['http://{}/', 'http://{}/'] }}\n",
        web.address, secret.address
    ));
    place.modules(&["fetch"]).expect(0);
}

#[test]
fn hostile_archives_leave_nothing_behind() {
    let check = |script: &str, expected: &str| {
        let place = Place::new();
        fs::write(place.path("z.zip"), archive(&place, script)).unwrap();
        plan(&place, "zip+file://./z.zip");
        let refused = place.modules(&["fetch"]).expect(1);
        assert!(
            refused.stdout.contains(expected),
            "{expected}: {}",
            refused.stdout
        );
        assert!(!place.path("evil").exists() && !place.cache().join("evil").exists());
        let kept = super::place::files(&place.cache().join("modules"));
        assert_eq!(kept, Vec::<std::path::PathBuf>::new(), "{expected}");
    };
    check(
        "    z.writestr('../../../evil', 'x')\n",
        "outside of its folder",
    );
    check(
        "    z.writestr('/tmp/evil', 'x')\n",
        "outside of its folder",
    );
    check(
        "    z.writestr('a\\\\..\\\\evil', 'x')\n",
        "outside of its folder",
    );
    let link = "    i = zipfile.ZipInfo('link')\n    i.external_attr = (stat.S_IFLNK | 0o777) << 16\n    z.writestr(i, '/etc/passwd')\n";
    check(link, "links are not unpacked");
    let bomb =
        "    big = bytes(64 << 20)\n    for i in range(20):\n        z.writestr(f'f{i}', big)\n";
    check(bomb, "larger than 1024 MiB");
    check(
        "    for i in range(20001):\n        z.writestr(f'f{i}', '')\n",
        "more than 20000 files",
    );
}

#[test]
fn an_answer_that_is_no_file_is_told() {
    let place = Place::new();
    let web = Web::serve("HTTP/1.1 404 Not Found\r\n".to_owned(), b"gone".to_vec());
    allow(&place, &web);
    plan(&place, &format!("http://{}/x.zip", web.address));
    let failed = place.modules(&["fetch"]).expect(1);
    assert!(failed.stdout.contains("status 404"), "{}", failed.stdout);
}
