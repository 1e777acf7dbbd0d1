//! The duration of the suites, from the report that nextest writes for every run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

/// The path of the report in `.config/nextest.toml`.
const REPORT: &str = "target/nextest/default/junit.xml";
/// Suites below this are counted together.
const SHOWN_SECONDS: f64 = 15.0;

#[derive(Default)]
pub(crate) struct RunReport {
    /// Seconds of the tests' own time, by suite: a binary and the first part of the tests' names.
    suites: BTreeMap<String, (usize, f64)>,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl RunReport {
    /// Removes the report of an earlier run, so that it is not taken for this one's.
    pub(crate) fn clear(root: &Path) {
        let _ = fs::remove_file(root.join(REPORT));
    }

    /// `None`: no test ran, as after a build that failed.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        fs::read_to_string(root.join(REPORT))
            .ok()
            .map(|text| Self::of(&text))
    }

    /// Reads the elements that nextest writes, one tag at a time. It escapes `<` in every text, so a tag is never part
    /// of a test's output.
    fn of(text: &str) -> Self {
        let mut report = Self::default();
        let mut binary = "";
        for tag in text.split('<').filter_map(|piece| piece.split('>').next()) {
            if tag.starts_with("testsuite ") {
                binary = attribute(tag, "name").unwrap_or_default();
            } else if tag.starts_with("testcase ") {
                let name = attribute(tag, "name").unwrap_or_default();
                let seconds = attribute(tag, "time")
                    .and_then(|time| time.parse().ok())
                    .unwrap_or(0.0);
                let first = name.split_once("::").map_or("", |(first, _)| first);
                let suite = report
                    .suites
                    .entry(format!("{binary} {first}"))
                    .or_default();
                *suite = (suite.0 + 1, suite.1 + seconds);
                report.passed += 1;
            } else if tag.starts_with("failure") || tag.starts_with("error") {
                report.passed -= 1;
                report.failed += 1;
            }
        }
        report
    }

    /// Prints the suites that take long, the longest first.
    pub(crate) fn print(&self) {
        let mut suites: Vec<_> = self.suites.iter().collect();
        suites.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
        let (long, short): (Vec<_>, Vec<_>) = suites
            .into_iter()
            .partition(|(_, (_, seconds))| *seconds >= SHOWN_SECONDS);
        eprintln!("\nminutes  tests  suite (several run at the same time)");
        for (suite, (tests, seconds)) in long {
            eprintln!("{:7.1}  {tests:5}  {}", seconds / 60.0, suite.trim_end());
        }
        let tests: usize = short.iter().map(|(_, (tests, _))| tests).sum();
        let seconds: f64 = short.iter().map(|(_, (_, seconds))| seconds).sum();
        eprintln!("{:7.1}  {tests:5}  {} more", seconds / 60.0, short.len());
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LibtestCount {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl LibtestCount {
    /// Passes the output on and adds up its lines `test result: ok. 3 passed; 0 failed; …`.
    pub(crate) fn of(output: impl Read) -> Self {
        let mut count = Self::default();
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            let Some(result) = line.strip_prefix("test result: ") else {
                continue;
            };
            for part in result.split([';', '.']) {
                let mut words = part.split_whitespace();
                let number = words.next().and_then(|word| word.parse::<usize>().ok());
                match (number, words.next()) {
                    (Some(number), Some("passed")) => count.passed += number,
                    (Some(number), Some("failed")) => count.failed += number,
                    _ => {}
                }
            }
        }
        count
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_test_programs_are_added_up() {
        let output = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
                      test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        let expected = LibtestCount {
            passed: 5,
            failed: 1,
        };
        assert_eq!(LibtestCount::of(output.as_bytes()), expected);
    }

    #[test]
    fn tests_are_counted_by_suite() {
        let text = r#"<?xml version="1.0"?>
            <testsuites name="nextest-run" tests="3" failures="1" errors="0" time="9.0">
              <testsuite name="toolpost::it" tests="3" failures="1">
                <testcase name="abuse::web" classname="toolpost::it" time="40.5"/>
                <testcase name="abuse::code" classname="toolpost::it" time="20.0">
                  <failure type="test failure">&lt;testcase name="x" time="1"/&gt;</failure>
                </testcase>
                <testcase name="plain" classname="toolpost::it" time="0.5"><system-out>a</system-out></testcase>
              </testsuite>
            </testsuites>"#;
        let report = RunReport::of(text);
        assert_eq!((report.passed, report.failed), (2, 1));
        let expected = [
            ("toolpost::it ", (1, 0.5)),
            ("toolpost::it abuse", (2, 60.5)),
        ];
        let expected = expected.map(|(name, sum)| (name.to_owned(), sum));
        assert_eq!(report.suites.into_iter().collect::<Vec<_>>(), expected);
    }
}
