//! Components as tools, through a whole host. The components are made from the text in `tests/fixtures`.

mod authority;
mod cache;
mod calls;
mod instances;
mod limits;
mod loading;
mod python;
mod workshop;
