//! Size limit: the reflected status of an uninterpreted kind has any size, and a binding does not.

use std::io;

use entourage_api::work::AggregatedStatusItem;

/// The maximum total size of the statuses of all clusters, in bytes of JSON: a third of what an API server stores of one object,
/// so that all other fields of a binding always fit.
const ROOM: usize = 512 * 1024;

/// Omits the statuses that are too large. Each cluster has an equal share; unused shares go to those that need more, in their
/// order. Cost: O(size of the statuses).
pub(super) fn share(items: &mut [AggregatedStatusItem]) {
    share_of(ROOM, items);
}

fn share_of(room: usize, items: &mut [AggregatedStatusItem]) {
    let sizes: Vec<usize> = items.iter().map(size).collect();
    let share = room / items.len().max(1);
    let modest: usize = sizes.iter().filter(|size| **size <= share).sum();
    let mut left = room.saturating_sub(modest);
    for (item, size) in items.iter_mut().zip(sizes) {
        if size <= share {
            continue;
        }
        if size <= left {
            left -= size;
            continue;
        }
        item.status = None;
        if item.applied_message.is_empty() {
            item.applied_message = format!(
                "its status is left out here, as it is too large (the clusters of a binding share {} KiB): see it on {}",
                room / 1024,
                item.cluster_name
            );
        }
    }
}

fn size(item: &AggregatedStatusItem) -> usize {
    let mut counted = Count(0);
    let written = item
        .status
        .as_ref()
        .map(|status| serde_json::to_writer(&mut counted, status));
    if matches!(written, Some(Err(_))) {
        usize::MAX
    } else {
        counted.0
    }
}

/// Counts the bytes written.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(cluster: &str, size: usize) -> AggregatedStatusItem {
        AggregatedStatusItem {
            cluster_name: cluster.into(),
            // As JSON it has two more quotes.
            status: Some(json!("x".repeat(size - 2))),
            ..Default::default()
        }
    }

    fn shown(room: usize, sizes: &[usize]) -> Vec<bool> {
        let mut items: Vec<_> = sizes.iter().map(|size| item("m", *size)).collect();
        share_of(room, &mut items);
        for item in &items {
            assert_eq!(item.status.is_some(), item.applied_message.is_empty());
        }
        items.iter().map(|item| item.status.is_some()).collect()
    }

    #[test]
    fn a_small_status_never_gives_way_to_a_large_one() {
        assert_eq!(shown(100, &[95, 10, 10]), [false, true, true]);
        assert_eq!(shown(100, &[80, 10, 10]), [true, true, true]);
        assert_eq!(shown(100, &[60, 60, 10]), [true, false, true]);
        assert_eq!(shown(100, &[101]), [false]);
        assert_eq!(shown(100, &[]), [false; 0]);
    }
}
