//! Replicas as Cassandra would choose them.

use super::*;

fn id(number: usize) -> HostId {
    (number as u128 + 1).to_be_bytes()
}

/// A member for each number that owns tokens: `(token, member)`, with the racks of the members by number.
fn members(owned: &[(i64, usize)], racks: &[&str]) -> Vec<Member> {
    let count = owned.iter().map(|(_, member)| member + 1).max().unwrap_or(0);
    let tokens = |number| {
        owned
            .iter()
            .filter(move |(_, owner)| *owner == number)
            .map(|(token, _)| *token)
    };
    (0..count)
        .map(|number| Member {
            id: id(number),
            data_centre: "dc1".into(),
            rack: racks.get(number).copied().unwrap_or("r1").into(),
            tokens: tokens(number).collect(),
            address: None,
        })
        .collect()
}

/// The ring of those tokens in one rack, the first `nodes` members being sent to.
pub(crate) fn ring_of(owned: &[(i64, usize)], nodes: usize, factor: usize) -> Ring {
    let ids: Vec<HostId> = (0..nodes).map(id).collect();
    Ring::build(&members(owned, &[]), &ids, &Placement::Next(factor), "dc1")
}

fn at(ring: &Ring, token: i64) -> Vec<u16> {
    ring.replicas(token).collect()
}

#[test]
fn a_range_belongs_to_the_token_that_ends_it() {
    let ring = ring_of(&[(100, 2), (-100, 0), (0, 1)], 3, 1);
    let cases = [
        (i64::MIN, 0),
        (-100, 0),
        (-99, 1),
        (0, 1),
        (1, 2),
        (100, 2),
        (101, 0),
        (i64::MAX, 0),
    ];
    for (token, node) in cases {
        assert_eq!(at(&ring, token), [node], "{token}");
    }
}

#[test]
fn replicas_are_the_next_distinct_nodes_clockwise() {
    let ring = ring_of(&[(0, 0), (10, 0), (20, 1), (30, 2)], 3, 2);
    assert_eq!(at(&ring, 5), [0, 1]);
    assert_eq!(at(&ring, 15), [1, 2]);
    assert_eq!(at(&ring, 25), [2, 0]);
    assert_eq!(ring_of(&[(0, 0), (10, 1)], 2, 5).factor(), 2);
}

#[test]
fn nodes_to_which_nothing_is_sent_are_left_out_but_keep_their_ranges() {
    let ring = ring_of(&[(0, 0), (10, 1)], 1, 1);
    assert_eq!(at(&ring, 5), Vec::<u16>::new());
    assert_eq!(at(&ring, 11), [0]);
    assert_eq!(at(&ring_of(&[], 1, 3), 5), Vec::<u16>::new());
}

/// Six nodes, tokens 0, 10, ... 50, in that order.
fn six(racks: [&str; 6]) -> (Vec<Member>, Vec<HostId>) {
    let owned: Vec<(i64, usize)> = (0..6).map(|number| (number as i64 * 10, number)).collect();
    (members(&owned, &racks), (0..6).map(id).collect())
}

#[test]
fn racks_are_kept_apart_while_there_are_enough() {
    let (members, ids) = six(["a", "a", "b", "b", "c", "c"]);
    let ring = Ring::build(&members, &ids, &Placement::ByRack(3), "dc1");
    assert_eq!(at(&ring, 0), [0, 2, 4]);
    assert_eq!(at(&ring, 10), [1, 2, 4]);
    assert_eq!(at(&ring, 20), [2, 4, 0]);
    // The same ring without regard to racks.
    let ring = Ring::build(&members, &ids, &Placement::Next(3), "dc1");
    assert_eq!(at(&ring, 0), [0, 1, 2]);
}

#[test]
fn with_fewer_racks_than_replicas_so_many_are_repeated_as_are_missing() {
    // Three replicas in two racks: one repeat, taken by the first that comes; the other rack is waited for.
    let (members, ids) = six(["a", "a", "a", "a", "b", "a"]);
    let ring = Ring::build(&members, &ids, &Placement::ByRack(3), "dc1");
    assert_eq!(at(&ring, 0), [0, 1, 4]);
    assert_eq!(at(&ring, 30), [3, 4, 5]);
    assert_eq!(at(&ring, 40), [4, 5, 0]);
    // Two replicas in two racks: none.
    let ring = Ring::build(&members, &ids, &Placement::ByRack(2), "dc1");
    assert_eq!(at(&ring, 0), [0, 4]);
    assert_eq!(at(&ring, 50), [5, 4]);
}

#[test]
fn other_data_centres_have_replicas_of_their_own() {
    let (mut members, ids) = six(["a"; 6]);
    for odd in [1, 3, 5] {
        members[odd].data_centre = "dc2".into();
    }
    let ring = Ring::build(&members, &ids, &Placement::ByRack(2), "dc1");
    assert_eq!(at(&ring, 5), [2, 4]);
    // SimpleStrategy knows no data centres.
    let ring = Ring::build(&members, &ids, &Placement::Next(2), "dc1");
    assert_eq!(at(&ring, 5), [1, 2]);
}

#[test]
fn placements_are_read_from_the_keyspace() {
    let read = |class: &str, pairs: &[(&str, &'static str)]| {
        let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        placement_of(class, value, "dc1")
    };
    let simple = "org.apache.cassandra.locator.SimpleStrategy";
    let topology = "org.apache.cassandra.locator.NetworkTopologyStrategy";
    assert_eq!(read(simple, &[("replication_factor", "3/1")]), Placement::Next(3));
    assert_eq!(read(topology, &[("dc2", "5"), ("dc1", "2")]), Placement::ByRack(2));
    assert_eq!(read(topology, &[("dc2", "5")]), Placement::ByRack(1));
    assert_eq!(
        read("org.apache.cassandra.locator.LocalStrategy", &[]),
        Placement::Next(1)
    );
}
