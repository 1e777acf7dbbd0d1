use serde_json::{Value, json};
use toolpost_model::ErrorClass;

use super::{Net, Server, facts, refused, reply, text};

fn served(media_type: &str, content: impl Into<Vec<u8>>) -> Server {
    let header = format!("Content-Type: {media_type}");
    let content = content.into();
    Server::start(move |_| reply("200 OK", &[&header], &content))
}

#[track_caller]
fn page(html: &str, format: &str) -> String {
    let server = served("text/html; charset=utf-8", html);
    let output = Net::open(&[&server])
        .page(json!({ "url": server.url("/dir/page"), "format": format }))
        .unwrap();
    let told = text(&output).split_once("\n\n").unwrap().1.to_owned();
    told.replace(&server.url(""), "http://h")
}

#[test]
fn pages_become_markdown() {
    let check = |html: &str, expected: &str| assert_eq!(page(html, "markdown"), expected, "{html}");
    check(
        "<h1>A &amp; B</h1><p>one\n two<p>three",
        "# A & B\n\none two\n\nthree",
    );
    check(
        "<p>a <b>b</b> <i> c </i>d <del>e</del><b></b>",
        "a **b** *c* d ~~e~~",
    );
    check("<b><p>a</p><p>b</p></b>", "**a**\n\n**b**");
    check(
        "<a href='x?a=1&amp;b=2'>rel</a> <a href='/y'>abs</a> <a href=#z>frag</a> <a href='javascript:1'>js</a>",
        "[rel](http://h/dir/x?a=1&b=2) [abs](http://h/y) frag js",
    );
    check(
        "<a href=/c><div>card</div><div>two</div></a>",
        "[card two](http://h/c)",
    );
    check("<base href='/b/'><a href=x>l</a>", "[l](http://h/b/x)");
    check(
        "<ul><li>a<li>b<ul><li>c</ul><li><p>d</ul><ol><li>x<li>y</ol>",
        "- a\n- b\n  - c\n- d\n\n1. x\n2. y",
    );
    check("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc");
    check(
        "<pre><code class='language-rust'>fn a() {\n    b &lt; c\n}\n</code></pre>",
        "```rust\nfn a() {\n    b < c\n}\n```",
    );
    check(
        "<p>use <code>a  <span>b</span></code> and <code>`c`</code>",
        "use `a b` and `` `c` ``",
    );
    check("<pre>a ``` b</pre>", "````\na ``` b\n````");
    check(
        "<table><tr><th>A<th>B<tr><td>1<td>x|y</table>",
        "| A | B |\n| --- | --- |\n| 1 | x\\|y |",
    );
    check("<table><tr><td><p>layout<p>only</table>", "layout\n\nonly");
    check("<table><tr><td>a</td></tr></table>b", "a\n\nb");
    check("<dl><dt>term<dd>meaning</dl>", "**term**\n: meaning");
    check("a<br>b<br><br>c<hr>d", "a\nb\n\nc\n\n---\n\nd");
    check(
        "<img src=/i.png alt='a  pic'><img src=x><img alt=d src='data:x'>",
        "![a pic](http://h/i.png)[image: d]",
    );
    check("<h2><a href=/x>t</a><br>u</h2>", "## [t](http://h/x) u");
    check(
        "<ol><li>a<pre>x\ny</pre>b</ol>",
        "1. a\n\n   ```\n   x\n   y\n   ```\n\n   b",
    );
}

#[test]
fn what_is_not_for_readers_is_left_out() {
    let check = |html: &str, expected: &str| assert_eq!(page(html, "markdown"), expected, "{html}");
    check(
        "<nav>menu</nav><script>x</script><style>y</style><p>text</p><footer>foot</footer><button>b</button>",
        "text",
    );
    check(
        "<p>a<svg><title>icon</title><text>t</text></svg><p hidden>h<p style='Display: none'>i<p aria-hidden=true>j<p>b",
        "a\n\nb",
    );
    check(
        "<div role=navigation>n</div><div><nav>open</div>seen",
        "seen",
    );
    check("<article>a<footer>by me</footer></article>", "a\nby me");
    check(
        "<!-- c --><textarea>t</textarea><noscript>shown</noscript>",
        "shown",
    );
    let main = "word ".repeat(60);
    check(
        &format!("<header>site</header><main><p>{main}</main><p>after"),
        main.trim(),
    );
    // A main part with next to nothing in it is a shell for a script.
    check("<p>real<main></main>", "real");
}

#[test]
fn plain_text_has_no_marks() {
    let html = "<h1>T</h1><p>a <b>b</b> <a href=/x>c</a> <code>d</code><ul><li>e</ul><pre>f\n g</pre><table><tr><td>1<td>2<tr><td>3<td>4</table>";
    assert_eq!(
        page(html, "text"),
        "T\n\na b c d\n\n- e\n\nf\n g\n\n1\t2\n3\t4"
    );
    assert_eq!(page("<p>a", "html"), "<p>a");
}

