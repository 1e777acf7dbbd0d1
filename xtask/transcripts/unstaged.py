"""The pages with `console` blocks that are not played, and why."""

UNSTAGED = {
    "README": "its calls run in crates/toolpost/tests/it/readme.rs",
    "wasm": "needs a binary with the feature `wasm`, and the toolchains of components",
    "grpc": "needs a binary with the feature `grpc`, and Python's grpcio",
    "writing-a-tool": "its host is an example that cargo builds and runs (examples/tests)",
}
