//! The beliefs that trials have visited, what follows each, and what is known of their values.
//!
//! Comparing every belief with every vector and every point would take most of the time; so each
//! remembers how many of them it was compared with.

use rustc_hash::FxHashMap;

use super::lower::Lower;
use super::system::{Point, Scratch, Successor, System};
use super::upper::Upper;

/// Beliefs whose weights differ by at most this are the same: they are equal except for rounding.
const SAME: f64 = 1e-12;
/// Weights are rounded to multiples of this to look beliefs up; one that rounds differently is only
/// kept twice.
const GRID: f64 = 1e-7;

/// Bounds of the value at a belief, and how much of the present bounds they take into account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// At least the value of `vector`; also once vectors were removed.
    pub lower: f64,
    /// The largest vector of its class among the first `vectors_seen`.
    pub vector: u32,
    vectors_seen: u32,
    pub upper: f64,
    points_seen: u32,
}

/// A belief that was visited.
pub(super) struct Node {
    pub point: Point,
    pub class: usize,
    pub known: Known,
    /// What follows each action.
    pub branches: Vec<Branch>,
}

/// What follows an action.
pub(super) struct Branch {
    /// Σ_s b(s) r(a, s)
    pub reward: f64,
    /// An upper bound of Q(b, a).
    pub upper: f64,
    pub children: Vec<Child>,
}

/// The belief that follows an action and an observation; its weights are computed anew when they
/// are needed, unless it was visited.
pub(super) struct Child {
    pub observation: usize,
    pub probability: f64,
    pub class: usize,
    pub known: Known,
    node: Option<u32>,
}

/// Both bounds, and the beliefs between which trials go.
pub(super) struct Graph {
    pub system: System,
    pub lower: Lower,
    pub upper: Upper,
    pub nodes: Vec<Node>,
    of_key: FxHashMap<u64, Vec<u32>>,
    scratch: Scratch,
    /// Multiplications so far, approximately.
    pub work: u64,
}

/// The node of the start.
pub(super) const START: usize = 0;

impl Graph {
    pub fn new(system: System, lower: Lower, upper: Upper) -> Graph {
        let (scratch, start) = (system.scratch(), system.start.clone());
        let mut graph = Graph { system, lower, upper, nodes: Vec::new(), of_key: FxHashMap::default(), scratch, work: 0 };
        graph.visit(start, graph.system.classes.start(), Known::nothing());
        graph.refresh(START);
        graph
    }

    /// The node of a belief, which is added if there is none.
    fn visit(&mut self, point: Point, class: usize, known: Known) -> u32 {
        let all = self.of_key.entry(key(&point)).or_default();
        if let Some(&same) = all.iter().find(|&&i| same(&self.nodes[i as usize].point, &point)) {
            return same;
        }
        let node = self.nodes.len() as u32;
        all.push(node);
        self.nodes.push(Node { point, class, known, branches: Vec::new() });
        node
    }

    /// Brings what is known of a node up to date with the bounds.
    pub fn refresh(&mut self, node: usize) {
        let Node { point, class, known, .. } = &mut self.nodes[node];
        self.work += known.refresh_lower(&self.system, &self.lower, *class, point);
        self.work += known.refresh_upper(&mut self.upper, *class, point);
    }

    /// Finds what follows every action, once.
    pub fn expand(&mut self, node: usize) {
        if !self.nodes[node].branches.is_empty() {
            return;
        }
        let point = std::mem::take(&mut self.nodes[node].point);
        for a in 0..self.system.actions {
            let successors = self.system.successors(&point, a, &mut self.scratch);
            let mut children = Vec::with_capacity(successors.len());
            for Successor { observation, probability, point } in successors {
                let class = self.system.classes.of_state(point.any_state());
                let mut known = Known::nothing();
                self.work += known.refresh_lower(&self.system, &self.lower, class, &point);
                self.work += known.refresh_upper(&mut self.upper, class, &point);
                children.push(Child { observation, probability, class, known, node: None });
            }
            let reward = point.dot(self.system.reward(a));
            let mut branch = Branch { reward, upper: f64::INFINITY, children };
            branch.upper = branch.upper_q(self.system.discount);
            self.nodes[node].branches.push(branch);
        }
        self.nodes[node].point = point;
    }

