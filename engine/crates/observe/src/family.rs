//! Who descends from whom, from one reading of /proc: for ending processes, not for measuring them.

use std::collections::HashMap;

use crate::parse;

/// Every process below `root`, without those in `except` and what is below them. Zombies are in it: somebody has to reap them.
/// Empty where /proc cannot be read.
pub fn descendants(root: i32, except: &[i32]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = parse::number(name.as_encoded_bytes()).and_then(|pid| i32::try_from(pid).ok());
        let Some(pid) = pid else { continue };
        // Ended since it was listed: nothing to say about it.
        let Ok(text) = std::fs::read(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(stat) = parse::process_stat(&text) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    below(root, except, &children)
}

fn below(root: i32, except: &[i32], children: &HashMap<i32, Vec<i32>>) -> Vec<i32> {
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            if !except.contains(&child) {
                found.push(child);
                parents.push(child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excepted_process_takes_its_descendants_with_it() {
        let children = HashMap::from([(1, vec![2, 3]), (2, vec![4]), (3, vec![5]), (5, vec![6])]);
        let mut found = below(1, &[2], &children);
        found.sort_unstable();
        assert_eq!(found, [3, 5, 6]);
    }
}
