//! The search: every state that can be reached, breadth first, then backwards from the settled
//! ones.

use crate::laws::Law;
use crate::protections::Protections;
use crate::scenario::Scenario;
use crate::seen::{Index, Seen};
use crate::state::State;
use crate::step::{Kind, Step, Steps};
use crate::{compensator, consumer, correction, ingress, laws, mishaps, reconciler, warming};

/// What a search came to.
pub struct Outcome {
    pub states: usize,
    pub steps: usize,
    pub settled: usize,
    pub finding: Option<Finding>,
}

/// A history that should not be.
pub struct Finding {
    pub wrong: Wrong,
    /// From the beginning, each step with the state after it.
    pub trace: Vec<(Step, State)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    Broken(Law),
    /// No settled state can be reached any more unless a buyer or a fault helps.
    Stuck,
}

/// Searches a scenario to its end, or to the first law that is broken. Being breadth first, it
/// finds a shortest history.
pub fn search(scenario: &Scenario, protections: Protections) -> Outcome {
    search_for(scenario, protections, None)
}

/// The same, but only one law counts: for the history that shows best what a rule is for.
pub fn search_for(scenario: &Scenario, protections: Protections, only: Option<Law>) -> Outcome {
    let mut seen = Seen::default();
    let mut parents: Vec<Index> = Vec::new();
    let mut work: Vec<(Index, Index)> = Vec::new();
    let mut steps = 0;
    for state in scenario.beginnings() {
        seen.insert(state);
        parents.push(Index::MAX);
    }
    let mut at = Steps { from: *seen.get(0), scenario, protections, found: Vec::new() };
    let mut next: Index = 0;
    while (next as usize) < seen.len() {
        at.from = *seen.get(next);
        let broken = laws::broken(&at.from, scenario, protections);
        if let Some(law) = broken.into_iter().find(|law| only.is_none_or(|only| *law == only)) {
            let trace = trace(&seen, &parents, next, scenario, protections);
            let finding = Some(Finding { wrong: Wrong::Broken(law), trace });
            return Outcome { states: seen.len(), steps, settled: 0, finding };
        }
        successors(&mut at);
        for (step, state) in at.found.drain(..) {
            let (index, new) = seen.insert(state);
            if new {
                parents.push(next);
            }
            if step.kind == Kind::Work {
                work.push((index, next));
            }
            steps += 1;
        }
        next += 1;
    }
    let settled: Vec<bool> = seen.iter().map(|state| laws::settled(state, protections)).collect();
    let settled_states = settled.iter().filter(|settled| **settled).count();
    let stuck = first_stuck(settled, &work);
    let finding = stuck.map(|stuck| Finding {
        wrong: Wrong::Stuck,
        trace: trace(&seen, &parents, stuck, scenario, protections),
    });
    Outcome { states: seen.len(), steps, settled: settled_states, finding }
}

/// Everything that can happen next.
fn successors(at: &mut Steps<'_>) {
    at.found.clear();
    ingress::steps(at);
    consumer::steps(at);
    compensator::steps(at);
    reconciler::steps(at);
    correction::steps(at);
    warming::steps(at);
    mishaps::steps(at);
}

/// Goes back from the settled states along the steps of work; the first state that it does not
/// come to is stuck. `work` holds (to, from).
fn first_stuck(mut leads_on: Vec<bool>, work: &[(Index, Index)]) -> Option<Index> {
    // One counting sort instead of a list for each state: begins[to] .. begins[to + 1] are the
    // places of its predecessors.
    let mut begins = vec![0_usize; leads_on.len() + 1];
    for (to, _) in work {
        begins[*to as usize + 1] += 1;
    }
    for at in 1..begins.len() {
        begins[at] += begins[at - 1];
    }
    let mut free = begins.clone();
    let mut predecessors = vec![0; work.len()];
    for (to, from) in work {
        predecessors[free[*to as usize]] = *from;
        free[*to as usize] += 1;
    }
    let mut open: Vec<usize> = (0..leads_on.len()).filter(|at| leads_on[*at]).collect();
    while let Some(to) = open.pop() {
        for from in &predecessors[begins[to]..begins[to + 1]] {
            let from = *from as usize;
            if !leads_on[from] {
                leads_on[from] = true;
                open.push(from);
            }
        }
    }
    leads_on.iter().position(|leads_on| !leads_on).and_then(|stuck| Index::try_from(stuck).ok())
}

/// The history of a state. Steps are not stored: they are found again between parent and child.
fn trace(
    seen: &Seen,
    parents: &[Index],
    mut index: Index,
    scenario: &Scenario,
    protections: Protections,
) -> Vec<(Step, State)> {
    let mut history = Vec::new();
    while parents[index as usize] != Index::MAX {
        let (parent, child) = (parents[index as usize], *seen.get(index));
        let mut at = Steps { from: *seen.get(parent), scenario, protections, found: Vec::new() };
        successors(&mut at);
        history.extend(at.found.into_iter().find(|(_, state)| *state == child));
        index = parent;
    }
    history.reverse();
    history
}
