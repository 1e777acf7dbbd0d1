//! Compiled components are kept, and never taken from anybody else.

use std::{fs, path::Path};

use serde_json::{Map, json};
use toolpost_testkit::TestHost;
use toolpost_wasm::{WasmModules, WasmSettings};

use crate::workshop::{ECHO, Workshop, planned};

/// Loads the module with a new engine, as a new host would, and calls it.
async fn start(cache: &Path, path: &Path) {
    let modules = WasmModules::new(Some(cache)).unwrap();
    let module = modules
        .load(
            &planned(path, &Map::new()),
            path,
            None,
            WasmSettings::default(),
        )
        .await;
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    let host = TestHost::build(|builder| builder.source(module)).await;
    let result = host.call("echo", json!({ "message": "x" })).await;
    assert_eq!(result.structured_content, Some(json!({ "message": "x" })));
}

/// The compiled files, with their contents.
fn compiled(cache: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|entry| {
        (
            entry.file_name().into_string().unwrap(),
            fs::read(entry.path()).unwrap(),
        )
    });
    named.filter(|(name, _)| name != "key").collect()
}

#[tokio::test]
async fn what_was_compiled_is_found_again_and_mended_where_it_is_damaged() {
    let workshop = Workshop::new();
    let cache = workshop.folder.path().join("cache");
    let path = workshop.component(ECHO);
    start(&cache, &path).await;
    let [(name, whole)] = compiled(&cache).try_into().unwrap();

    // Were it compiled anew, the file would be a new one.
    let file = cache.join(&name);
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(&file);
    start(&cache, &path).await;
    assert_eq!(inode(&file), before, "it was compiled again");

    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&file, &damaged).unwrap();
    start(&cache, &path).await;
    let [(_, mended)] = compiled(&cache).try_into().unwrap();
    assert_ne!(mended, damaged, "damaged code was taken");
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_costs_nothing_but_time() {
    let workshop = Workshop::new();
    let cache = workshop.folder.path().join("cache");
    let path = workshop.component(ECHO);
    start(&cache, &path).await;
    let [(name, _)] = compiled(&cache).try_into().unwrap();
    // A folder in the file's place: neither can it be read, nor can a file be moved there.
    fs::remove_file(cache.join(&name)).unwrap();
    fs::create_dir(cache.join(&name)).unwrap();
    fs::write(cache.join(&name).join("x"), "").unwrap();
    start(&cache, &path).await;
}
