//! The descendants of a process, from one pass over /proc. They serve to end processes, not to measure them.

use std::collections::HashMap;

use crate::parse;

/// Returns all descendants of this process, except `except` and their descendants. Includes zombies, which the caller
/// may have to reap. Returns an empty list if /proc is not readable.
pub fn own_descendants(except: &[i32]) -> Vec<i32> {
    let root = rustix::process::getpid().as_raw_nonzero().get();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = parse::number(name.as_encoded_bytes()).and_then(|pid| i32::try_from(pid).ok());
        let Some(pid) = pid else { continue };
        // The process has ended since the listing.
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
    fn excluded_process_excludes_its_descendants() {
        let children = HashMap::from([(1, vec![2, 3]), (2, vec![4]), (3, vec![5]), (5, vec![6])]);
        let mut found = below(1, &[2], &children);
        found.sort_unstable();
        assert_eq!(found, [3, 5, 6]);
    }
}
