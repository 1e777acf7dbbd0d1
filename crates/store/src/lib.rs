//! Toolpost's state on disk: the journal on SQLite, blobs, the data directory with its lock, its token, the list of
//! trusted files, the remembered rules and accepted definitions, and an audit log for other programs to read.
//!
//! The binary opens a [`DataDir`], then a [`SqliteJournal`] inside it, and hands the journal to the host as its port.
//! Commands that only look use [`DataDir::at`] and [`JournalReader`], whether a host runs or not.
#![warn(missing_docs)]

mod audit_log;
mod blobs;
mod data_dir;
mod disk;
mod journal;
mod last_good;
mod pins;
mod reader;
mod rules;
mod token;
mod trust;
mod verify;

pub use audit_log::{AuditLog, AuditLogError, AuditRotation, AuditWriter};
pub use blobs::{BlobFile, BlobFiles, BlobOptions, BlobsError, DiskBlobs, RemovedFiles, WeakBlobs};
pub use data_dir::{DataDir, DataDirError};
pub use journal::{JournalOpenError, JournalOptions, JournalReadError, SqliteJournal};
pub use last_good::{LastGood, LastGoodError};
pub use pins::PinFiles;
pub use reader::{CallPages, JournalReader, SealError};
pub use rules::RulesFile;
pub use token::{TokenError, load_or_create_token, load_token, new_token};
pub use trust::{TrustEntry, TrustError, TrustStore};
pub use verify::{
    ArtifactCounts, ArtifactsPlace, JournalFlaw, SealedHead, SealedHeadError, VerifyConclusion,
    VerifyOptions, VerifyProblem, VerifyReport, VerifyStep,
};
