//! Kept answers of an authority, by the whole input that they were given for.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::AuthorityAnswer;

/// The number of kept answers.
const MOST_ANSWERS: usize = 1024;

/// Kept answers. The key is a digest, because the input may have megabytes.
pub(crate) struct KeptAnswers {
    time: Duration,
    answers: Mutex<HashMap<[u8; 32], (Instant, AuthorityAnswer)>>,
}

impl KeptAnswers {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            time,
            answers: Mutex::default(),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<AuthorityAnswer> {
        let answers = self.answers.lock();
        let (until, answer) = answers.get(&digest(key))?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    pub(super) fn keep(&self, key: &str, answer: AuthorityAnswer) {
        let now = Instant::now();
        let mut answers = self.answers.lock();
        if answers.len() >= MOST_ANSWERS {
            answers.retain(|_, (until, _)| now < *until);
        }
        if answers.len() >= MOST_ANSWERS {
            answers.clear();
        }
        answers.insert(digest(key), (now + self.time, answer));
    }
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolpost_model::Behavior;

    use super::{AuthorityAnswer, KeptAnswers, MOST_ANSWERS};

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_input_and_its_time_and_there_is_a_bound() {
        let kept = KeptAnswers::new(Duration::from_secs(10));
        let answer = AuthorityAnswer {
            behavior: Behavior::Allow,
            reason: None,
        };
        kept.keep("a", answer.clone());
        assert_eq!(
            (kept.find("a"), kept.find("b")),
            (Some(answer.clone()), None)
        );
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(kept.find("a"), None);
        for number in 0..3 * MOST_ANSWERS {
            kept.keep(&number.to_string(), answer.clone());
        }
        assert!(kept.answers.lock().len() <= MOST_ANSWERS);
    }
}