    /// Brings what is known after an action up to date with the bounds.
    pub fn refresh_branch(&mut self, node: usize, a: usize) {
        let mut children = std::mem::take(&mut self.nodes[node].branches[a].children);
        let stale = |child: &Child| !child.known.is_current(&self.lower, &self.upper, child.class);
        if children.iter().any(|child| child.node.is_none() && stale(child)) {
            let successors = self.system.successors(&self.nodes[node].point, a, &mut self.scratch);
            for (child, Successor { point, .. }) in children.iter_mut().zip(successors).filter(|(child, _)| child.node.is_none())
            {
                self.work += child.known.refresh_lower(&self.system, &self.lower, child.class, &point);
                self.work += child.known.refresh_upper(&mut self.upper, child.class, &point);
            }
        }
        for child in &mut children {
            if let Some(i) = child.node {
                self.refresh(i as usize);
                child.known = self.nodes[i as usize].known;
            }
        }
        let branch = &mut self.nodes[node].branches[a];
        branch.children = children;
        branch.upper = branch.upper.min(branch.upper_q(self.system.discount));
    }

    /// The node of the belief after an action, by its place among the children.
    pub fn child(&mut self, node: usize, a: usize, place: usize) -> usize {
        let child = &self.nodes[node].branches[a].children[place];
        if let Some(i) = child.node {
            return i as usize;
        }
        let (class, known) = (child.class, child.known);
        let successors = self.system.successors(&self.nodes[node].point, a, &mut self.scratch);
        let point = successors.into_iter().nth(place).expect("successors keep their order").point;
        let i = self.visit(point, class, known);
        self.nodes[node].branches[a].children[place].node = Some(i);
        i as usize
    }

    /// The nodes that actions lead to which may be the best, from the start, and the plans of the
    /// lower bound.
    fn relevant(&self) -> Vec<usize> {
        let mut found = vec![false; self.nodes.len()];
        found[START] = true;
        let mut all = vec![START];
        let mut next = 0;
        while next < all.len() {
            let node = &self.nodes[all[next]];
            let planned = self.planned(all[next]);
            let matters = |&(a, branch): &(usize, &Branch)| a == planned || branch.upper >= node.known.lower;
            for (_, branch) in node.branches.iter().enumerate().filter(matters) {
                for i in branch.children.iter().filter_map(|child| child.node).map(|i| i as usize) {
                    if !std::mem::replace(&mut found[i], true) {
                        all.push(i);
                    }
                }
            }
            next += 1;
        }
        all
    }

    /// The action of the largest vector at a node.
    fn planned(&self, node: usize) -> usize {
        let Node { class, known, .. } = &self.nodes[node];
        self.lower.action(*class, known.vector as usize).index()
    }

    /// Keeps the vectors that are the largest at a belief to which the best policy may lead, or
    /// which follows there if the policy takes the action of the largest vector: without these the
    /// policy would earn less than the lower bound.
    pub fn prune_lower(&mut self) {
        (0..self.nodes.len()).for_each(|i| self.refresh(i));
        let classes = 0..self.system.classes.len();
        let mut keep: Vec<Vec<bool>> = classes.map(|class| vec![false; self.lower.len_of(class)]).collect();
        for i in self.relevant() {
            let planned = self.planned(i);
            keep[self.nodes[i].class][self.nodes[i].known.vector as usize] = true;
            if self.nodes[i].branches.is_empty() {
                continue;
            }
            self.refresh_branch(i, planned);
            for child in &self.nodes[i].branches[planned].children {
                keep[child.class][child.known.vector as usize] = true;
            }
        }
        for keep in &mut keep {
            if !keep.contains(&true) {
                keep[0] = true; // every class has a vector
            }
        }
        self.lower.retain(&keep);
        // For each class and number n, how many of its first n vectors remain.
        let remaining: Vec<Vec<u32>> = keep.iter().map(|keep| running_count(keep)).collect();
        self.for_all_known(|class, known| {
            let (kept, remaining) = (&keep[class], &remaining[class]);
            let (vector, seen) = (known.vector as usize, known.vectors_seen as usize);
            // One that is gone is looked for among all that remain.
            known.vectors_seen = if kept.get(vector) == Some(&true) { remaining[seen] } else { 0 };
            known.vector = remaining[vector];
        });
    }

