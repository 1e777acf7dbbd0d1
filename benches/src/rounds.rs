//! Alternating rounds, medians and ratios.

use std::{future::Future, time::Instant};

use tokio::task::JoinHandle;

/// Figures of two contenders, taken in turn.
pub(crate) struct Pairs {
    ours: Vec<f64>,
    floor: Vec<f64>,
}

impl Pairs {
    /// Runs both `count` times, each time the other one first.
    pub(crate) async fn take<A, B>(
        count: usize,
        mut ours: impl FnMut() -> A,
        mut floor: impl FnMut() -> B,
    ) -> anyhow::Result<Self>
    where
        A: Future<Output = anyhow::Result<f64>>,
        B: Future<Output = anyhow::Result<f64>>,
    {
        let mut pairs = Self {
            ours: Vec::new(),
            floor: Vec::new(),
        };
        for round in 0..count {
            if round % 2 == 0 {
                pairs.floor.push(floor().await?);
                pairs.ours.push(ours().await?);
            } else {
                pairs.ours.push(ours().await?);
                pairs.floor.push(floor().await?);
            }
        }
        Ok(pairs)
    }

    /// `name: ours …, floor …, ratio … [lowest–highest]`.
    pub(crate) fn tell(&self, name: &str, unit: &str) {
        let ratios: Vec<f64> = self
            .ours
            .iter()
            .zip(&self.floor)
            .map(|(ours, floor)| ours / floor)
            .collect();
        let (low, high) = spread(&ratios);
        println!(
            "{name}: {} {unit} against {} of the floor, ratio {:.2} [{low:.2}–{high:.2}]",
            shown(median(&self.ours)),
            shown(median(&self.floor)),
            median(&ratios),
        );
    }
}

impl Pairs {
    /// The first of each pair is the direct call, the second the call with the hop: the ratio shows how many times
    /// longer that takes.
    pub(crate) fn tell_hop(&self, name: &str) {
        let times: Vec<f64> = self
            .ours
            .iter()
            .zip(&self.floor)
            .map(|(direct, through)| direct / through)
            .collect();
        let (low, high) = spread(&times);
        println!(
            "{name}: {} calls/s through the host against {} asked directly, a call takes {:.2} times as long [{low:.2}–{high:.2}]",
            shown(median(&self.floor)),
            shown(median(&self.ours)),
            median(&times),
        );
    }
}

/// Calls a second of tasks that count their own calls.
pub(crate) async fn rate(
    began: Instant,
    tasks: Vec<JoinHandle<anyhow::Result<u64>>>,
) -> anyhow::Result<f64> {
    let mut calls = 0;
    for task in tasks {
        calls += task.await??;
    }
    Ok(calls as f64 / began.elapsed().as_secs_f64())
}

pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn spread(figures: &[f64]) -> (f64, f64) {
    figures
        .iter()
        .fold((f64::INFINITY, 0.0), |(low, high), &figure| {
            (low.min(figure), f64::max(high, figure))
        })
}

pub(crate) fn shown(figure: f64) -> String {
    if figure >= 1_000.0 {
        format!("{:.1}k", figure / 1_000.0)
    } else {
        format!("{figure:.2}")
    }
}

/// Figures of several contenders, taken in turn. The first is compared with the others.
pub(crate) struct Field<const N: usize> {
    names: [&'static str; N],
    figures: [Vec<f64>; N],
}

impl<const N: usize> Field<N> {
    /// Runs each `count` times, each time with another one first.
    pub(crate) async fn take<F>(
        count: usize,
        names: [&'static str; N],
        mut measure: impl FnMut(usize) -> F,
    ) -> anyhow::Result<Self>
    where
        F: Future<Output = anyhow::Result<f64>>,
    {
        let mut figures = [const { Vec::new() }; N];
        for round in 0..count {
            for turn in 0..N {
                let place = (round + turn) % N;
                figures[place].push(measure(place).await?);
            }
        }
        Ok(Self { names, figures })
    }

    /// `title: figure; against another one's figure ratio … [lowest–highest]; …`.
    pub(crate) fn tell(&self, title: &str, unit: &str) {
        let ours = &self.figures[0];
        let mut line = format!("{title}: {} {unit}", shown(median(ours)));
        for (name, theirs) in self.names.iter().zip(&self.figures).skip(1) {
            let ratios: Vec<f64> = ours
                .iter()
                .zip(theirs)
                .map(|(ours, theirs)| ours / theirs)
                .collect();
            let (low, high) = spread(&ratios);
            let theirs = shown(median(theirs));
            let ratio = median(&ratios);
            line += &format!("; {name} {theirs}, ratio {ratio:.2} [{low:.2}–{high:.2}]");
        }
        println!("{line}");
    }
}
