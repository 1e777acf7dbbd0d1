//! The files of a new module. The templates are beside this file, with placeholders between `@`.

use std::path::PathBuf;

use super::{ModuleLanguage, ModuleName};

/// The name of the test kit for modules in Python.
pub(super) const TEST_KIT_NAME: &str = "toolpost_testkit.py";
pub(super) const TEST_KIT: &str = include_str!("testkit/toolpost_testkit.py");

/// The template of one language.
pub(super) struct ModuleTemplate {
    language: ModuleLanguage,
    files: &'static [(&'static str, &'static str)],
}

const PYTHON: &[(&str, &str)] = &[
    (
        "pyproject.toml",
        include_str!("templates/python/pyproject.toml.in"),
    ),
    (
        "@PACKAGE@/__init__.py",
        include_str!("templates/python/module.py.in"),
    ),
    (
        "tests/test_tool.py",
        include_str!("templates/python/tests/test_tool.py.in"),
    ),
    ("tests/toolpost_testkit.py", TEST_KIT),
    ("plan.yaml", include_str!("templates/plan.yaml.in")),
    ("README.md", include_str!("templates/python/README.md.in")),
    (".gitignore", "__pycache__/\n*.egg-info/\n.venv/\n"),
];

const RUST: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("templates/rust/Cargo.toml.in")),
    (
        "amplifier.toml",
        include_str!("templates/rust/amplifier.toml.in"),
    ),
    ("src/main.rs", include_str!("templates/rust/src/main.rs.in")),
    (
        "src/serving.rs",
        include_str!("templates/rust/src/serving.rs.in"),
    ),
    ("src/tool.rs", include_str!("templates/rust/src/tool.rs.in")),
    ("plan.yaml", include_str!("templates/plan.yaml.in")),
    ("README.md", include_str!("templates/rust/README.md.in")),
    (".gitignore", "/target\n"),
];

const WASM: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("templates/wasm/Cargo.toml.in")),
    (
        "amplifier.toml",
        include_str!("templates/wasm/amplifier.toml.in"),
    ),
    (
        "wit/tool.wit",
        include_str!("templates/wasm/wit/tool.wit.in"),
    ),
    ("src/lib.rs", include_str!("templates/wasm/src/lib.rs.in")),
    ("src/tool.rs", include_str!("templates/wasm/src/tool.rs.in")),
    ("build.sh", include_str!("templates/wasm/build.sh.in")),
    ("plan.yaml", include_str!("templates/wasm/plan.yaml.in")),
    ("README.md", include_str!("templates/wasm/README.md.in")),
    (".gitignore", "/target\n/module.wasm\n"),
];

impl ModuleTemplate {
    pub(super) fn of(language: ModuleLanguage) -> Self {
        let files = match language {
            ModuleLanguage::Python => PYTHON,
            ModuleLanguage::Rust => RUST,
            ModuleLanguage::Wasm => WASM,
        };
        Self { language, files }
    }

    /// Every file with its path in the module, with the names filled in.
    pub(super) fn files(&self, name: &ModuleName) -> Vec<(PathBuf, String)> {
        let filled =
            |(path, text): &(&str, &str)| (PathBuf::from(fill(path, name)), fill(text, name));
        self.files.iter().map(filled).collect()
    }

    /// The file with the tool's own code.
    pub(super) fn work_file(&self, name: &ModuleName) -> String {
        match self.language {
            ModuleLanguage::Python => fill("@PACKAGE@/__init__.py", name),
            ModuleLanguage::Rust | ModuleLanguage::Wasm => "src/tool.rs".to_owned(),
        }
    }

    /// The steps before the module can run.
    pub(super) fn build_steps(&self) -> &'static [&'static str] {
        match self.language {
            ModuleLanguage::Python => &["python3 -m unittest discover tests"],
            ModuleLanguage::Rust => &["cargo build --release"],
            ModuleLanguage::Wasm => &["rustup target add wasm32-wasip2", "sh build.sh"],
        }
    }
}

fn fill(text: &str, name: &ModuleName) -> String {
    text.replace("@MODULE_ID@", &name.module_id())
        .replace("@PACKAGE@", &name.package())
        .replace("@TOOL@", &name.tool())
        .replace("@CLASS@", &name.class())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_changed_is_marked() {
        let name = ModuleName::parse("word-count").unwrap();
        for language in [
            ModuleLanguage::Python,
            ModuleLanguage::Rust,
            ModuleLanguage::Wasm,
        ] {
            let template = ModuleTemplate::of(language);
            let files = template.files(&name);
            let (_, work) = files
                .iter()
                .find(|(path, _)| path.to_str() == Some(&template.work_file(&name)))
                .unwrap();
            // The work, the description, the arguments.
            assert!(work.matches("CHANGE").count() >= 4, "{work}");
        }
    }

    #[test]
    fn no_placeholder_stays() {
        let name = ModuleName::parse("word-count").unwrap();
        for language in [
            ModuleLanguage::Python,
            ModuleLanguage::Rust,
            ModuleLanguage::Wasm,
        ] {
            for (path, text) in ModuleTemplate::of(language).files(&name) {
                let left = ["@MODULE_ID@", "@PACKAGE@", "@TOOL@", "@CLASS@"];
                let shown = format!("{}\n{text}", path.display());
                assert!(!left.iter().any(|word| shown.contains(word)), "{shown}");
            }
        }
    }
}
