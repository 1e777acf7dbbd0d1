//! A2A's own messages, in both dialects.

mod card;
mod items;
mod numbers;
mod properties;
mod refusals;
mod requests;