#[test]
fn titles_and_facts() {
    let server = served(
        "text/html",
        "<head><title> A\n &amp; B </title></head><p>text",
    );
    let output = Net::open(&[&server])
        .page(json!({ "url": server.url("/p#frag") }))
        .unwrap();
    assert_eq!(
        text(&output),
        format!("A & B\n{}\n\ntext", server.url("/p"))
    );
    assert_eq!(
        (&facts(&output)["title"], &facts(&output)["total_chars"]),
        (&json!("A & B"), &json!(4))
    );
}

#[test]
fn long_pages_come_in_parts() {
    let server = served(
        "text/html; charset=utf-8",
        format!("<p>{}", "äö ".repeat(1_000)),
    );
    let net = Net::open(&[&server]);
    let part = |offset: usize| {
        net.page(json!({ "url": server.url("/"), "offset": offset, "max_chars": 2_000 }))
    };
    let first = part(0).unwrap();
    assert!(
        text(&first).ends_with("[characters 0 to 2000 of 2999; go on with `offset: 2000`]"),
        "{}",
        text(&first)
    );
    let second = part(2_000).unwrap();
    assert_eq!(
        (text(&second).chars().count(), second.truncated.is_none()),
        (999, true)
    );
    assert_eq!(
        refused(part(5_000), ErrorClass::InvalidArguments).code,
        "behind_the_end"
    );
}

#[test]
fn other_text_is_passed_on_and_the_rest_refused() {
    let get = |server: &Server| Net::open(&[server]).page(json!({ "url": server.url("/") }));
    let json_text = served("application/json", "{\"a\": [1]}");
    assert!(text(&get(&json_text).unwrap()).ends_with("\n\n{\"a\": [1]}"));
    let markdown = served("text/markdown", "# <b>not html</b>");
    assert!(text(&get(&markdown).unwrap()).ends_with("# <b>not html</b>"));
    for (media_type, content) in [
        ("application/pdf", &b"%PDF-1.7"[..]),
        ("image/png", b"\x89PNG"),
        ("text/html", b"a\0b"),
    ] {
        let failed = refused(
            get(&served(media_type, content)),
            ErrorClass::ExecutionFailed,
        );
        assert_eq!(failed.code, "not_a_page");
        assert!(
            failed.message.contains(media_type) && failed.hint.contains("save_to"),
            "{failed:?}"
        );
    }
    let empty = served("text/html", "<script>app()</script>");
    assert!(text(&get(&empty).unwrap()).ends_with("(the page has no text)"));
}

#[test]
fn pages_made_to_be_expensive_are_not() {
    let n = 100_000;
    let attributes: String = (0..n).map(|number| format!("a{number} ")).collect();
    let bold: String = (0..500).map(|number| format!("<b id={number}>")).collect();
    let bombs: Vec<(&str, String)> = vec![
        (
            "nested",
            format!("{}deep{}after", "<div>".repeat(n), "</div>".repeat(n)),
        ),
        ("lists", format!("{}deep", "<ul><li>".repeat(n))),
        (
            "quotes",
            format!("{}{}deep", "<blockquote>".repeat(n), "<br>x".repeat(n)),
        ),
        ("tables", format!("{}deep", "<table><tr><td>".repeat(n))),
        ("attributes", format!("<a {attributes} href=x>deep</a>")),
        ("formatting", format!("{bold}{}deep", "<p>x".repeat(n))),
        ("comments", format!("{}deep", "<!--a-->".repeat(n))),
        ("open tags", format!("deep{}", "<a ".repeat(n))),
        ("open comments", format!("deep{}", "<!-- ".repeat(n))),
        ("raw", format!("deep{}", "<title></b>".repeat(n))),
        ("references", format!("{}deep", "&zwnj;&x;&#".repeat(n))),
        (
            "ends",
            format!("{}{}deep", "<b>".repeat(200), "</i>".repeat(n)),
        ),
        (
            "links",
            format!(
                "<base href='/{}/'>{}deep",
                "p".repeat(2_000),
                "<a href=x>y</a>".repeat(n)
            ),
        ),
        ("quotes in tags", format!("deep{}", "<a b='".repeat(n))),
    ];
    for (name, html) in bombs {
        let server = served("text/html; charset=utf-8", html);
        // What takes its time for every byte runs into the deadline.
        let output = Net::open(&[&server])
            .page(json!({ "url": server.url("/"), "timeout_seconds": 50 }))
            .unwrap();
        let total = facts(&output)["total_chars"].as_u64().unwrap();
        assert!(total < 9_000_000, "{name}: {total}");
        let whole = facts(&output).get("incomplete") != Some(&Value::Bool(true));
        assert!(
            total > 0 && (whole || name == "links"),
            "{name}: {}",
            facts(&output)
        );
    }
}