    /// Removes points of the upper bound that others imply.
    pub fn prune_upper(&mut self) {
        let remaining = self.upper.prune();
        self.for_all_known(|class, known| known.points_seen = remaining[class][known.points_seen as usize]);
    }

    fn for_all_known(&mut self, change: impl Fn(usize, &mut Known)) {
        for node in &mut self.nodes {
            change(node.class, &mut node.known);
            for child in node.branches.iter_mut().flat_map(|branch| &mut branch.children) {
                change(child.class, &mut child.known);
            }
        }
    }
}

impl Known {
    fn nothing() -> Known {
        Known { lower: f64::NEG_INFINITY, vector: 0, vectors_seen: 0, upper: f64::INFINITY, points_seen: 0 }
    }

    fn is_current(&self, lower: &Lower, upper: &Upper, class: usize) -> bool {
        self.vectors_seen as usize == lower.len_of(class) && self.points_seen as usize == upper.len_of(class)
    }

    /// Compares with the vectors that are new; returns the number of multiplications.
    fn refresh_lower(&mut self, system: &System, lower: &Lower, class: usize, point: &Point) -> u64 {
        let (seen, all) = (self.vectors_seen as usize, lower.len_of(class));
        if seen == all {
            return 0;
        }
        let (vector, value) = lower.largest(system, class, point, seen);
        if seen == 0 || value > self.lower {
            (self.vector, self.lower) = (vector as u32, value);
        }
        self.vectors_seen = all as u32;
        ((all - seen) * point.states.len()) as u64
    }

    /// Compares with the points that are new; returns the number of multiplications.
    fn refresh_upper(&mut self, upper: &mut Upper, class: usize, point: &Point) -> u64 {
        let (seen, all) = (self.points_seen as usize, upper.len_of(class));
        if seen == all && self.upper < f64::INFINITY {
            return 0;
        }
        self.upper = self.upper.min(upper.value(class, point, seen));
        self.points_seen = all as u32;
        ((all - seen) * point.states.len()) as u64
    }
}

impl Branch {
    fn sum(&self, value: impl Fn(&Known) -> f64) -> f64 {
        self.children.iter().map(|child| child.probability * value(&child.known)).sum()
    }

    /// r(a, b) + γ Σ_o P(o ‖ a) V(b_ao) with the lower bound as V.
    pub fn lower_q(&self, discount: f64) -> f64 {
        self.reward + discount * self.sum(|known| known.lower)
    }

    /// The same with the upper bound.
    fn upper_q(&self, discount: f64) -> f64 {
        self.reward + discount * self.sum(|known| known.upper)
    }
}

/// For each n, how many of the first n are marked.
fn running_count(marks: &[bool]) -> Vec<u32> {
    let counts = marks.iter().scan(0, |count, &mark| {
        *count += u32::from(mark);
        Some(*count)
    });
    std::iter::once(0).chain(counts).collect()
}

fn key(point: &Point) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    for (s, b) in point.entries() {
        hasher.write_usize(s);
        hasher.write_u64((b / GRID).round() as u64);
    }
    hasher.finish()
}

fn same(x: &Point, y: &Point) -> bool {
    x.states == y.states && x.weights.iter().zip(&y.weights).all(|(x, y)| (x - y).abs() <= SAME)
}
